"""Level counts of the kernel against the reference: N_j, S_j, T_j, token counts, n_r."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimation.kernel_models import (
    Data,
    Row,
    any_data,
    chains,
    count_rows,
    plain_data,
    reference_chain,
    reference_events,
    whole,
)
from tests.reference import backoff as reference

from treelm.errors import EstimationError
from treelm.estimation.chain import Chain, ChainCounts
from treelm.events.counts import EventCounter


def check_counts(
    rows: list[Row], chain: Chain, kind: str, weights: list[int] | None = None
) -> None:
    counts = count_rows(rows, chain, kind=kind, weights=weights)
    events, levels = reference_events(rows, weights), reference_chain(chain)
    expected = reference.level_counts(events, levels, kind)
    tokens = reference.token_counts(events, levels)
    assert len(counts) == len(expected)
    for level, table in enumerate(expected):
        found, number, seen = (array.tolist() for array in counts.entries(level))
        assert found == sorted(found)
        entries = {(tuple(row[1:]), row[0]): n for row, n in zip(found, number, strict=True)}
        assert entries == {(key, x): n for key, row in table.items() for x, n in row.items()}
        for row, n in zip(found, seen, strict=True):
            assert tokens[level][tuple(row[1:])][row[0]] == n
        assert counts.size(level) == len(entries)
        keys, totals, types = (array.tolist() for array in counts.contexts(level))
        assert [tuple(key) for key in keys] == sorted(table)
        for key, total, number_of_types in zip(keys, totals, types, strict=True):
            assert total == sum(table[tuple(key)].values())
            assert number_of_types == len(table[tuple(key)])
        assert counts.counts_of_counts(level) == tuple(
            reference.count_of_counts(table, r) for r in (1, 2, 3, 4)
        )


@given(any_data(), st.sampled_from(["types", "tokens"]))
@settings(max_examples=80)
def test_levels(data: Data, kind: str) -> None:
    check_counts(data.rows, data.chain, kind)


@given(plain_data(), st.data())
def test_levels_of_weighted_events(data: Data, more: st.DataObject) -> None:
    weights = more.draw(
        st.lists(st.integers(1, 6), min_size=len(data.rows), max_size=len(data.rows))
    )
    for kind in ("types", "tokens"):
        check_counts(data.rows, data.chain, kind, weights)


@given(chains(most=15, ids=[7, 2**31, 2**32 - 2]), st.integers(1, 32), st.data())
@settings(max_examples=60)
def test_levels_of_long_keys(chain: Chain, bits: int, data: st.DataObject) -> None:
    """Up to 16 columns of up to 32 bits: contexts are cut out of keys of 1 to 8 words."""
    ids = st.sampled_from(sorted({0, 7, 2**31, 2**32 - 2, 2**bits - 1}))
    kinds = data.draw(
        st.lists(st.tuples(*[ids] * (len(chain.columns) + 1)), min_size=1, max_size=6)
    )
    rows = data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=20))
    for kind in ("types", "tokens"):
        check_counts(rows, chain, kind)


@pytest.mark.parametrize("columns", [2, 3, 5, 7, 9, 16])
def test_every_number_of_words(columns: int) -> None:
    """64, 96, 160, 224, 288 and 512 bits; every level drops one column."""
    source = random.Random(columns)
    ids = [0, 1, 2**31, 2**32 - 2]
    rows = [tuple(source.choice(ids) for _ in range(columns)) for _ in range(60)]
    chain = Chain(
        tuple(f"e{i}" for i in range(columns - 1)),
        tuple(range(columns - 1, -1, -1)),
        (2**31,) * (columns - 1),
    )
    check_counts(rows, chain, "types")


@given(any_data(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_order_and_shards(data: Data, source: random.Random) -> None:
    """I4 and I5: shuffled, and counted apart and merged."""
    shuffled = source.sample(data.rows, len(data.rows))
    cut = source.randrange(len(shuffled) + 1)
    counter = EventCounter(len(data.chain.columns) + 1)
    for part in (shuffled[:cut], shuffled[cut:]):
        if part:
            shard = EventCounter(counter.columns)
            shard.add(np.array(part, dtype=np.uint32).reshape(len(part), -1))
            counter.merge(shard.finish())
    merged = ChainCounts(counter.finish(), data.chain)
    plain = count_rows(data.rows, data.chain)
    for level in range(len(plain)):
        for left, right in zip(plain.entries(level), merged.entries(level), strict=True):
            assert np.array_equal(left, right)


@given(plain_data())
@settings(max_examples=60)
def test_totals(data: Data) -> None:
    """I3, on chains without pads."""
    chain = Chain(data.chain.columns, data.chain.widths, (None,) * len(data.chain.columns))
    counts = count_rows(data.rows, chain)
    for above, here in pairwise(range(len(counts))):
        assert counts.contexts(here)[1].sum() == counts.size(above)


@given(any_data(), st.sampled_from(["types", "tokens"]))
@settings(max_examples=60)
def test_look_up(data: Data, kind: str) -> None:
    """Of seen rows, of seen contexts with other outcomes, and of contexts never seen."""
    counts = count_rows(data.rows, data.chain, kind=kind)
    levels = reference_chain(data.chain)
    expected = reference.level_counts(reference_events(data.rows), levels, kind)
    new = [(x, *row[1:]) for row in data.rows[:5] for x in (0, 4, 2**32 - 1)]
    far = [(0, *[2**32 - 1] * len(data.chain.columns)), whole(data.chain, 2**31, ())]
    rows = [*data.rows, *new, *far]
    for level, table in enumerate(expected):
        found = zip(*(array.tolist() for array in counts.look_up(level, rows)), strict=True)
        for row, numbers in zip(rows, found, strict=True):
            seen = table.get(levels.project(row[1:], level), {})
            assert numbers == (seen.get(row[0], 0), sum(seen.values()), len(seen))


def test_threads_count_alike() -> None:
    """Long enough that the threads share the sorting of contexts."""
    rows = np.random.default_rng(3).integers(0, 2000, (150_000, 3), dtype=np.uint32)
    chain = Chain.words(3, pad=2001)
    counter = EventCounter(3)
    counter.add(rows)
    events = counter.finish()
    one, two = (ChainCounts(events, chain, threads=threads) for threads in (1, 2))
    for level in range(3):
        for left, right in zip(one.contexts(level), two.contexts(level), strict=True):
            assert np.array_equal(left, right)


def code_of(call) -> str:
    with pytest.raises(EstimationError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize(
    ("columns", "widths", "pads"),
    [
        (2, (), (None, None)),  # J < 0
        (2, (2, 2), (None, None)),  # drops nothing
        (2, (1, 0), (None, None)),  # not the whole context
        (2, (2, 0, 1), (None, None)),
        (2, (2, -1), (None, None)),
        (2, (2, 0), (5, 5)),  # two pads in one step
        (2, (2, 1), (None,)),
    ],
)
def test_illegal_chains(columns: int, widths: tuple[int, ...], pads: tuple) -> None:
    names = tuple("abcd"[:columns])
    assert code_of(lambda: Chain(names, widths, pads)) == "E_CHAIN"


def test_illegal_orders() -> None:
    assert code_of(lambda: Chain.words(0, pad=1)) == "E_CHAIN"


def test_the_kernel_checks_chains_itself() -> None:
    chain = Chain(("a", "b"), (2, 1), (None, None))
    object.__setattr__(chain, "widths", (2, 2))
    assert code_of(lambda: count_rows([(1, 2, 3)], chain)) == "E_CHAIN"
    assert code_of(lambda: ChainCounts(_events(2), Chain.words(3, 9))) == "E_CHAIN"


def _events(columns: int):
    counter = EventCounter(columns)
    counter.add([range(columns)])
    return counter.finish()


def test_no_data() -> None:
    chain = Chain.words(2, pad=9)
    assert code_of(lambda: ChainCounts(EventCounter(2).finish(), chain)) == "E_NO_DATA"
    assert code_of(lambda: count_rows([(1, 2)], chain, weights=[0])) == "E_NO_DATA"


def test_sums_of_more_than_32_bits() -> None:
    rows, weights = [(1, 2), (1, 3)], [2**32 - 1, 1]
    chain = Chain.words(2, pad=9)
    assert code_of(lambda: count_rows(rows, chain, weights=weights)) == "E_OVERFLOW"
    assert code_of(lambda: count_rows(rows, chain, weights=weights, kind="tokens")) == "E_OVERFLOW"


def test_look_up_asks_for_whole_rows() -> None:
    counts = count_rows([(1, 2, 3)], Chain.words(3, pad=9))
    assert code_of(lambda: counts.look_up(0, [(1, 2)])) == "E_ARITY"
    assert code_of(lambda: counts.look_up(3, [(1, 2, 3)])) == "E_ARGUMENT"
    for call in (counts.size, counts.entries, counts.contexts, counts.counts_of_counts):
        with pytest.raises(Exception, match="no such level"):
            call(3)
