"""Formulae over the regions of an experiment, as SyntaxGym's test suites have them.

``(2;%match%) < (2;%mismatch%)`` says that region 2 is less surprising in the condition ``match``
than in ``mismatch``; ``*`` is the whole sentence. There are numbers, ``+ - * /``, ``< > =``, ``&``
and ``|`` in the usual order, and brackets of both kinds.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from treelm.errors import CorpusFormatError


class Region(NamedTuple):
    """A region in one of the conditions of an item.

    Args:
        number: As the suite numbers it; ``*`` is the whole sentence.
        condition: Name of the condition.
    """

    number: str
    condition: str


#: Numbers of regions; the surprisals of an item.
Values = Mapping[Region, float]
_Evaluate = Callable[[Values], float]

_TOKEN = re.compile(
    r"(?:\(\s*(?P<number>\*|\d+)\s*;\s*%(?P<condition>[^%]+)%\s*\)"
    r"|(?P<constant>\d+\.?\d*|\.\d+)|(?P<symbol>[-+*/<>=&|()\[\]]))"
)
_CLOSING = {"(": ")", "[": "]"}
#: Operators from those that bind least to those that bind most.
_LEVELS: tuple[dict[str, Callable[[float, float], float]], ...] = (
    {"|": lambda one, other: bool(one) or bool(other)},
    {"&": lambda one, other: bool(one) and bool(other)},
    {"<": operator.lt, ">": operator.gt, "=": operator.eq},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda one, other: one / other if other else math.nan},
)
_LOGICAL = 3  # levels whose results are true or false


@dataclass(frozen=True)
class Formula:
    """What a suite predicts of every item.

    Args:
        text: As the suite spells it.
        regions: The regions that it is about.
    """

    text: str
    regions: frozenset[Region]
    _evaluate: _Evaluate

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Return the formula of a text.

        Raises:
            CorpusFormatError: ``E_SUITE``, naming the place, if it is malformed or not something
                that holds or does not.

        Examples:
            >>> formula = Formula.parse("[(2;%a%) < (2;%b%)] & [(*;%a%) - 1.5 < (*;%b%)]")
            >>> values = {("2", "a"): 3.0, ("2", "b"): 4.0, ("*", "a"): 9.0, ("*", "b"): 8.0}
            >>> formula.holds({Region(*place): value for place, value in values.items()})
            True
        """
        reader = _Reader(text)
        evaluate, is_logical = reader.expression(0)
        if reader.next.symbol or reader.next.evaluate is not None:
            raise reader.malformed("an operator is missing")
        if not is_logical:
            raise reader.malformed("it is a number; a prediction compares numbers by <, > or =")
        return cls(text, frozenset(reader.regions), evaluate)

    def holds(self, values: Values) -> bool:
        """Return whether it is true of an item; never if a difference of infinities decides it.

        Args:
            values: Of all its regions.
        """
        return bool(self._evaluate(values))


class _Token(NamedTuple):
    place: int
    symbol: str = ""
    evaluate: _Evaluate | None = None


class _Reader:
    """Reads a formula by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.regions: set[Region] = set()
        self._tokens = self._read_tokens()
        self.next = next(self._tokens)

    def malformed(self, what: str, token: _Token | None = None) -> CorpusFormatError:
        place = (token or self.next).place
        return CorpusFormatError(
            f'the formula "{self._text}" is malformed at character {place + 1}: {what}.',
            code="E_SUITE",
        )

    def _read_tokens(self) -> Iterator[_Token]:
        place = 0
        while rest := self._text[place:].lstrip():
            place = len(self._text) - len(rest)
            found = _TOKEN.match(self._text, place)
            if found is None:
                raise self.malformed("expected (REGION;%CONDITION%)", _Token(place))
            if found["condition"] is not None:
                region = Region(found["number"], found["condition"].strip())
                self.regions.add(region)
                yield _Token(place, evaluate=operator.itemgetter(region))
            elif found["constant"] is not None:
                yield _Token(place, evaluate=_constant(float(found["constant"])))
            else:
                yield _Token(place, symbol=found["symbol"])
            place = found.end()
        while True:
            yield _Token(len(self._text))

    def _take(self) -> _Token:
        token, self.next = self.next, next(self._tokens)
        return token

    def expression(self, level: int) -> tuple[_Evaluate, bool]:
        """Return the value of what binds at least so much, and whether it is true or false."""
        if level == len(_LEVELS):
            return self._operand()
        left, is_logical = self.expression(level + 1)
        while self.next.symbol in _LEVELS[level]:
            token = self._take()
            right, is_right_logical = self.expression(level + 1)
            takes_logical = level < _LOGICAL - 1
            if not is_logical == is_right_logical == takes_logical:
                kind = "what is true or false" if takes_logical else "numbers"
                raise self.malformed(f"{token.symbol} is between {kind}", token)
            left = _combined(_LEVELS[level][token.symbol], left, right)
            is_logical = level < _LOGICAL
        return left, is_logical

    def _operand(self) -> tuple[_Evaluate, bool]:
        token = self._take()
        if token.evaluate is not None:
            return token.evaluate, False
        if token.symbol == "-":
            value, is_logical = self._operand()
            if is_logical:
                raise self.malformed("- is before a number", token)
            return lambda values: -value(values), False
        if token.symbol not in _CLOSING:
            raise self.malformed("expected a region, a number or a bracket", token)
        inside = self.expression(0)
        if self._take().symbol != _CLOSING[token.symbol]:
            raise self.malformed(f"this {token.symbol} is never closed", token)
        return inside


def _constant(value: float) -> _Evaluate:
    return lambda _: value


def _combined(
    combine: Callable[[float, float], float], left: _Evaluate, right: _Evaluate
) -> _Evaluate:
    return lambda values: combine(left(values), right(values))
