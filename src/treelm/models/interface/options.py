"""The options of a system, read off its configuration: the one place where they are declared."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
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
        allowed: The values that numbers may have, such as ``1 to 6``; empty if all are allowed.
    """

    name: str
    annotation: Any
    default: Any
    is_required: bool
    help: str
    allowed: str = ""


def options_of(config: type[Config]) -> tuple[Option, ...]:
    """Return the options of a configuration, in order, without what training sets itself."""
    texts = _field_docstrings(config)
    return tuple(
        Option(
            name,
            field.annotation,
            None if field.is_required() else field.get_default(call_default_factory=True),
            field.is_required(),
            texts.get(name, ""),
            _allowed(field.metadata),
        )
        for name, field in config.model_fields.items()
        if field.json_schema_extra != _NO_OPTION
    )


def _allowed(bounds: Sequence[Any]) -> str:
    """Return the range that bounds leave, in words."""
    low = high = ""
    for bound in bounds:
        if isinstance(bound, Ge):
            low = f"{bound.ge}"
        elif isinstance(bound, Gt):
            low = f"above {bound.gt}"
        elif isinstance(bound, Le):
            high = f"{bound.le}"
        elif isinstance(bound, Lt):
            high = f"below {bound.lt}"
    if low and high:
        return f"{low} to {high}" if low[0] != "a" and high[0] != "b" else f"{low} and {high}"
    if low:
        return low if low.startswith("above") else f"{low} or more"
    return high if not high or high.startswith("below") else f"{high} or less"


def _field_docstrings(config: type[Config]) -> dict[str, str]:
    """Return the string below every field; a subclass may say it anew."""
    texts: dict[str, str] = {}
    for owner in reversed(config.__mro__):
        if not issubclass(owner, Config) or owner is Config:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                texts[field.target.id] = " ".join(text.value.value.split())
    return texts
