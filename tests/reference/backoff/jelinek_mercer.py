"""Section 4: recursive Jelinek-Mercer with EM on held-out events."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from tests.reference.backoff.chains import Chain
from tests.reference.backoff.counts import event_counts, level_counts, merge_counts
from tests.reference.backoff.model import BackoffModel, Base, Row, check_outcomes
from tests.reference.backoff.symbols import (
    WEIGHT_HIGHEST,
    WEIGHT_LOWEST,
    BackoffError,
    BucketKind,
    Context,
    Event,
    Events,
    Number,
    Outcome,
    Table,
)


def bucket(total: int, types: int = 1) -> int:
    """The bucket of tok_j(k), or of tok_j(k)/T_j(k): 1, 2, 3-4, 5-8, .. (section 4)."""
    return (math.ceil(Fraction(total, types)) - 1).bit_length()


def merge_buckets(heldout: Mapping[int, int], top: int, minimum: int = 100) -> dict[int, int]:
    """The group, named by its smallest bucket, of each bucket 0..top (section 4).

    From the largest bucket down, one with too few held-out events joins the next smaller one; in
    the end the smallest group, if still too small, joins the next larger one.
    """
    groups = [[number] for number in range(top + 1)]

    def small(group: list[int]) -> bool:
        return sum(heldout.get(number, 0) for number in group) < minimum

    for place in range(top, 0, -1):
        if small(groups[place]):
            groups[place - 1] += groups.pop(place)
    if len(groups) > 1 and small(groups[0]):
        groups[0] += groups.pop(1)
    return {number: min(group) for group in groups for number in group}


def em_step(weight: Number, pairs: Sequence[tuple[Number, Number]]) -> Number:
    """(4.4) once, over the held-out events of a bucket as pairs (f_j, p_{j+1})."""
    return sum(weight * f / (weight * f + (1 - weight) * p) for f, p in pairs) / len(pairs)


def em_weights(
    pairs: Sequence[tuple[Number, Number]],
    *,
    start: float = 0.5,
    tolerance: float = 1e-6,
    rounds: int = 100,
) -> list[float]:
    """The value of L after each round of (4.4), the start first, before clamping."""
    trace = [start]
    floats = [(float(f), float(p)) for f, p in pairs]
    for _ in range(rounds if floats else 0):
        trace.append(float(em_step(trace[-1], floats)))
        if abs(trace[-1] - trace[-2]) < tolerance:
            break
    return trace


def log_likelihood(weight: float, pairs: Iterable[tuple[Number, Number]]) -> float:
    """The held-out log likelihood of a bucket at weight L (I10)."""
    return math.fsum(math.log(weight * f + (1 - weight) * p) for f, p in pairs)


class JelinekMercerModel(BackoffModel):
    """A model of section 4 with its counts tok_j and L_{j,g} per level and merged bucket."""

    def __init__(
        self,
        chain: Chain,
        base: Base,
        rows: Sequence[Mapping[Context, Row]],
        *,
        counts: Sequence[Table],
        weights: Sequence[Mapping[int, Fraction]],
        traces: Sequence[Mapping[int, list[float]]],
        pairs: Sequence[Mapping[int, list[tuple[Fraction, Fraction]]]],
    ) -> None:
        super().__init__(chain, base, rows)
        self.counts = counts
        self.weights = weights
        self.traces = traces
        self.pairs = pairs


def jelinek_mercer(
    events: Events,
    heldout: Events,
    chain: Chain,
    base: Base,
    *,
    buckets: BucketKind = "count",
    min_heldout: int = 100,
) -> JelinekMercerModel:
    """(4.2) with L by EM on held-out events, levels from J upwards."""
    return _interpolated(
        [(events, heldout)], events, chain, base, kind=buckets, min_heldout=min_heldout
    )


def deleted_interpolation(
    folds: Sequence[Events],
    chain: Chain,
    base: Base,
    *,
    buckets: BucketKind = "count",
    min_heldout: int = 100,
) -> JelinekMercerModel:
    """The deleted variant: each fold is held out once, EM is pooled, counts are from all folds."""
    counted = [event_counts(fold) for fold in folds]
    splits = [
        (merge_counts(*counted[:place], *counted[place + 1 :]), fold)
        for place, fold in enumerate(counted)
    ]
    everything = merge_counts(*counted)
    return _interpolated(splits, everything, chain, base, kind=buckets, min_heldout=min_heldout)


def _interpolated(
    splits: Sequence[tuple[Events, Events]],
    everything: Events,
    chain: Chain,
    base: Base,
    *,
    kind: BucketKind,
    min_heldout: int,
) -> JelinekMercerModel:
    """L_{J}..L_{0} from the (training, held-out) splits, then the model on all the data."""
    final = level_counts(check_outcomes(everything, base), chain, "tokens")
    parts = [
        (level_counts(check_outcomes(train, base), chain, "tokens"), event_counts(held))
        for train, held in splits
    ]
    weights: list[dict[int, Fraction]] = [{} for _ in chain.levels]
    traces: list[dict[int, list[float]]] = [{} for _ in chain.levels]
    pairs: list[dict[int, list[tuple[Fraction, Fraction]]]] = [{} for _ in chain.levels]
    for level in range(chain.last, -1, -1):
        found: defaultdict[int, list[tuple[Fraction, Fraction]]] = defaultdict(list)
        for tables, held in parts:
            rows = _weighted_levels(tables, weights, level + 1, kind)
            lower = BackoffModel(chain, base, rows)  # p_{level+1} of full contexts
            for number, pair in _heldout_pairs(held, tables[level], lower, level, kind):
                found[number].append(pair)
        seen = {_row_bucket(row, kind) for row in final[level].values()} | set(found)
        sizes = {number: len(sample) for number, sample in found.items()}
        groups = merge_buckets(sizes, max(seen, default=0), min_heldout)
        for number, group in groups.items():
            pairs[level].setdefault(group, []).extend(found[number])
        traces[level] = {group: em_weights(sample) for group, sample in pairs[level].items()}
        weights[level] = {
            number: _clamped(traces[level][group][-1]) for number, group in groups.items()
        }
    rows = _weighted_levels(final, weights, 0, kind)
    return JelinekMercerModel(
        chain, base, rows, counts=final, weights=weights, traces=traces, pairs=pairs
    )


def _row_bucket(row: Mapping[Outcome, int], kind: BucketKind) -> int:
    return bucket(sum(row.values()), len(row) if kind == "ratio" else 1)


def _clamped(weight: float) -> Fraction:
    """L as an exact number within [1e-6, 1-1e-6]."""
    return Fraction(min(max(weight, WEIGHT_LOWEST), WEIGHT_HIGHEST))


def _weighted_levels(
    tables: Sequence[Table], weights: Sequence[Mapping[int, Fraction]], first: int, kind: BucketKind
) -> list[dict[Context, Row]]:
    """The rows of (4.2) at the levels from `first` down; none above, so p_j = p_{j+1} there."""
    result: list[dict[Context, Row]] = [{} for _ in tables]
    for level in range(first, len(tables)):
        result[level] = {
            key: _weighted_row(row, weights[level][_row_bucket(row, kind)])
            for key, row in tables[level].items()
        }
    return result


def _weighted_row(row: Mapping[Outcome, int], weight: Fraction) -> Row:
    """L f_j(x|k) with (4.1), and 1 - L."""
    total = sum(row.values())
    return Row({x: weight * Fraction(n, total) for x, n in row.items()}, 1 - weight)


def _heldout_pairs(
    held: Mapping[Event, int], table: Table, lower: BackoffModel, level: int, kind: BucketKind
) -> Iterator[tuple[int, tuple[Fraction, Fraction]]]:
    """The bucket and (f_j, p_{j+1}) of each held-out event whose context has counts (4.3)."""
    for (context, outcome), count in held.items():
        row = table.get(lower.chain.project(context, level), {})
        seen = row.get(lower.base.resolve(outcome), 0)
        below = lower.probability(context, outcome)
        if math.isnan(below):
            raise BackoffError("E_NAN", f"held-out probability of {outcome!r}")
        if seen == 0 and below == 0:
            raise BackoffError("E_ZERO_BASE", f"{outcome!r} has no probability at level {level}")
        if row:
            pair = (Fraction(seen, sum(row.values())), below)
            yield from [(_row_bucket(row, kind), pair)] * count
