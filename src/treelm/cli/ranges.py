"""The numbers that options accept: declared beside their type, checked here, in one message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cyclopts import Parameter, Token, convert

from treelm.limits import LARGEST_COUNT, LARGEST_WEIGHT


class OutOfRange(ValueError):
    """A number that an option does not accept.

    Args:
        number: The number.
        allowed: What is accepted.
    """

    def __init__(self, number: float, allowed: Range) -> None:
        too_large = allowed.most is not None and number > allowed.most
        super().__init__(f"it must be {allowed.ends if too_large else allowed}.")
        self.number = number


@dataclass(frozen=True, kw_only=True)
class Range:
    """The finite numbers that an option accepts; None where there is no such end."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __call__(self, _: object, value: object) -> None:
        """Refuse a number, or a list with one, that lies outside."""
        for number in value if isinstance(value, list | tuple) else [value]:
            if isinstance(number, int | float) and number not in self:
                raise OutOfRange(number, self)

    def __contains__(self, number: float) -> bool:
        return (
            (isinstance(number, int) or math.isfinite(number))
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        # Bounds that only keep numbers in the range of the machine are of no interest.
        if self.most is not None and self.most >= LARGEST_WEIGHT:
            return str(Range(least=self.least, above=self.above))
        return self.ends

    @property
    def ends(self) -> str:
        """What is accepted, with all bounds."""
        if self.least is not None and self.most is not None:
            return f"between {self.least} and {self.most}"
        if self.least is not None and self.below is None:
            return f"{self.least} or more"
        ends = {
            "at least": self.least,
            "greater than": self.above,
            "at most": self.most,
            "less than": self.below,
        }
        shown = " and ".join(f"{name} {end}" for name, end in ends.items() if end is not None)
        return shown or "a finite number"


def within(allowed: Range, **how: Any) -> Parameter:
    """Return what makes an option accept the numbers of a range, written as numbers of its type.

    Args:
        allowed: The range.
        how: What else there is to say about the option.
    """
    return Parameter(validator=allowed, converter=read_numbers, **how)


def at_least(least: float, most: float = LARGEST_COUNT) -> Parameter:
    """Return what makes an option accept numbers from `least` on, as far as anyone needs them."""
    return within(Range(least=least, most=most))


def between(least: float, most: float) -> Parameter:
    """Return what makes an option accept numbers from `least` to `most`, both included."""
    return within(Range(least=least, most=most))


def read_numbers(hint: Any, tokens: Sequence[Token]) -> Any:
    """Return what is written as values of a type: whole numbers have no point."""
    return convert(hint, tokens, converter=_number)


#: How whole numbers begin that are not decimal.
_BASES = ("0x", "0o", "0b")


def _number(kind: type, text: str) -> Any:
    """Return one value; without this, 2.5 would become the whole number 2."""
    if kind is int:
        digits = text.lstrip("+-").lower()
        return int(text, 0) if digits.startswith(_BASES) else int(text)
    return kind(text)


#: Accepts any finite number.
FINITE = within(Range())
