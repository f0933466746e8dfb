"""The one estimator: counts of any chain and a way of smoothing give a back-off table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError
from treelm.estimation.backoff_table import NO_ID, BackoffTable
from treelm.estimation.chain import ChainCounts
from treelm.estimation.kneser_ney import (
    FALLBACK_DISCOUNT,
    Discounts,
    fixed_discounts,
    kneser_ney_discounts,
    modified_discounts,
)
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress, kernel_report

Precision = Literal["single", "double"]


@dataclass(frozen=True, slots=True)
class UniformBase:
    """Below the last level every outcome ``0 .. size-1`` is as likely as the others.

    Args:
        size: Number of outcomes.
    """

    size: int


@dataclass(frozen=True, slots=True)
class GivenBase:
    """Below the last level probabilities come from somewhere else.

    Args:
        probabilities: One for every entry of the last level, in the order of its entries.
    """

    probabilities: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoBase:
    """Nothing lies below the last level: outcomes never seen have no probability."""


Base = UniformBase | GivenBase | NoBase


@dataclass(frozen=True, slots=True)
class Smoothing:
    """What is done to the counts of each level.

    Args:
        discounts: Taken off counts of one, two, and three or more, per level.
        weights: Per level the weights of relative frequencies by bucket of the context's count
            (Jelinek-Mercer), used instead of discounts; empty for none.
        by_ratio: Buckets go by count per type.
        min_counts: Per level the smallest token count of an entry that is kept; what is left out
            goes to the level below.
        without_base: Whether the last level is not discounted, so that nothing may lie below it.
    """

    discounts: tuple[Discounts, ...]
    weights: tuple[tuple[float, ...], ...] = ()
    by_ratio: bool = False
    min_counts: tuple[int, ...] = ()
    without_base: bool = False


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
        fixed: Discounts to use as they are, one a level.
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


def estimate(
    counts: ChainCounts,
    smoothing: Smoothing,
    base: Base,
    *,
    outcomes: int,
    first_contexts: int = 0,
    precision: Precision = "single",
    progress: Progress = SILENT,
) -> BackoffTable:
    """Return the table of a chain.

    Args:
        counts: Counts of every level.
        smoothing: What is done to them.
        base: What lies below the last level.
        outcomes: All outcome ids are below this number (in a sequence chain the pad's too).
        first_contexts: All ids of the first context column are below it; unused for sequences.
        precision: ``single`` or ``double``: how probabilities are stored.
        progress: Told how many entries are done.

    Raises:
        EstimationError: ``E_ARGUMENT`` if the smoothing does not fit the counts, ``E_CHAIN`` if it
            does not fit the base.
    """
    chain = counts.chain
    levels = len(counts)
    if smoothing.without_base and isinstance(base, GivenBase):
        raise EstimationError(
            "Berkeley's smoothing leaves nothing for what lies below the last level, so it goes "
            "with chains over a closed set of outcomes only.",
            code="E_CHAIN",
        )
    given = np.ascontiguousarray(base.probabilities) if isinstance(base, GivenBase) else None
    pad = next((pad for pad in chain.pads if pad is not None), None)
    if chain.sequence and pad is None:
        pad = outcomes - 1  # unigrams: nothing stands before a word
    shape = _native.TableShape(
        widths=list(chain.widths),
        outcomes=outcomes,
        first_contexts=0 if chain.sequence else first_contexts,
        entries=[],
        contexts=[],
        sequence=chain.sequence,
        value_bits=64 if precision == "double" else 32,
        base_size=base.size if isinstance(base, UniformBase) else 0,
        pad=NO_ID if pad is None else pad,
        empty_weight=1.0,
    )
    total = sum(counts.size(level) for level in range(levels))
    with (
        progress.step("estimating", total=total, unit="entries") as step,
        kernel_errors("estimating a back-off table"),
    ):
        native = _native.estimate_table(
            counts.native,
            shape,
            discounts=list(smoothing.discounts),
            weights=[list(weights) for weights in smoothing.weights] or [[]] * levels,
            by_ratio=smoothing.by_ratio,
            min_counts=_per_level(smoothing.min_counts, levels),
            base=given,
            progress=kernel_report(step),
        )
    return BackoffTable(native)


def _per_level(min_counts: Sequence[int], levels: int) -> list[int]:
    return list(min_counts) if min_counts else [1] * levels


def _statistics(counts: ChainCounts) -> list[tuple[int, int, int, int]]:
    return [counts.counts_of_counts(level) for level in range(len(counts))]


def _check_levels(given: int, counts: ChainCounts, what: str) -> None:
    if given != len(counts):
        raise EstimationError(
            f"the chain has {len(counts)} levels and needs as many {what}.", code="E_DISCOUNT"
        )
