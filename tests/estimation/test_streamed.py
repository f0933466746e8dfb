"""Counting and estimating on disk: the same bytes as in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.estimation.kernel_models import Data, any_data, kernel_table, ngram_data

from treelm import _native
from treelm.errors import EstimationError, OutputFileError
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import UniformBase, estimate
from treelm.estimation.kneser_ney import berkeley, kneser_ney, modified_kneser_ney
from treelm.events.counts import EventCounter, EventCounts
from treelm.parallel import memory as memory_module
from treelm.parallel.memory import MemoryLimit


@pytest.fixture(autouse=True)
def no_memory_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of one byte is one: every run is as small as a run can be."""
    monkeypatch.setattr(memory_module, "SMALLEST_SHARE", 1)


def limit(folder: Path) -> MemoryLimit:
    return MemoryLimit(1, folder)


def assert_same(one: BackoffTable, other: BackoffTable) -> None:
    first, second = one.to_tensors("t"), other.to_tensors("t")
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def both_counts(data: Data, folder: Path) -> tuple[EventCounts, EventCounts]:
    counted = []
    for memory in (None, limit(folder)):
        counter = EventCounter(len(data.chain.columns) + 1, memory=memory)
        counter.add(data.rows)
        counted.append(counter.finish())
    return counted[0], counted[1]


@pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")
@given(
    data=any_data(),
    kind=st.sampled_from(["kn", "mkn", "berkeley"]),
    least=st.sampled_from([1, 2, 3]),
    tokens=st.booleans(),
    precision=st.sampled_from(["single", "double"]),
)
def test_streamed_tables_are_the_same(  # noqa: PLR0917 (drawn by hypothesis)
    tmp_path_factory: pytest.TempPathFactory,
    data: Data,
    kind: str,
    least: int,
    tokens: bool,
    precision: str,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    inside, outside = both_counts(data, folder)
    assert not inside.spilled
    assert outside.spilled
    np.testing.assert_array_equal(inside.rows, outside.rows)
    np.testing.assert_array_equal(inside.counts, outside.counts)
    assert inside.total == outside.total
    how = "tokens" if tokens else "types"
    levels = ChainCounts(inside, data.chain, counts=how)
    streamed = ChainCounts(outside, data.chain, counts=how, memory=limit(folder))
    assert isinstance(streamed.native, _native.StreamedCounts)
    for level in range(len(levels)):
        assert levels.size(level) == streamed.size(level)
        assert levels.counts_of_counts(level) == streamed.counts_of_counts(level)
    least_counts = [least] * (len(levels) - 1) + [1]
    smooth = {"kn": kneser_ney, "mkn": modified_kneser_ney, "berkeley": berkeley}[kind]
    plan = smooth(levels, min_counts=least_counts)
    assert smooth(streamed, min_counts=least_counts) == plan
    table = kernel_table(levels, plan, data.outcomes, precision=precision)
    other = estimate(
        streamed,
        plan,
        UniformBase(data.outcomes),
        outcomes=table.shape.outcomes,
        first_contexts=table.shape.first_contexts,
        precision=precision,
    )
    assert_same(table, other)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "threads"), [(True, 2), (False, 1)])
def test_streamed_larger_than_any_run(tmp_path: Path, words: bool, threads: int) -> None:
    """Enough rows for many runs, so that runs of runs are merged."""
    ids = np.minimum(np.random.default_rng(5).zipf(1.3, (60_000, 3)), 3000).astype(np.uint32)
    chain = Chain.words(3, pad=3001) if words else Chain(("a", "b"), (2, 1, 0), (None, None))
    tables = []
    for memory in (None, limit(tmp_path)):
        counter = EventCounter(3, memory=memory, threads=threads)
        if words:
            starts = np.arange(0, ids.size + 1, 15).astype(np.uint64)
            counter.add_sequences(ids.ravel(), starts, end=0, pad=3001)
        else:
            counter.add(ids)
        counts = ChainCounts(counter.finish(), chain, memory=memory, threads=threads)
        tables.append(
            estimate(
                counts,
                modified_kneser_ney(counts),
                UniformBase(3001),
                outcomes=3002,
                first_contexts=0 if words else 3001,
            )
        )
    assert_same(*tables)
    assert not list(tmp_path.iterdir())  # temporary files have no name


