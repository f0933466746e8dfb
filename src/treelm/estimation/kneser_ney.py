"""Kneser-Ney smoothing: discounts from counts of counts.

With ``n_r`` entries counted r times at a level, interpolated Kneser-Ney subtracts one discount D
from every count, and modified Kneser-Ney (Chen & Goodman 1998) one for counts of one, of two, and
of three or more. Small or odd data, from which no discount can be estimated, get fixed ones and a
warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeAlias

from treelm.errors import EstimationError, TreelmWarning
from treelm.estimation.chain import ChainCounts
from treelm.estimation.smoothing import Discounts, Smoothing

CountsOfCounts: TypeAlias = tuple[int, int, int, int]

#: Used where a discount cannot be estimated.
FALLBACK_DISCOUNT = 0.75
MODIFIED_FALLBACK: Discounts = (0.5, 1.0, 1.5)

#: An estimated discount of 0 would leave nothing for unseen events, one of 1 would erase events
#: seen once.
LOWEST_DISCOUNT, HIGHEST_DISCOUNT = 0.01, 0.99
LOWEST_MODIFIED = 1e-6


def kneser_ney(
    counts: ChainCounts,
    *,
    fixed: Sequence[float] | None = None,
    fallback: float = FALLBACK_DISCOUNT,
    min_counts: Sequence[int] = (),
) -> Smoothing:
    """Return interpolated Kneser-Ney smoothing.

    Args:
        counts: Counts of the chain; with token counts this is absolute discounting.
        fixed: Discounts to use as they are, one per level.
        fallback: Discount where none can be estimated.
        min_counts: Smallest token count kept, per level.
    """
    if fixed is not None:
        _check_levels(len(fixed), counts, "discounts")
        discounts = fixed_discounts(fixed)
    else:
        discounts = kneser_ney_discounts(_statistics(counts), fallback=fallback)
    return Smoothing(tuple(discounts), min_counts=tuple(min_counts))


def modified_kneser_ney(
    counts: ChainCounts, *, lmplz: bool = False, min_counts: Sequence[int] = ()
) -> Smoothing:
    """Return modified Kneser-Ney smoothing; `lmplz` for discounts exactly as KenLM's."""
    discounts = modified_discounts(_statistics(counts), lmplz=lmplz)
    return Smoothing(tuple(discounts), min_counts=tuple(min_counts))


def berkeley(
    counts: ChainCounts,
    *,
    fixed: Sequence[float] | None = None,
    min_counts: Sequence[int] | None = None,
) -> Smoothing:
    """Return Kneser-Ney as the Berkeley LM does it: the last level undiscounted, no base below.

    Args:
        counts: Counts of the chain.
        fixed: Discounts of all levels but the last.
        min_counts: Smallest token count kept, per level; None for those of Berkeley LM, which
            leave out entries of order 4 and more that were seen once.
    """
    if fixed is not None:
        _check_levels(len(fixed) + 1, counts, "discounts but the last")
        discounts = fixed_discounts(fixed)
    else:
        discounts = kneser_ney_discounts(_statistics(counts)[:-1])
    if min_counts is None:
        min_counts = [2 if width >= 3 else 1 for width in counts.chain.widths]
    return Smoothing((*discounts, (0.0, 0.0, 0.0)), min_counts=tuple(min_counts), without_base=True)


def kneser_ney_discounts(
    counts_of_counts: Sequence[CountsOfCounts], *, fallback: float = FALLBACK_DISCOUNT
) -> list[Discounts]:
    """Return the discount of every level, ``n_1 / (n_1 + 2 n_2)``.

    Args:
        counts_of_counts: n_1..n_4 of every level.
        fallback: Used, with a warning, at levels where n_1 or n_2 is 0.

    Examples:
        >>> kneser_ney_discounts([(2, 2, 1, 0)])[0][0] == 1 / 3
        True
    """
    result = []
    for level, (n1, n2, _, _) in enumerate(counts_of_counts):
        if n1 == 0 or n2 == 0:
            _warn(level, f"n_1 = {n1} and n_2 = {n2}", f"{fallback} is")
            value = fallback
        else:
            value = min(max(n1 / (n1 + 2 * n2), LOWEST_DISCOUNT), HIGHEST_DISCOUNT)
        result.append((value, value, value))
    return result


def modified_discounts(
    counts_of_counts: Sequence[CountsOfCounts], *, lmplz: bool = False
) -> list[Discounts]:
    """Return the three discounts of every level, as Chen & Goodman estimate them.

    Args:
        counts_of_counts: n_1..n_4 of every level.
        lmplz: Take estimates exactly as KenLM's ``lmplz --discount_fallback`` does; otherwise a
            discount is at least 1e-6, so that unseen events keep some probability.

    Examples:
        >>> modified_discounts([(10, 5, 3, 2)])[0]
        (0.5, 1.1, 1.6666666666666667)
    """
    return [
        _modified(level, numbers, lmplz=lmplz) for level, numbers in enumerate(counts_of_counts)
    ]


def fixed_discounts(values: Sequence[float]) -> list[Discounts]:
    """Return given discounts, one per level, as they are.

    Raises:
        EstimationError: ``E_DISCOUNT`` if one is outside [0, 1].
    """
    for value in values:
        if not 0 <= value <= 1:
            raise EstimationError(
                f"a Kneser-Ney discount must be between 0 and 1, not {value}.", code="E_DISCOUNT"
            )
    return [(value, value, value) for value in map(float, values)]


def _modified(level: int, numbers: CountsOfCounts, *, lmplz: bool) -> Discounts:
    n1, n2, n3, n4 = numbers
    if 0 in {n1, n2, n3}:
        _warn(level, f"n_1, n_2, n_3 = {n1}, {n2}, {n3}", "0.5, 1 and 1.5 are")
        return MODIFIED_FALLBACK
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    if not all(0 <= value <= most for most, value in enumerate(found, 1)):
        shown = ", ".join(f"{value:.3g}" for value in found)
        _warn(level, f"the estimates are {shown}", "0.5, 1 and 1.5 are")
        return MODIFIED_FALLBACK
    if lmplz:
        return found
    one, two, three = (max(value, LOWEST_MODIFIED) for value in found)
    return one, two, three


def _warn(level: int, why: str, instead: str) -> None:
    warnings.warn(
        f"no discount can be estimated at level {level} of the back-off chain ({why}), so "
        f"{instead} used. Small, repeated or generated data do this; more text helps.",
        TreelmWarning,
        stacklevel=4,
    )


def _statistics(counts: ChainCounts) -> list[tuple[int, int, int, int]]:
    return [counts.counts_of_counts(level) for level in range(len(counts))]


def _check_levels(given: int, counts: ChainCounts, what: str) -> None:
    if given != len(counts):
        raise EstimationError(
            f"the chain has {len(counts)} levels and needs as many {what}.", code="E_DISCOUNT"
        )
