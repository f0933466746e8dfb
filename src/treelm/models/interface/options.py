"""The options of a system, read off its configuration: the one place where they are declared."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

from treelm.models.interface.model import Config

_NO_OPTION: JsonDict = {"is_option": False}


def no_option(default: Any = None, *, strict: bool | None = None) -> Any:
    """Return a field that is stored with the model but set by training, not by people."""
    return Field(default=default, json_schema_extra=_NO_OPTION, strict=strict)


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

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers."""
        return bool(_types_in(self.annotation) & {int, float})


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
            _bounds([*info.metadata, *_bounds_of_each(info.annotation)]),
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


def _types_in(annotation: Any) -> set[Any]:
    """Return the plain types that an annotation is made of."""
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return {type(value) for value in inner}
    return set().union(*map(_types_in, inner)) if inner else {annotation}


def _bounds_of_each(annotation: Any) -> list[Any]:
    """Return what is declared beside the type of each value, where an option takes several."""
    found: list[Any] = []
    for alternative in (annotation, *get_args(annotation)):
        if get_origin(alternative) is tuple:
            declared = get_args(get_args(alternative)[0])[1:]
            fields = [each for each in declared if isinstance(each, FieldInfo)]
            found.extend(bound for each in fields for bound in each.metadata)
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
