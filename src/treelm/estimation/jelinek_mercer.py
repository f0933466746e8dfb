"""Recursive Jelinek-Mercer smoothing: weights of relative frequencies, by EM on held-out events.

``p_j(x|k) = L f_j(x|k) + (1 - L) p_{j+1}(x|k')``, with one weight L for all contexts of a level
that were seen about equally often (a bucket).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError
from treelm.estimation.chain import ChainCounts
from treelm.events.counts import EventCounts, Ids

Floats = npt.NDArray[np.float64]
#: Gives the base probability of rows of the last level.
BaseOf = Callable[[Ids], Floats]

LOWEST_WEIGHT, HIGHEST_WEIGHT = 1e-6, 1 - 1e-6
#: Buckets 0..63 cover every 64-bit count.
BUCKETS = 64


@dataclass(frozen=True)
class LevelWeights:
    """The weights of one level.

    Args:
        weights: L by bucket of the context's count.
        traces: Held-out log likelihood after each round of EM, by the smallest bucket of each
            group of merged buckets.
    """

    weights: Floats
    traces: dict[int, list[float]]


@dataclass(frozen=True)
class _HeldOut:
    """Held-out events with the counts of the training events they belong to."""

    counts: ChainCounts
    rows: Ids
    times: Floats
    below: Floats  # p_{j+1} of each row

    def at(self, level: int) -> tuple[npt.NDArray[np.uint64], ...]:
        return self.counts.look_up(level, self.rows)


def count_bucket(
    totals: npt.NDArray[np.uint64], types: npt.NDArray[np.uint64] | None = None
) -> npt.NDArray[np.int64]:
    """Return the bucket of every context: counts of 1, 2, 3-4, 5-8, ... are 0, 1, 2, 3, ...

    Args:
        totals: Counts of the contexts.
        types: Their number of types, to use the count per type instead.

    Examples:
        >>> count_bucket(np.array([1, 2, 3, 4, 5, 8, 9], dtype=np.uint64)).tolist()
        [0, 1, 2, 2, 3, 3, 4]
    """
    rounded = totals.astype(np.int64)
    if types is not None:
        rounded = -(-rounded // np.maximum(types.astype(np.int64), 1))
    bits = np.frexp(np.maximum(rounded - 1, 0).astype(np.float64))[1]
    return bits.astype(np.int64)


def merge_buckets(held_out: Floats, *, minimum: float) -> npt.NDArray[np.int64]:
    """Return for every bucket the smallest bucket of its group.

    From the largest bucket down, one with fewer than `minimum` held-out events joins the next
    smaller one; in the end the smallest group, if still too small, joins the next larger one.
    """
    groups = [[number] for number in range(len(held_out))]

    def is_small(group: list[int]) -> bool:
        return bool(held_out[group].sum() < minimum)

    for place in range(len(groups) - 1, 0, -1):
        if is_small(groups[place]):
            groups[place - 1] += groups.pop(place)
    if len(groups) > 1 and is_small(groups[0]):
        groups[0] += groups.pop(1)
    result = np.zeros(len(held_out), dtype=np.int64)
    for group in groups:
        result[group] = min(group)
    return result


def em_weight(
    frequency: Floats,
    below: Floats,
    times: Floats,
    *,
    start: float = 0.5,
    tolerance: float = 1e-6,
    rounds: int = 100,
) -> tuple[float, list[float]]:
    """Return the weight that EM finds for one bucket, and the log likelihood before each round.

    Args:
        frequency: f_j of the held-out events.
        below: p_{j+1} of the held-out events.
        times: How often each was held out.
        start: Initial weight.
        tolerance: A smaller change ends the search.
        rounds: Most rounds.

    Examples:
        >>> weight, _ = em_weight(
        ...     np.array([0.5, 0, 1]), np.array([0.2, 0.1, 0.5]), np.ones(3), rounds=1
        ... )
        >>> round(weight, 6)
        0.460317
    """
    weight, trace = start, []
    size = times.sum()
    for _ in range(rounds if size else 0):
        mixed = weight * frequency + (1 - weight) * below
        trace.append(float((times * np.log(mixed)).sum()))
        updated = float((times * weight * frequency / mixed).sum() / size)
        change, weight = abs(updated - weight), updated
        if change < tolerance:
            break
    return weight, trace


def jelinek_mercer_weights(
    splits: Sequence[tuple[ChainCounts, EventCounts]],
    counts: ChainCounts,
    base: BaseOf,
    *,
    by_ratio: bool = False,
    min_held_out: float = 100,
) -> list[LevelWeights]:
    """Return the weights of every level, estimated from the last level up.

    Args:
        splits: Pairs of training counts and the events held out from them: one pair for a held-out
            text, one pair per fold for deleted interpolation.
        counts: Counts that the weights will be used with.
        base: Base probability of rows.
        by_ratio: Buckets by count per type instead of by count.
        min_held_out: Buckets with fewer held-out events are merged.

    Raises:
        EstimationError: ``E_ZERO_BASE`` if a held-out event has no probability at all, ``E_COUNT``
            if counts are not token counts.
    """
    for each, _ in (*splits, (counts, None)):
        if each.kind != "tokens":
            raise EstimationError("Jelinek-Mercer needs token counts.", code="E_COUNT")
    held = [_held_out(part, events, base) for part, events in splits]
    weights: list[LevelWeights] = []
    for level in range(len(counts) - 1, -1, -1):
        found = _level_weights(held, counts, level, by_ratio=by_ratio, minimum=min_held_out)
        weights.insert(0, found)
        held = [_one_level_up(part, level, found.weights, by_ratio=by_ratio) for part in held]
    return weights


def _held_out(counts: ChainCounts, events: EventCounts, base: BaseOf) -> _HeldOut:
    rows = events.rows
    below = base(rows)
    if np.isnan(below).any():
        raise EstimationError("a base probability is NaN.", code="E_NAN")
    return _HeldOut(counts, rows, events.counts.astype(np.float64), below)


def _frequencies(
    part: _HeldOut, level: int, *, by_ratio: bool
) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    seen, totals, types = part.at(level)
    known = totals > 0
    frequency = seen / np.maximum(totals, 1)
    return frequency, known, count_bucket(totals, types if by_ratio else None)


def _level_weights(
    held: Sequence[_HeldOut],
    counts: ChainCounts,
    level: int,
    *,
    by_ratio: bool,
    minimum: float,
) -> LevelWeights:
    pieces = []
    for part in held:
        frequency, known, buckets = _frequencies(part, level, by_ratio=by_ratio)
        if ((frequency == 0) & (part.below == 0)).any():
            raise EstimationError(
                f"a held-out event has no probability at level {level} or below, so no weight "
                "can help. The base must give everything some probability.",
                code="E_ZERO_BASE",
            )
        pieces.append((frequency[known], part.below[known], part.times[known], buckets[known]))
    frequency, below, times, buckets = (
        np.concatenate([piece[i] for piece in pieces]) for i in range(4)
    )
    _, totals, types = counts.contexts(level)
    used = count_bucket(totals, types if by_ratio else None)
    top = max([0, *used.tolist(), *buckets.tolist()])
    sizes = np.bincount(buckets, weights=times, minlength=top + 1)
    group_of = merge_buckets(sizes.astype(np.float64), minimum=minimum)
    weights = np.full(BUCKETS, 0.5)
    traces = {}
    for group in sorted(set(group_of.tolist())):
        chosen = group_of[buckets] == group
        weight, traces[group] = em_weight(frequency[chosen], below[chosen], times[chosen])
        weights[: top + 1][group_of == group] = min(max(weight, LOWEST_WEIGHT), HIGHEST_WEIGHT)
    weights[top + 1 :] = weights[top]
    return LevelWeights(weights, traces)


def _one_level_up(part: _HeldOut, level: int, weights: Floats, *, by_ratio: bool) -> _HeldOut:
    frequency, known, buckets = _frequencies(part, level, by_ratio=by_ratio)
    weight = np.where(known, weights[buckets], 0.0)
    below = weight * frequency + (1 - weight) * part.below
    return _HeldOut(part.counts, part.rows, part.times, below)
