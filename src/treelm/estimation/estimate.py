"""The one estimator: from the counts of any chain and a smoothing to a back-off table."""

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
from treelm.estimation.smoothing import Smoothing
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress, kernel_report

Precision = Literal["single", "double"]


@dataclass(frozen=True, slots=True)
class UniformBase:
    """Below the last level all outcomes ``0 .. size-1`` are equally likely.

    Args:
        size: Number of outcomes.
    """

    size: int


@dataclass(frozen=True, slots=True)
class GivenBase:
    """Below the last level probabilities come from elsewhere.

    Args:
        probabilities: One for every entry of the last level, in the order of its entries.
    """

    probabilities: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoBase:
    """There is nothing below the last level: unseen outcomes have no probability."""


Base = UniformBase | GivenBase | NoBase


def estimate(
    counts: ChainCounts,
    smoothing: Smoothing,
    base: Base,
    *,
    outcomes: int,
    first_contexts: int = 0,
    precision: Precision = "single",
    use_up: bool = False,
    progress: Progress = SILENT,
) -> BackoffTable:
    """Return the table of a chain.

    Args:
        counts: Counts of every level.
        smoothing: How they are smoothed.
        base: What is below the last level.
        outcomes: All outcome ids are below this number (in a sequence chain the pad's too).
        first_contexts: All ids of the first context column are below it; unused for sequences.
        precision: ``single`` or ``double``: how probabilities are stored.
        use_up: Whether the counts are not needed any more: chains of words, made with `outcomes`,
            are then let go of on the way.
        progress: Called with the number of entries done.

    Raises:
        EstimationError: ``E_ARGUMENT`` if the smoothing does not fit the counts, ``E_CHAIN`` if it
            does not fit the base.
    """
    chain = counts.chain
    levels = len(counts)
    if smoothing.without_base and isinstance(base, GivenBase):
        raise EstimationError(
            "Berkeley's smoothing leaves no probability below the last level, so it works only "
            "with chains over a closed set of outcomes.",
            code="E_CHAIN",
        )
    given = np.ascontiguousarray(base.probabilities) if isinstance(base, GivenBase) else None
    pad = next((pad for pad in chain.pads if pad is not None), None)
    if chain.sequence and pad is None:
        pad = outcomes - 1  # unigrams: a word has no context
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
        compact=False,
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
            use_up=use_up,
            progress=kernel_report(step),
        )
    return BackoffTable(native)


def _per_level(min_counts: Sequence[int], levels: int) -> list[int]:
    return list(min_counts) if min_counts else [1] * levels