def test_streamed_merge(tmp_path: Path) -> None:
    one, two, both = (EventCounter(2, memory=limit(tmp_path)) for _ in range(3))
    rows = np.random.default_rng(1).integers(0, 99, (5000, 2), dtype=np.uint32)
    wide = rows[:1000] + np.uint32(1 << 20)
    for counter, part in ((one, rows), (two, wide), (both, rows), (both, wide)):
        counter.add(part)
    one.merge(two.finish())
    merged, counted = one.finish(), both.finish()
    np.testing.assert_array_equal(merged.rows, counted.rows)
    np.testing.assert_array_equal(merged.counts, counted.counts)


def test_streamed_no_folder(tmp_path: Path) -> None:
    counter = EventCounter(1, memory=limit(tmp_path / "gone"))
    with pytest.raises(OutputFileError, match="gone") as caught:
        counter.add(np.zeros((3000, 1), np.uint32))
        counter.finish()
    assert caught.value.code == "E_TEMPORARY"


def test_streamed_counts_are_not_looked_up(tmp_path: Path) -> None:
    counter = EventCounter(2, memory=limit(tmp_path))
    counter.add([(1, 2), (2, 1)])
    counts = ChainCounts(counter.finish(), Chain(("e",), (1, 0), (None,)), memory=limit(tmp_path))
    for look in (lambda: counts.entries(0), lambda: counts.contexts(0)):
        with pytest.raises(EstimationError) as caught:
            look()
        assert caught.value.code == "E_MEMORY"


@pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")
@given(
    data=ngram_data(),
    least=st.sampled_from([1, 2]),
    tokens=st.booleans(),
    threads=st.sampled_from([1, 2]),
)
def test_counts_of_words_give_the_same_table_in_less_memory(
    data: Data, least: int, tokens: bool, threads: int
) -> None:
    how = "tokens" if tokens else "types"
    events = counted(data)
    whole = ChainCounts(counted(data), data.chain, counts=how)
    small = ChainCounts(
        events, data.chain, counts=how, threads=threads, outcomes=data.outcomes + 1, use_up=True
    )
    assert isinstance(small.native, _native.SequenceCounts)
    for level in range(len(whole)):
        assert small.size(level) == whole.size(level)
        assert small.counts_of_counts(level) == whole.counts_of_counts(level)
    plan = modified_kneser_ney(whole, min_counts=[least] * (len(whole) - 1) + [1])
    tables = [
        estimate(
            counts, plan, UniformBase(data.outcomes), outcomes=data.outcomes + 1, use_up=use_up
        )
        for counts, use_up in ((small, False), (small, False), (small, True))
    ]
    expected = kernel_table(
        ChainCounts(counted(data), data.chain, counts=how),
        plan,
        data.outcomes,
        precision="single",
    )
    for table in tables:
        assert_same(expected, table)
    assert len(events) == 0
    with pytest.raises(EstimationError, match="no such level"):
        small.size(0)


def counted(data: Data) -> EventCounts:
    counter = EventCounter(len(data.chain.columns) + 1)
    counter.add(data.rows)
    return counter.finish()


def test_counts_of_words_cannot_be_looked_up() -> None:
    counter = EventCounter(2)
    counter.add([(1, 2), (2, 3)])
    counts = ChainCounts(counter.finish(), Chain.words(2, pad=3), outcomes=4)
    for look in (counts.entries, counts.contexts, lambda level: counts.look_up(level, [(1, 2)])):
        with pytest.raises(EstimationError, match="cannot be looked up") as caught:
            look(0)
        assert caught.value.code == "E_ARGUMENT"
