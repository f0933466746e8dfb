"""Axes of charts: round tick values, and the position of a value in the picture."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Tick labels longer than this are written with a power of ten.
_LONGEST_MARK = 9
#: Larger values do not fit any picture, smaller ones are 0.
_LARGEST, _SMALLEST = 1e290, 1e-290


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, drawn from `start` to `end`.

    Args:
        low: Smallest value shown.
        high: Largest value shown.
        ticks: Values with a tick.
        start: Position of `low`, in pixels.
        end: Position of `high`.
        logarithmic: Whether equal ratios, not differences, have equal lengths.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    start: float = 0.0
    end: float = 1.0
    logarithmic: bool = False

    def on(self, start: float, end: float) -> Axis:
        """Return the same axis at another position."""
        return Axis(self.low, self.high, self.ticks, start, end, self.logarithmic)

    def place(self, value: float) -> float:
        """Return the position of a value.

        Examples:
            >>> Axis(1, 100, (), 0, 10, logarithmic=True).place(10)
            5.0
        """
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def can_be_drawn(value: float) -> bool:
    """Return whether a value can be shown on an axis: infinity cannot."""
    return abs(value) < _LARGEST


def linear_axis(values: Iterable[float], *, zero: bool = False, marks: int = 5) -> Axis:
    """Return an axis with round ticks that covers all the values.

    Args:
        values: What must fit; infinite and monstrous values are ignored.
        zero: Whether the axis must include 0, as that of bars must.
        marks: Approximate number of ticks.

    Examples:
        >>> linear_axis([0.31, 0.87], zero=True).ticks
        (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """
    finite = [value for value in values if can_be_drawn(value)]
    if zero or not finite:
        finite.append(0.0)
    low, high = min(finite), max(finite)
    largest = max(abs(low), abs(high))
    if high - low <= max(_SMALLEST, 1e-8 * largest):
        room = largest / 2 if largest > _SMALLEST else 1.0
        low, high = (low, high + room) if zero and low >= 0 else (low - room, high + room)
    step = _round_step((high - low) / marks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(_tidy(place * step) for place in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def log_axis(values: Iterable[float]) -> Axis:
    """Return a logarithmic axis for positive values, with ticks at 1, 2 and 5 times powers of ten.

    Raises:
        ValueError: for a value that is not positive (or too small to be distinguished from 0).

    Examples:
        >>> log_axis([1000, 40000]).ticks
        (1000.0, 2000.0, 5000.0, 10000.0, 20000.0, 50000.0)
    """
    finite = [value for value in values if can_be_drawn(value)]
    if any(value <= _SMALLEST for value in finite):
        raise ValueError("a logarithmic axis cannot show 0 or less")
    low, high = min(finite, default=1.0), max(finite, default=10.0)
    decades = math.log10(high) - math.log10(low)
    factors = (1, 2, 5) if decades <= 2.5 else (1,)
    every = max(1, round(decades / 6)) if len(factors) == 1 else 1
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    marks = [_tidy(factor * 10.0**power) for power in powers for factor in factors]
    first = max(place for place, mark in enumerate(marks) if mark <= low * (1 + 1e-9))
    last = min(place for place, mark in enumerate(marks) if mark >= high * (1 - 1e-9))
    last = max(last, first + 1)
    ticks = tuple(marks[first : last + 1])
    return Axis(ticks[0], ticks[-1], ticks[::every], logarithmic=True)


def tick_text(value: float) -> str:
    """Return a tick label as people write it.

    Examples:
        >>> tick_text(0.25), tick_text(12000.0), tick_text(3e9), tick_text(-1.0)
        ('0.25', '12,000', '3e9', '−1')
    """
    plain = f"{value:,.10f}".rstrip("0").rstrip(".") if abs(value) >= 1e-4 or not value else ""
    if not plain or len(plain) > _LONGEST_MARK:
        mantissa, power = f"{value:.6e}".split("e")
        plain = f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    return plain.replace("-", "−")


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))


def _tidy(value: float) -> float:
    """Return a tick without the rounding noise of binary fractions."""
    return float(f"{value:.10g}") + 0.0
