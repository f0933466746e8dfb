"""Lattices of contexts: counts, weights, probabilities."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference.lattice import ReferenceTables, em_sums, node_probs

from treelm.errors import EstimationError, ModelFileError
from treelm.estimation.lattice import (
    ONE,
    Lattice,
    LatticeEvents,
    LatticeNode,
    LatticeTables,
    fixed_point,
)
from treelm.estimation.lattice_weights import (
    BUCKET_EDGES,
    CheckEvents,
    LatticeModel,
    LatticeWeights,
    fit_weights,
)

#: Columns, outcome, count.
Event = tuple[tuple[int, ...], int, int]
SHAPES = (
    Lattice.chain(3, columns=2),
    Lattice.grid(3, words=1, heads=1, head_columns=1),
    Lattice.grid(3, words=2, topics=True),
    Lattice.grid(3, words=1, heads=1, head_columns=2, topics=True),
    Lattice.grid(3, words=0, topics=True),
)


def rows_of(events: list[Event], width: int):
    columns = np.array([event[0] for event in events], dtype=np.uint32).reshape(-1, width)
    outcomes = np.array([event[1] for event in events], dtype=np.uint32)
    counts = np.array([event[2] for event in events], dtype=np.int64)
    return columns, outcomes, counts


def built(lattice: Lattice, events: list[Event]):
    columns, outcomes, counts = rows_of(events, lattice.columns)
    return lattice, columns, outcomes, LatticeTables.build(lattice, columns, outcomes, counts)


def reference_of(lattice: Lattice, events: list[Event], *limit: Fraction) -> ReferenceTables:
    exact = [(columns, outcome, Fraction(count, ONE)) for columns, outcome, count in events]
    return ReferenceTables(lattice, exact, *limit)


@st.composite
def lattice_events(draw: st.DrawFn):
    lattice = draw(st.sampled_from(SHAPES))
    event = st.tuples(
        st.tuples(*[st.integers(0, 2)] * lattice.columns),
        st.integers(0, 2),
        st.integers(1, 4 * ONE),
    )
    return lattice, draw(st.lists(event, min_size=1, max_size=12))


def as_dict(weights: LatticeWeights) -> dict[tuple[int, int], list[float]]:
    array = weights.array
    return {(v, b): array[v, b].tolist() for v in range(len(array)) for b in range(array.shape[1])}


def test_lattice_oracle_of_two_words_and_a_head() -> None:
    """The worked example: n = 2, m = 1, two outcomes."""
    lattice = Lattice.grid(2, words=1, heads=1, head_columns=1)
    # Contexts (0,0): full a=1; the word 0 alone 3/4; the head 0 alone 1/4; all 1/2.
    events = [((0, 0), 0, 1), ((0, 1), 0, 2), ((0, 1), 1, 1), ((1, 0), 1, 3), ((1, 1), 0, 1)]
    columns, outcomes, counts = rows_of(events, 2)
    tables = LatticeTables.build(lattice, columns, outcomes, counts * ONE)
    frequencies, _ = tables.native.frequencies(fixed_point(BUCKET_EDGES), np.zeros(2, np.uint32), 0)
    assert frequencies.tolist() == [0.5, 0.25, 0.75, 1.0]
    weights = LatticeWeights.equal(lattice)
    array = weights.array.copy()
    array[3, 1:] = [0.5, 0.25, 0.25]
    weights = LatticeWeights(lattice, array.reshape(-1))
    model = LatticeModel(tables, weights)
    assert model.probs([[0, 0], [0, 0]], [0, 1]).tolist() == pytest.approx([3 / 4, 1 / 4])

    from treelm import _native

    check = _native.LatticeCheck(
        tables.native,
        fixed_point(BUCKET_EDGES),
        np.zeros((2, 2), np.uint32),
        np.array([0, 1], np.uint32),
        np.ones(2),
        threads=1,
    )
    values, before = check.step(weights.values, least=10, threads=1)
    assert before == pytest.approx(-1.673976, abs=1e-6)
    stepped = LatticeWeights(lattice, values)
    top = stepped.array[3, 2]
    # Parents are (i-1, j) first, that is node 01 with the head alone, then 10 with the word alone.
    assert top.tolist() == pytest.approx([1 / 3, 3 / 8, 7 / 24])
    assert stepped.array[2, 4][0] == pytest.approx(3 / 7)
    assert stepped.array[1, 4][0] == pytest.approx(5 / 9)
    assert check.log_likelihood(values, threads=1) == pytest.approx(-1.475201, abs=1e-6)
    assert LatticeModel(tables, stepped).probs([[0, 0]], [0])[0] == pytest.approx(31 / 48)


def test_probabilities_do_not_depend_on_threads() -> None:
    lattice = Lattice.grid(5, words=1, heads=1, head_columns=1)
    random = np.random.default_rng(1)
    columns = random.integers(0, 50, (100_000, 2), dtype=np.uint32)
    outcomes = random.integers(0, 5, 100_000, dtype=np.uint32)
    counts = np.full(30_000, ONE)
    tables = LatticeTables.build(lattice, columns[:30_000], outcomes[:30_000], counts)
    model = LatticeModel(tables, LatticeWeights.equal(lattice))
    found = model.probs(columns, outcomes)
    for threads in (2, 7):
        assert np.array_equal(model.probs(columns, outcomes, threads=threads), found)
    some = random.integers(0, len(outcomes), 50)
    rows = [model.distribution(columns[place])[outcomes[place]] for place in some]
    assert rows == pytest.approx(found[some].tolist())


@settings(max_examples=40)
@given(lattice_events())
def test_lattice_agrees_with_the_reference(case) -> None:
    lattice, columns, outcomes, tables = built(*case)
    reference = reference_of(*case)
    check = CheckEvents(columns[::-1].copy(), outcomes.copy(), np.ones(len(outcomes)))
    weights = fit_weights(tables, check, rounds=3, least=2)
    model = LatticeModel(tables, weights)
    by_bucket = as_dict(weights)
    for row in {tuple(row) for row in columns.tolist()} | {(2,) * lattice.columns}:
        found = model.distribution(row)
        assert found.sum() == pytest.approx(1)
        for outcome in range(lattice.outcomes):
            frequencies = reference.frequencies(row, outcome, BUCKET_EDGES)
            expected = node_probs(lattice, frequencies, by_bucket)[-1]
            assert found[outcome] == pytest.approx(expected)
            assert model.probs([row], [outcome])[0] == found[outcome]
            if lattice.topics:
                topics = model.topic_probs([row[:-1]], [outcome], [0, 1, 2])[0]
                assert topics[row[-1]] == pytest.approx(expected)


@settings(max_examples=25)
@given(lattice_events(), st.integers(1, 12))
def test_lattice_weights_step_is_that_of_the_reference(case, least: int) -> None:
    lattice, columns, outcomes, tables = built(*case)
    reference = reference_of(*case)
    start = LatticeWeights.equal(lattice)
    looked_up = [
        (reference.frequencies(row, outcome, BUCKET_EDGES), 1.0)
        for row, outcome in zip(columns.tolist(), outcomes.tolist(), strict=True)
    ]
    sums, likelihood = em_sums(lattice, looked_up, as_dict(start))
    found = fit_weights(
        tables,
        CheckEvents(columns, outcomes, np.ones(len(outcomes))),
        rounds=1,
        least=1e-9,
        softening=0,
    )
    assert found.history[0] == pytest.approx(likelihood)
    for (node, bucket), values in sums.items():
        width = found.array.shape[2]
        expected = np.array(values[:width]) / sum(values)
        assert found.array[node, bucket].tolist() == pytest.approx(expected.tolist())
    more = fit_weights(
        tables, CheckEvents(columns, outcomes, np.ones(len(outcomes))), tolerance=0, least=least
    )
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(more.history))
    again = fit_weights(
        tables,
        CheckEvents(columns, outcomes, np.ones(len(outcomes))),
        tolerance=0,
        least=least,
        threads=2,
    )
    assert again.values.tobytes() == more.values.tobytes()


@settings(max_examples=25)
@given(lattice_events(), st.randoms(use_true_random=False))
def test_lattice_tables_depend_on_the_events_only(case, random) -> None:
    lattice, events = case
    shuffled = list(events)
    random.shuffle(shuffled)
    one = LatticeTables.build(
        lattice, *rows_of(events, lattice.columns), limits=[3] * lattice.columns
    )
    two = LatticeTables.build(
        lattice, *rows_of(shuffled, lattice.columns), limits=[3] * lattice.columns, threads=2
    )
    for name, array in one.to_tensors("x").items():
        assert array.tobytes() == two.to_tensors("x")[name].tobytes()
    # New counts reach all nodes as if the tables had been built with them.
    double = 2 * one.top_counts()
    one.refill(double)
    twice = [(columns, outcome, 2 * count) for columns, outcome, count in events]
    built = LatticeTables.build(
        lattice, *rows_of(twice, lattice.columns), limits=[3] * lattice.columns
    )
    for name, array in one.to_tensors("x").items():
        assert array.tobytes() == built.to_tensors("x")[name].tobytes()


@settings(max_examples=25)
@given(lattice_events())
def test_lattice_cut_is_made_in_every_node(case) -> None:
    _, columns, outcomes, tables = built(*case)
    limit = int(np.median(tables.top_counts()))
    kept = tables.cut(limit / ONE)
    reference = reference_of(*case, Fraction(limit, ONE))
    for node, types in enumerate(reference.counts):
        assert kept.types(node) == len(types)
    for row, outcome in zip(columns.tolist(), outcomes.tolist(), strict=True):
        found, buckets = kept.native.frequencies(
            fixed_point(BUCKET_EDGES), np.array(row, np.uint32), outcome
        )
        expected = reference.frequencies(row, outcome, BUCKET_EDGES)
        assert found.tolist() == pytest.approx([float(frequency) for frequency, _ in expected])
        assert buckets.tolist() == [bucket for _, bucket in expected]
    # The same when rare types are dropped while the tables are built.
    while_built = collected(*case).tables(cutoff=limit / ONE)
    for name, array in kept.to_tensors("x").items():
        assert array.tobytes() == while_built.to_tensors("x")[name].tobytes()
    for too_high in (tables.cut, lambda cutoff: collected(*case).tables(cutoff=cutoff)):
        with pytest.raises(EstimationError, match="its largest count is") as caught:
            too_high(1e6)
        assert caught.value.code == "E_NO_DATA"


def collected(lattice: Lattice, events: list[tuple[tuple[int, ...], int, int]]) -> LatticeEvents:
    found = LatticeEvents(lattice, [3] * lattice.columns)
    found.add(*rows_of(events, lattice.columns))
    return found


def test_lattice_tables_survive_a_file() -> None:
    lattice = SHAPES[3]
    events = [((0, 1, 2, 1), 1, ONE), ((0, 1, 1, 0), 2, 5), ((1, 1, 2, 1), 0, 3 * ONE)]
    tables = LatticeTables.build(lattice, *rows_of(events, 4))
    model = LatticeModel(tables, LatticeWeights.equal(lattice))
    tensors = {name: np.array(array) for name, array in model.to_tensors("word").items()}
    again = LatticeModel.from_tensors(lattice, tensors, "word")
    assert again.distribution([0, 1, 2, 1]).tobytes() == model.distribution([0, 1, 2, 1]).tobytes()
    for name, array in tensors.items():
        broken = dict(tensors)
        broken[name] = array[:-1] if len(array) else np.ones(1, array.dtype)
        with pytest.raises(ModelFileError):
            LatticeModel.from_tensors(lattice, broken, "word")
        if array.dtype.kind in "ui" and len(array):
            broken[name] = array[::-1].copy() if len(set(array.tolist())) > 1 else array + 70000
            if broken[name].tobytes() != array.tobytes():
                with contextlib.suppress(ModelFileError):  # or it is a lattice, and answers
                    opened = LatticeModel.from_tensors(lattice, broken, "word")
                    assert opened.distribution([0, 1, 2, 1]).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (LatticeNode((0,), ()),),
        (LatticeNode((), ()), LatticeNode((0,), ())),
        (LatticeNode((), ()), LatticeNode((1,), (0,))),
        (LatticeNode((), ()), LatticeNode((0,), (1,))),
        (LatticeNode((), ()), LatticeNode((0, 0), (0,))),
        (LatticeNode((), ()),),
    ],
)
def test_lattice_refuses_what_is_none(nodes: tuple[LatticeNode, ...]) -> None:
    with pytest.raises(EstimationError) as caught:
        _ = Lattice(1, 2, nodes).native
    assert caught.value.code == "E_CHAIN"


def test_lattice_refuses_bad_counts() -> None:
    with pytest.raises(EstimationError) as caught:
        fixed_point([1.0, float("nan")])
    assert caught.value.code == "E_COUNT"
    assert fixed_point([0.1]).tolist() == [107374182]
    lattice = Lattice.chain(2, columns=1)
    for columns, outcomes, counts in (
        ([[5]], [0], [ONE]),
        ([[0]], [2], [ONE]),
        ([[0]], [0], [-1]),
        ([[0], [0]], [0, 0], [2**62, 2**62]),
    ):
        with pytest.raises(EstimationError):
            LatticeTables.build(
                lattice,
                np.array(columns, np.uint32),
                np.array(outcomes, np.uint32),
                np.array(counts, np.int64),
                limits=[2],
            )
