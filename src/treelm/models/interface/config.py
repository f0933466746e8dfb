"""The options of a system: declared once, in its configuration, and read off from there."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args, get_origin

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

from treelm.characters import visible
from treelm.errors import ModelFileError, UsageError, option
from treelm.limits import LARGEST_COUNT
from treelm.store.folder import ModelFolder
from treelm.store.untrusted import excerpt


class Config(BaseModel):
    """Options of a system: frozen, checked, and stored with the model.

    Numbers are finite and have both bounds. A field that takes several values is declared with
    ``strict=False``, since JSON and the command line give lists.
    """

    # Strict, so that 2.5 never becomes 2; whole numbers are taken where others are due.
    # Built at the first use, since records inside of options are not used by themselves.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


#: What unknown words are: their symbol alone, or its share for their spelling.
UnknownWords = Literal["symbol", "spelling"]


class WordModelConfig(Config):
    """What the options of all language models with a vocabulary have in common."""

    unknown: UnknownWords = "symbol"
    """What the probability of an unknown word is: that of the symbol which stands for all of them
    (symbol), or that times the probability of its spelling (spelling), so that every word has a
    probability of its own."""
    spelling_min_count: int = Field(default=1, ge=1, le=LARGEST_COUNT)
    """With unknown spelling: leave sequences of four or more characters that are rarer than this,
    and of three that are rarer than half of it, out of the spelling model: it becomes smaller."""


_Config = TypeVar("_Config", bound="Config")


#: Wrong options that one message names.
_MOST_NAMED = 5


def explain(error: ValidationError, spell: Callable[[str], str] = str) -> str:
    """Return what is wrong with options, in one sentence each; fit for a terminal.

    Args:
        error: What the check says.
        spell: How the name of an option is shown.
    """
    found = []
    for item in error.errors()[:_MOST_NAMED]:
        place = (*map(spell, map(str, item["loc"][:1])), *map(str, item["loc"][1:]))
        name = excerpt(".".join(place))  # may be anybody's in a manifest
        message = visible(item["msg"].removeprefix("Value error, "))
        if item["type"] == "extra_forbidden":
            message = "there is no such option"
        found.append(f"{name}: {message}" if item["loc"] else message)
    if error.error_count() > _MOST_NAMED:
        found.append(f"and {error.error_count() - _MOST_NAMED} more")
    return "; ".join(found) + "."


def config_of(folder: ModelFolder, config_class: type[_Config], what: str) -> _Config:
    """Return the checked options of the model in an opened folder.

    Args:
        folder: The folder.
        config_class: What the options of its system are.
        what: The kind of model with its article, for the error.

    Raises:
        ModelFileError: ``E_MANIFEST`` if they are others.
    """
    try:
        return config_class.model_validate(folder.manifest.config)
    except ValidationError as error:
        raise ModelFileError(
            f"{visible(str(folder.path))}: this is no configuration of {what} ({explain(error)})",
            code="E_MANIFEST",
        ) from error


def make_config(
    kind: type[_Config], options: Mapping[str, object], system: str, others: Iterable[str] = ()
) -> _Config:
    """Return checked options.

    Args:
        kind: The configuration of the system.
        options: Options by name; those left out have their defaults.
        system: Name of the system, for the error.
        others: What else could have been given in the same place, for the error.

    Raises:
        UsageError: naming the option that does not exist or has an impossible value.
    """
    # Numbers out of arrays are as good as others.
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
    }
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        guess = _closest(plain, kind, others)
        raise UsageError(f"{system}: {explain(error, option)}{guess}") from error


def _closest(given: Mapping[str, object], kind: type[Config], others: Iterable[str]) -> str:
    """Return a guess at the option that was meant by the first one that does not exist."""
    known = [*(each.name for each in options_of(kind)), *others]
    wrong = next((name for name in given if name not in kind.model_fields), None)
    close = difflib.get_close_matches(wrong, known, n=1) if wrong is not None else []
    if wrong is None:
        return ""
    if close:
        return f" Did you mean {option(close[0])}?"
    return f" There are: {', '.join(map(option, known))}."


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
