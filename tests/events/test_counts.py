"""Counting events: distinct rows, weights, runs, shards, sequences of words."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimation.kernel_models import Row, ngram_rows

from treelm.errors import EngineError, EstimationError
from treelm.events.counts import EventCounter, EventCounts, count_sequences, merge_counts

LARGE = [0, 1, 5, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1]


@st.composite
def row_lists(draw: st.DrawFn, longest: int = 40) -> list[Row]:
    """Rows of up to 15 columns: with ids of 32 bits their keys take 1 to 8 words."""
    columns = draw(st.integers(1, 15))
    ids = st.sampled_from(draw(st.sampled_from([[0], [0, 1], [3, 70000], LARGE])))
    few = draw(st.lists(st.tuples(*[ids] * columns), min_size=1, max_size=8))
    return draw(st.lists(st.sampled_from(few), min_size=1, max_size=longest))


def counted(rows: list[Row], weights: list[int] | None = None, **options) -> EventCounts:
    counter = EventCounter(len(rows[0]), **options)
    counter.add(np.array(rows, dtype=np.uint32), weights)
    return counter.finish()


def as_dict(counts: EventCounts) -> dict[Row, int]:
    rows = [tuple(row) for row in counts.rows.tolist()]
    assert rows == sorted(rows)
    assert len(set(rows)) == len(rows) == len(counts)
    return dict(zip(rows, counts.counts.tolist(), strict=True))


def code_of(call) -> str:
    with pytest.raises((EstimationError, EngineError)) as caught:
        call()
    return caught.value.code


@given(row_lists())
def test_distinct_rows_in_order(rows: list[Row]) -> None:
    found = counted(rows)
    assert as_dict(found) == Counter(rows)
    assert (found.total, found.columns) == (len(rows), len(rows[0]))


@given(row_lists(), st.data())
def test_weights_and_parts(rows: list[Row], data: st.DataObject) -> None:
    """A row may come with a weight, or not, in any number of calls."""
    weights = data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    expected: Counter[Row] = Counter()
    counter = EventCounter(len(rows[0]))
    for row, weight in zip(rows, weights, strict=True):
        expected[row] += weight
    counter.add(np.array(rows, dtype=np.uint32), weights)
    cut = data.draw(st.integers(0, len(rows)))
    for part in (rows[:cut], rows[cut:]):
        counter.add(np.array(part, dtype=np.uint32).reshape(-1, len(rows[0])))
    expected.update(rows)
    found = counter.finish()
    assert as_dict(found) == expected
    assert found.total == sum(weights) + len(rows)
    assert len(counter.finish()) == 0  # finishing empties it


@given(row_lists(), row_lists(), st.randoms(use_true_random=False))
def test_order_and_shards(left: list[Row], right: list[Row], source: random.Random) -> None:
    """I4 and I5: keys of the shards may take different numbers of bits."""
    columns = len(left[0])
    right = [(row * columns)[:columns] for row in right]
    everything = source.sample(left + right, len(left) + len(right))
    merged = merge_counts([counted(left), counted(right)])
    assert as_dict(merged) == as_dict(counted(everything)) == Counter(everything)
    assert merged.total == len(everything)


@pytest.mark.parametrize("columns", [1, 2, 3, 6, 12])
@pytest.mark.parametrize("threads", [1, 2])
def test_many_runs(columns: int, threads: int) -> None:
    """Runs of 1024 rows, whose later ones need more bits, are merged into the same counts."""
    source = random.Random(columns)
    rows = [
        tuple(source.randrange(3) << source.randrange(1 + i // 200) for _ in range(columns))
        for i in range(6000)
    ]
    counter = EventCounter(columns, threads=threads, run_rows=1024)
    for start in range(0, len(rows), 700):
        counter.add(np.array(rows[start : start + 700], dtype=np.uint32))
    found = counter.finish()
    assert as_dict(found) == Counter(rows)
    assert found.total == len(rows)


def test_threads_sort_alike() -> None:
    """Long enough that the threads share the work."""
    rows = np.random.default_rng(1).integers(0, 50, (150_000, 4), dtype=np.uint32)
    one, two = (EventCounter(4, threads=threads, run_rows=1 << 20) for threads in (1, 2))
    one.add(rows)
    two.add(rows)
    first, second = one.finish(), two.finish()
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.counts, second.counts)
    unique, counts = np.unique(rows, axis=0, return_counts=True)
    assert np.array_equal(first.rows, unique)
    assert np.array_equal(first.counts, counts)


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=10), st.integers(1, 6)
)
@settings(max_examples=50)
def test_sequences_are_ngrams(sentences: list[list[int]], order: int) -> None:
    ids = np.array([word for words in sentences for word in words], dtype=np.uint32)
    starts = np.cumsum([0, *map(len, sentences)]).astype(np.uint64)
    counter = EventCounter(order)
    counter.add_sequences(ids, starts, end=5, pad=6)
    found = counter.finish()
    assert as_dict(found) == Counter(ngram_rows(sentences, order, 5, 6))
    assert found.total == len(ids) + len(sentences)


def test_many_sequences_in_runs() -> None:
    source = random.Random(2)
    sentences = [[source.randrange(30) for _ in range(source.randrange(9))] for _ in range(3000)]
    ids = np.array([word for words in sentences for word in words], dtype=np.uint32)
    starts = np.cumsum([0, *map(len, sentences)]).astype(np.uint64)
    counter = EventCounter(3, run_rows=1024)
    counter.add_sequences(ids, starts, end=30, pad=31)
    assert as_dict(counter.finish()) == Counter(ngram_rows(sentences, 3, 30, 31))


@pytest.mark.parametrize(
    "starts", [[], [0, 6], [0, 3, 2, 5], [0, 100, 5], [0, 2**63, 5], [3, 1, 5]]
)
def test_starts_that_do_not_fit(starts: list[int]) -> None:
    counter = EventCounter(2)
    ids = np.arange(5, dtype=np.uint32)
    call = lambda: counter.add_sequences(  # noqa: E731
        ids, np.array(starts, dtype=np.uint64), end=5, pad=6
    )
    assert code_of(call) == "E_ARGUMENT"
    assert len(counter.finish()) == 0  # nothing of it was counted


@pytest.mark.parametrize(
    "weights",
    [[-1, 1], [0.5, 1], [float("nan"), 1], [float("inf"), 1], [1e30, 1], [True, False], ["1", "2"]],
)
def test_weights_that_are_no_counts(weights: list[object]) -> None:
    counter = EventCounter(2)
    assert code_of(lambda: counter.add([(1, 2), (3, 4)], weights)) == "E_COUNT"


def test_whole_floats_are_counts() -> None:
    assert as_dict(counted([(1, 2), (3, 4)], [2.0, 0.0])) == {(1, 2): 2}  # type: ignore[list-item]


def test_every_row_needs_a_weight() -> None:
    assert code_of(lambda: EventCounter(2).add([(1, 2), (3, 4)], [1])) == "E_ARGUMENT"


@pytest.mark.parametrize("rows", [[(1, 2, 3)], [(1,)], [1, 2], [[(1, 2)]]])
def test_rows_of_another_width(rows: list[object]) -> None:
    assert code_of(lambda: EventCounter(2).add(rows)) == "E_ARITY"


def test_merging_rows_of_another_width() -> None:
    counter = EventCounter(2)
    assert code_of(lambda: counter.merge(counted([(1, 2, 3)]))) == "E_ARGUMENT"


def test_no_columns_and_too_many_bits() -> None:
    assert code_of(lambda: EventCounter(0)) == "E_ARGUMENT"
    row = [(2**32 - 1,) * 17]  # 544 bits
    assert code_of(lambda: EventCounter(17).add(row)) == "E_TOO_LARGE"
    assert len(counted([(2**32 - 1,) * 16])) == 1


@pytest.mark.parametrize("weights", [[2**32, 0], [2**31, 2**31], [2**63, 2**63], [2**64 - 1, 1]])
def test_counts_of_more_than_32_bits(weights: list[int]) -> None:
    array = np.array(weights, dtype=np.uint64)
    assert code_of(lambda: counted([(1, 2), (1, 2)], array)) == "E_OVERFLOW"


def test_counts_of_32_bits() -> None:
    assert as_dict(counted([(1, 2), (1, 2)], [2**32 - 2, 1])) == {(1, 2): 2**32 - 1}
    full = counted([(1, 2)], [2**32 - 1])
    assert code_of(lambda: merge_counts([full, counted([(1, 2)])])) == "E_OVERFLOW"


def test_nothing_counted() -> None:
    empty = EventCounter(3).finish()
    assert (len(empty), empty.total, empty.rows.shape) == (0, 0, (0, 3))
    counter = EventCounter(3)
    counter.add([])
    counter.merge(empty)
    assert len(counter.finish()) == 0
    assert len(merge_counts([empty, empty])) == 0
    assert code_of(lambda: merge_counts([])) == "E_NO_DATA"


@given(
    sentences=st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=30),
    order=st.integers(1, 6),
    threads=st.sampled_from([1, 2]),
)
def test_count_sequences_counts_what_a_counter_counts(
    sentences: list[list[int]], order: int, threads: int
) -> None:
    ids = np.array([word for words in sentences for word in words], dtype=np.uint32)
    starts = np.cumsum([0, *map(len, sentences)]).astype(np.uint64)
    found = count_sequences(ids, starts, order, end=3, pad=6, threads=threads)
    assert as_dict(found) == Counter(ngram_rows(sentences, order, 3, 6))
    assert found.total == sum(map(len, sentences)) + len(sentences)
    counter = EventCounter(order)
    counter.add_sequences(ids, starts, end=3, pad=6)
    if sentences:
        assert found.native.bits == counter.finish().native.bits
