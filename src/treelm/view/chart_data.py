"""The data of charts. NaN is refused; infinite values are allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from treelm.view.axes import can_be_drawn


@dataclass(frozen=True)
class Bar:
    """A value with its name and, where there is one, its interval.

    Args:
        label: Name of the bar; in groups, of the series it belongs to.
        value: Its length.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        _check_numbers((self.value, self.low, self.high))
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval needs two ends")

    @property
    def ends(self) -> tuple[float, ...]:
        """All values that must fit on the axis."""
        return tuple(v for v in (self.value, self.low, self.high) if v is not None)


class Point(NamedTuple):
    """A point of a curve or a scatter plot, with the interval of `y` where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str | None = None


@dataclass(frozen=True)
class Series:
    """Points that belong together."""

    name: str
    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        for point in self.points:
            _check_numbers(point[:4])


@dataclass(frozen=True)
class Reference:
    """A reference value, drawn as a dashed line: chance, a published number."""

    value: float
    label: str

    def __post_init__(self) -> None:
        if not can_be_drawn(self.value):
            raise ValueError("a reference line needs a finite value")


def _check_numbers(values: Iterable[float | None]) -> None:
    if any(value is not None and math.isnan(value) for value in values):
        raise ValueError("NaN cannot be drawn")
