"""Sections 2.3 and 3: discounts from counts of counts."""

from __future__ import annotations

import warnings
from fractions import Fraction

from tests.reference.backoff.symbols import (
    FALLBACK,
    HIGHEST,
    LOWEST,
    MODIFIED_FALLBACK,
    MODIFIED_LOWEST,
    Triple,
)


def discount(n1: int, n2: int, fallback: Fraction = FALLBACK) -> Fraction:
    """D_j of (2.7), clamped; the fallback, unclamped, where n_1 or n_2 is 0."""
    if n1 == 0 or n2 == 0:
        return fallback
    return min(max(Fraction(n1, n1 + 2 * n2), LOWEST), HIGHEST)


def modified_discounts(n1: int, n2: int, n3: int, n4: int, *, lmplz: bool = False) -> Triple:
    """(D_1, D_2, D_3+) of (3.1) with the fallback rule of section 3; clamped unless `lmplz`."""
    estimated = None if 0 in {n1, n2, n3} else _chen_goodman(n1, n2, n3, n4)
    if estimated is None or any(not 0 <= d <= r for r, d in enumerate(estimated, start=1)):
        warnings.warn("modified Kneser-Ney: fallback discounts", stacklevel=2)
        return MODIFIED_FALLBACK
    if lmplz:
        return estimated
    one, two, more = (max(d, MODIFIED_LOWEST) for d in estimated)
    return one, two, more


def _chen_goodman(n1: int, n2: int, n3: int, n4: int) -> Triple:
    """(3.1)."""
    y = Fraction(n1, n1 + 2 * n2)
    return (
        1 - 2 * y * Fraction(n2, n1),
        2 - 3 * y * Fraction(n3, n2),
        3 - 4 * y * Fraction(n4, n3),
    )


def modified_discount(triple: Triple, count: int) -> Fraction:
    """D(n) of (3.2)."""
    return Fraction(0) if count == 0 else triple[min(count, 3) - 1]
