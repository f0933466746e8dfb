"""Weights of the features of a log-linear model of translation, by the names that Moses uses."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from treelm.characters import visible
from treelm.corpus.files import Source, read_lines, source_name, write_atomically
from treelm.errors import CorpusFormatError, TreelmWarning
from treelm.store.untrusted import parse_json

#: Features whose weight tuning neither moves nor counts.
FIXED = frozenset({"UnknownWordPenalty0"})

#: What a weight is by default, by the name of the feature without its number.
DEFAULTS: Mapping[str, float] = {
    "TranslationModel": 0.2,
    "PhrasePenalty": 0.2,
    "WordPenalty": -1.0,
    "Distortion": 0.3,
    "LexicalReordering": 0.3,
    "LM": 0.5,
    "UnknownWordPenalty": 1.0,
}

_NAME = re.compile(r"[^\s=\[\]]+")
_SECTION = re.compile(r"\[([^\]]*)\]")


class Weights(Mapping[str, tuple[float, ...]]):
    """Weights by feature; a feature has one for each of its values. It cannot be changed.

    Args:
        values: The weights of each feature, in the order in which they are written.

    Raises:
        CorpusFormatError: ``E_FEATURE_WEIGHTS`` for a name with a space, ``=`` or a bracket in it,
            a feature without weights, or a weight that is NaN or infinite.

    Examples:
        >>> weights = Weights({"LM0": (0.5,), "TranslationModel0": (0.2, 0.1)})
        >>> weights["LM0"], weights.dot({"LM0": (-4.0,), "TranslationModel0": (-1.0, -2.0)})
        ((0.5,), -2.4000000000000004)
    """

    __slots__ = ("_lines", "_source", "_values")

    def __init__(self, values: Mapping[str, Sequence[float]]) -> None:
        self._source = "the weights"
        self._lines: dict[str, int] = {}
        self._values = {name: tuple(map(float, each)) for name, each in values.items()}
        self._check()

    def _check(self) -> None:
        for name, values in self._values.items():
            if not _NAME.fullmatch(name):
                self._refuse(name, "this cannot be the name of a feature", "Rename it.")
            if not values:
                self._refuse(name, "the feature has no weights", "Give one for each value.")
            for value in values:
                if not math.isfinite(value):
                    self._refuse(name, f"{value} is not a weight", "Weights are finite numbers.")

    def _refuse(self, name: str, what: str, advice: str) -> NoReturn:
        raise _malformed(
            self._source, self._lines.get(name), f'feature "{visible(name[:80])}": {what}', advice
        )

    def __getitem__(self, name: str) -> tuple[float, ...]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Weights({self._values!r})"

    def dot(self, features: Mapping[str, Sequence[float]]) -> float:
        """Return the score of a hypothesis: the sum of its features, each times its weight.

        Raises:
            CorpusFormatError: ``E_FEATURE_WEIGHTS`` for a feature without weights, or with another
                number of values.
        """
        total = 0.0
        for name, values in features.items():
            if name not in self._values:
                self._refuse(name, "the feature has no weights", "Give one for each value.")
            if len(values) != len(self._values[name]):
                self._refuse_length(name, len(values))
            for weight, value in zip(self._values[name], values, strict=True):
                total += weight * value
        return total

    def replaced(self, values: Mapping[str, Sequence[float]]) -> Weights:
        """Return these weights with some added or changed."""
        return Weights({**self._values, **values})

    def without(self, names: Iterable[str]) -> Weights:
        """Return these weights without those of some features."""
        left = {name: values for name, values in self._values.items() if name not in set(names)}
        found = Weights(left)
        found._source, found._lines = self._source, self._lines
        return found

    def completed(self, features: Mapping[str, int]) -> Weights:
        """Return the weights of exactly these features, in their order.

        A feature without weights gets its default, with a warning.

        Args:
            features: How many values each feature has.

        Raises:
            CorpusFormatError: ``E_FEATURE_WEIGHTS`` for weights of another feature, for another
                number of weights than values, or for a missing feature that has no default.

        Examples:
            >>> Weights({"WordPenalty0": (-0.3,)}).completed({"WordPenalty0": 1})
            Weights({'WordPenalty0': (-0.3,)})
        """
        for name in self._values:
            if name not in features:
                self._refuse(
                    name,
                    "there is no such feature here",
                    f"The features are: {', '.join(features)}.",
                )
        missing = [name for name in features if name not in self._values]
        chosen: dict[str, tuple[float, ...]] = {}
        for name, length in features.items():
            values = self._values.get(name)
            chosen[name] = self._default(name, length) if values is None else values
            if len(chosen[name]) != length:
                self._refuse_length(name, length)
        if missing:
            shown = ", ".join(f"{name}= {_spaced(chosen[name])}" for name in missing)
            warnings.warn(
                f"{self._source}: no weight for {len(missing)} of the features; defaults are "
                f"used: {shown}",
                TreelmWarning,
                stacklevel=2,
            )
        return Weights(chosen)

    def _default(self, name: str, length: int) -> tuple[float, ...]:
        value = DEFAULTS.get(name.rstrip("0123456789"))
        if value is None:
            self._refuse(name, "it has no weights, and there is no default", "Add a line for it.")
        return (value,) * length

    def _refuse_length(self, name: str, length: int) -> NoReturn:
        found = len(self._values[name])
        self._refuse(
            name,
            f"{found} {'weight' if found == 1 else 'weights'}, but {length} "
            f"{'value' if length == 1 else 'values'}",
            "Give one weight for each value.",
        )

    @classmethod
    def read(cls, source: Source) -> Weights:
        """Return the weights in a file.

        It is JSON, ``{"LM0": [0.5]}``; a ``moses.ini``, of which the section ``[weight]`` is read;
        or lines of such a section alone, ``LM0= 0.5``.

        Raises:
            CorpusFormatError: ``E_FEATURE_WEIGHTS`` with line and feature, where they are known.
        """
        lines = list(read_lines(source))
        name = source_name(source)
        first = next((line.lstrip() for line in lines if line.strip()), "")
        weights = cls({})
        weights._source = name
        read = _json_weights if first.startswith("{") else _moses_weights
        weights._values, weights._lines = read(lines, name)
        if not weights._values:
            raise _malformed(
                name, None, "there are no weights in this file", "Lines look like: LM0= 0.5"
            )
        weights._check()
        return weights

    def write(self, target: str | Path) -> None:
        """Write the weights as JSON, or as lines of a ``moses.ini`` if the name ends in ``.ini``.

        The file appears under its name when it is complete.
        """
        if Path(target).suffix == ".ini":
            rows = (f"{name}= {' '.join(map(repr, each))}" for name, each in self._values.items())
            text = "\n".join(("[weight]", *rows))
        else:
            text = json.dumps({name: list(each) for name, each in self._values.items()}, indent=1)
        with write_atomically(target) as file:
            file.write(f"{text}\n".encode())


def _malformed(source: str, line: int | None, what: str, advice: str) -> CorpusFormatError:
    place = source if line is None else f"{source}:{line}"
    return CorpusFormatError(
        f"{place}: {what}. {advice}", code="E_FEATURE_WEIGHTS", path=source, line=line
    )


def _spaced(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def _moses_weights(
    lines: Sequence[str], source: str
) -> tuple[dict[str, tuple[float, ...]], dict[str, int]]:
    """Return the weights of a section, or of all lines of a file without sections, and places."""
    values: dict[str, tuple[float, ...]] = {}
    places: dict[str, int] = {}
    has_sections = any(_SECTION.fullmatch(line.strip()) for line in lines)
    inside = not has_sections
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if section := _SECTION.fullmatch(text):
            inside = section[1].strip() == "weight"
            continue
        if not text or not inside:
            continue
        name, equals, rest = text.partition("=")
        name = name.strip()
        if not equals or not _NAME.fullmatch(name):
            raise _malformed(
                source,
                number,
                f'"{visible(text[:60])}" is not a feature with weights',
                "Lines look like: LM0= 0.5",
            )
        if name in values:
            raise _malformed(
                source,
                number,
                f'feature "{visible(name[:80])}" has weights in line {places[name]} already',
                "Remove one of the two lines.",
            )
        try:
            values[name] = tuple(float(each) for each in rest.split())
        except ValueError as error:
            raise _malformed(
                source,
                number,
                f'feature "{visible(name[:80])}": "{visible(rest.strip()[:60])}" is not a list of '
                "numbers",
                "Lines look like: LM0= 0.5",
            ) from error
        places[name] = number
    return values, places


def _json_weights(
    lines: Sequence[str], source: str
) -> tuple[dict[str, tuple[float, ...]], dict[str, int]]:
    """Return the weights of an object of numbers and lists of numbers; lines are not known."""
    try:
        found = parse_json("\n".join(lines).encode())
    except ValueError as error:
        raise _malformed(source, None, str(error), 'Write {"LM0": [0.5]}.') from error
    values: dict[str, tuple[float, ...]] = {}
    for name, each in found.items() if isinstance(found, dict) else ():
        numbers = each if isinstance(each, list) else [each]
        if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
            raise _malformed(
                source,
                None,
                f'feature "{visible(name[:80])}": its weights are not a list of numbers',
                'Write {"LM0": [0.5]}.',
            )
        values[name] = tuple(map(_as_float, numbers))
    return values, {}


def _as_float(value: float) -> float:
    """Return a number of JSON as a float; integers have no limit there."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
