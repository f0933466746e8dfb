"""How the counts of a chain are smoothed, however that was estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: Discounts of counts of one, of two, and of three or more.
Discounts: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How the counts of each level are smoothed.

    Args:
        discounts: Subtracted from counts of one, two, and three or more, per level.
        weights: Per level the weights of relative frequencies by bucket of the context's count
            (Jelinek-Mercer), used instead of discounts; empty for none.
        by_ratio: Whether buckets go by count per type.
        min_counts: Per level the smallest token count of an entry that is kept; what is left out
            goes to the level below.
        without_base: Whether the last level is not discounted, so that nothing may be below it.
    """

    discounts: tuple[Discounts, ...]
    weights: tuple[tuple[float, ...], ...] = ()
    by_ratio: bool = False
    min_counts: tuple[int, ...] = ()
    without_base: bool = False
