"""The options of a system, read off its configuration: the one place where they are declared."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field
from pydantic.config import JsonDict

from treelm.models.interface.model import Config

_NO_OPTION: JsonDict = {"is_option": False}


def no_option(default: Any = None) -> Any:
    """Return a field that is stored with the model but set by training, not by people."""
    return Field(default=default, json_schema_extra=_NO_OPTION)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a system.

    Args:
        name: Its name in Python.
        annotation: Its type.
        default: Its value unless it is given; None with `is_required`.
        is_required: Whether it must be given.
        help: What it means.
        bounds: The smallest and largest numbers allowed: ``least`` and ``most`` where the bound
            itself is allowed, ``above`` and ``below`` where it is not.
    """

    name: str
    annotation: Any
    default: Any
    is_required: bool
    help: str
    bounds: Mapping[str, float] = field(default_factory=dict)


def options_of(config: type[Config]) -> tuple[Option, ...]:
    """Return the options of a configuration, in order, without what training sets itself."""
    texts = _field_docstrings(config)
    return tuple(
        Option(
            name,
            info.annotation,
            None if info.is_required() else info.get_default(call_default_factory=True),
            info.is_required(),
            texts.get(name, ""),
            _bounds(info.metadata),
        )
        for name, info in config.model_fields.items()
        if info.json_schema_extra != _NO_OPTION
    )


def _bounds(metadata: Sequence[Any]) -> dict[str, float]:
    """Return the bounds of a number by name."""
    found: dict[str, Any] = {}
    for bound in metadata:
        if isinstance(bound, Ge):
            found["least"] = bound.ge
        elif isinstance(bound, Gt):
            found["above"] = bound.gt
        elif isinstance(bound, Le):
            found["most"] = bound.le
        elif isinstance(bound, Lt):
            found["below"] = bound.lt
    return found


def _field_docstrings(config: type[Config]) -> dict[str, str]:
    """Return the string below every field; a subclass may say it anew."""
    texts: dict[str, str] = {}
    for owner in reversed(config.__mro__):
        if not issubclass(owner, Config) or owner is Config:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for declared, text in zip(tree.body, tree.body[1:], strict=False):
            if (
                isinstance(declared, ast.AnnAssign)
                and isinstance(declared.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                texts[declared.target.id] = " ".join(text.value.value.split())
    return texts
