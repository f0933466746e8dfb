"""Jelinek-Mercer weights and tables of the kernel against the reference."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimation.kernel_models import (
    Data,
    Row,
    any_data,
    count_rows,
    kernel_table,
    reference_base,
    reference_chain,
    reference_events,
)
from tests.estimation.test_kneser_ney import check_table
from tests.reference import backoff as reference

from treelm.errors import EstimationError
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.jelinek_mercer import (
    LevelWeights,
    count_bucket,
    em_weight,
    jelinek_mercer_weights,
    merge_buckets,
)
from treelm.estimation.smoothing import Smoothing
from treelm.events.counts import EventCounter, EventCounts, merge_counts


def events_of(rows: list[Row]) -> EventCounts:
    counter = EventCounter(len(rows[0]))
    counter.add(np.array(rows, dtype=np.uint32))
    return counter.finish()


def smoothing_of(weights: list[LevelWeights], *, by_ratio: bool) -> Smoothing:
    return Smoothing(
        ((0.0, 0.0, 0.0),) * len(weights),
        weights=tuple(tuple(level.weights) for level in weights),
        by_ratio=by_ratio,
    )


def uniform(size: int):
    return lambda rows: np.full(len(rows), 1 / size)


def rest_of(data: Data) -> tuple[reference.Chain, reference.UniformBase]:
    return reference_chain(data.chain), reference_base(data.outcomes)


def kind_of(by_ratio: bool, minimum: int) -> dict[str, Any]:
    return {"buckets": "ratio" if by_ratio else "count", "min_heldout": minimum}


def check_estimate(
    data: Data,
    counts: ChainCounts,
    weights: list[LevelWeights],
    model: reference.JelinekMercerModel,
    *,
    by_ratio: bool,
) -> None:
    check_weights(weights, model)
    table = kernel_table(counts, smoothing_of(weights, by_ratio=by_ratio), data.outcomes)
    check_table(data, table, model, tolerance=1e-9)


def check_weights(found: list[LevelWeights], model: reference.JelinekMercerModel) -> None:
    for level, weights in enumerate(model.weights):
        expected = [float(weights[number]) for number in range(len(weights))]
        np.testing.assert_allclose(found[level].weights[: len(expected)], expected, rtol=1e-9)
        groups = {group for group, trace in found[level].traces.items() if trace}
        assert groups == {group for group, pairs in model.pairs[level].items() if pairs}
        for trace in found[level].traces.values():
            assert all(after >= before - 1e-10 for before, after in pairwise(trace))  # I10


@given(any_data(), st.integers(1, 9), st.booleans(), st.data())
@settings(max_examples=60)
def test_held_out(data: Data, minimum: int, by_ratio: bool, more: st.DataObject) -> None:
    """By count and by ratio, with buckets of few held-out events merged."""
    held = more.draw(st.lists(st.sampled_from(data.rows), min_size=1, max_size=20))
    held += [(4, *row[1:]) for row in held[:2]]  # an outcome never seen
    counts = count_rows(data.rows, data.chain, kind="tokens")
    weights = jelinek_mercer_weights(
        [(counts, events_of(held))],
        counts,
        uniform(data.outcomes),
        by_ratio=by_ratio,
        min_held_out=minimum,
    )
    parts = (reference_events(data.rows), reference_events(held))
    model = reference.jelinek_mercer(*parts, *rest_of(data), **kind_of(by_ratio, minimum))
    check_estimate(data, counts, weights, model, by_ratio=by_ratio)


@given(any_data(), st.integers(2, 4), st.integers(1, 9), st.booleans())
@settings(max_examples=40)
def test_deleted_interpolation(data: Data, folds: int, minimum: int, by_ratio: bool) -> None:
    """Every fold is held out once; the weights are for the counts of all of them."""
    rows = data.rows * 2
    parts = [rows[place::folds] for place in range(folds)]
    parts = [part for part in parts if part]
    if len(parts) < 2:
        return
    shards = [events_of(part) for part in parts]
    splits = []
    for place, shard in enumerate(shards):
        rest = merge_counts(shards[:place] + shards[place + 1 :])
        splits.append((ChainCounts(rest, data.chain, counts="tokens"), shard))
    counts = ChainCounts(merge_counts(shards), data.chain, counts="tokens")
    weights = jelinek_mercer_weights(
        splits, counts, uniform(data.outcomes), by_ratio=by_ratio, min_held_out=minimum
    )
    folds_of_events = [reference_events(part) for part in parts]
    model = reference.deleted_interpolation(
        folds_of_events, *rest_of(data), **kind_of(by_ratio, minimum)
    )
    twice = Data(data.chain, rows, data.outcomes)
    check_estimate(twice, counts, weights, model, by_ratio=by_ratio)


@given(st.lists(st.tuples(st.integers(1, 2**40), st.integers(1, 1000)), min_size=1, max_size=20))
def test_buckets(pairs: list[tuple[int, int]]) -> None:
    pairs = [(total, min(types, total)) for total, types in pairs]
    totals, types = (np.array(column, dtype=np.uint64) for column in zip(*pairs, strict=True))
    assert count_bucket(totals).tolist() == [reference.bucket(total) for total, _ in pairs]
    assert count_bucket(totals, types).tolist() == [reference.bucket(*pair) for pair in pairs]


@given(st.lists(st.integers(0, 200), min_size=1, max_size=8))
def test_merging_of_buckets(sizes: list[int]) -> None:
    found = merge_buckets(np.array(sizes, dtype=float), minimum=100)
    expected = reference.merge_buckets(dict(enumerate(sizes)), len(sizes) - 1)
    assert found.tolist() == [expected[number] for number in range(len(sizes))]


PAIRS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(1e-6, 1), st.integers(1, 5)), min_size=1, max_size=10
)


@given(PAIRS)
def test_em(pairs: list[tuple[float, float, int]]) -> None:
    frequency, below, times = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    weight, trace = em_weight(frequency, below, times)
    spread = [(f, p) for f, p, n in pairs for _ in range(n)]
    expected = reference.em_weights(spread)
    assert weight == pytest.approx(expected[-1], abs=2e-6)
    assert all(after >= before - 1e-10 for before, after in pairwise(trace))  # I10
    assert trace[0] == pytest.approx(reference.log_likelihood(0.5, spread), rel=1e-12, abs=1e-12)


def one_level(train: list[int], held: list[int], base, **options) -> list[LevelWeights]:
    chain = Chain((), (0,), ())
    counts = count_rows([(x,) for x in train], chain, kind="tokens")
    return jelinek_mercer_weights(
        [(counts, events_of([(x,) for x in held]))], counts, base, **options
    )


def test_weights_are_clamped() -> None:
    never = one_level([0], [1] * 200, uniform(2))
    sure = one_level([0], [0] * 200, uniform(2))
    assert never[0].weights[0] == 1e-6
    assert 0.5 < sure[0].weights[0] <= 1 - 1e-6


def code_of(call) -> str:
    with pytest.raises(EstimationError) as caught:
        call()
    return caught.value.code


def test_rejections() -> None:
    zero = lambda rows: np.where(rows[:, 0] == 1, 0.0, 1.0)  # noqa: E731
    none = lambda rows: np.where(rows[:, 0] == 1, np.nan, 1.0)  # noqa: E731
    assert code_of(lambda: one_level([0], [1], zero)) == "E_ZERO_BASE"
    assert code_of(lambda: one_level([0], [1], none)) == "E_NAN"
    types = count_rows([(0,)], Chain((), (0,), ()))
    held = events_of([(0,)])
    call = lambda: jelinek_mercer_weights([(types, held)], types, uniform(2))  # noqa: E731
    assert code_of(call) == "E_COUNT"
