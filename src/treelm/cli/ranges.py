"""The numbers that options accept: declared beside their type, checked here, in one message."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter


class OutOfRange(ValueError):
    """A number that an option does not accept.

    Args:
        number: The number.
        allowed: What is accepted.
    """

    def __init__(self, number: float, allowed: Range) -> None:
        super().__init__(f"it must be {allowed}.")
        self.number = number


@dataclass(frozen=True, kw_only=True)
class Range:
    """The numbers that an option accepts; None where there is no such end."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __call__(self, _: object, value: object) -> None:
        """Refuse a number, or a list with one, that lies outside."""
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and number not in self:
                raise OutOfRange(number, self)

    def __contains__(self, number: float) -> bool:
        return (
            (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
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
        return " and ".join(f"{name} {end}" for name, end in ends.items() if end is not None)


def at_least(least: float) -> Parameter:
    """Return what makes an option accept numbers from `least` on."""
    return Parameter(validator=Range(least=least))


def between(least: float, most: float) -> Parameter:
    """Return what makes an option accept numbers from `least` to `most`, both included."""
    return Parameter(validator=Range(least=least, most=most))
