"""Quantised tables: the same automaton, values rounded in bins, what they mean kept."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimation.kernel_models import (
    Data,
    any_data,
    count_rows,
    kernel_table,
    ngram_rows,
)
from tests.estimation.test_backoff_table import SMOOTHINGS, code_of, table_of

from treelm.estimation.backoff_table import NO_ID, BackoffTable
from treelm.estimation.chain import Chain
from treelm.estimation.quantize import quantize

WORDS = 60
END, PAD = WORDS, WORDS + 1


def varied_table(seed: int, sentences: int, smoothing: str, precision: str) -> BackoffTable:
    """A trigram table with far more different values than there are codes of 8 bits."""
    source = random.Random(seed)
    text = [
        [min(int(source.expovariate(0.08)), WORDS - 1) for _ in range(source.randrange(1, 12))]
        for _ in range(sentences)
    ]
    rows = ngram_rows(text, 3, END, PAD)
    return table_of(Data(Chain.words(3, pad=PAD), rows, END + 1), smoothing, precision=precision)


varied_tables = st.builds(
    varied_table,
    seed=st.integers(0, 2**32),
    sentences=st.integers(200, 600),
    smoothing=st.sampled_from(sorted(SMOOTHINGS)),
    precision=st.sampled_from(["single", "double"]),
)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("precision", ["single", "double"])
@given(data=any_data(), smoothing=st.sampled_from(sorted(SMOOTHINGS)))
@settings(max_examples=30)
def test_few_different_values_stay_as_they_are(
    data: Data, bits: int, precision: str, smoothing: str
) -> None:
    table = table_of(data, smoothing, precision=precision)
    small, probabilities, weights = quantize(table, bits)
    assert small.shape.value_bits == bits
    assert probabilities.largest == weights.largest == 0.0
    for level in range(len(table.widths)):
        before = table.rows(level, with_carriers=True)
        after = small.rows(level, with_carriers=True)
        assert np.array_equal(before[0], after[0])
        for one, two in zip(before[1:], after[1:], strict=True):
            assert np.array_equal(one.astype(np.float32), two)
    queries = [*data.rows, *((4, *row[1:]) for row in data.rows)]
    np.testing.assert_allclose(
        small.log_probabilities(queries),
        table.log_probabilities(queries),
        rtol=0 if precision == "single" else 1e-6,
        atol=0 if precision == "single" else 1e-6,
    )


def bins_of(before: np.ndarray, after: np.ndarray) -> list[np.ndarray]:
    """The values that share a code, by the value of the code."""
    assert np.array_equal(np.signbit(before), np.signbit(after))
    return [before[after == value] for value in np.unique(after)]


def check_bins(before: np.ndarray, after: np.ndarray, codes: int) -> None:
    exact = np.isin(np.abs(before), [0.0, 1.0])
    assert np.array_equal(before[exact], after[exact])
    bins = bins_of(before, after)
    assert len(bins) <= codes
    last = -np.inf
    for values in bins:
        assert values.min() > last  # bins are intervals
        last = values.max()
        value = after[before == values[0]][0]
        assert values.min() <= value <= values.max()
        if value not in (0.0, 1.0, -1.0):
            middle = np.exp(np.log(np.abs(values)).mean())
            assert abs(value) == pytest.approx(middle, rel=1e-6)
    # No bin has much more than its share of values or range, unless it is one value.
    for group in (before < 0, (before > 0) & (before < 1), before > 1):
        inside = before[group & ~exact]
        size = 0.5 / max(1, len(inside))
        reach = np.ptp(np.log2(np.abs(inside))) if len(inside) else 0.0
        for values in bins_of(inside, after[group & ~exact]):
            if len(np.unique(values)) > 1:
                held = size * len(values) + 0.5 * np.ptp(np.log2(np.abs(values))) / reach
                assert held * codes * len(inside) / len(before) < 4


@given(varied_tables)
@settings(max_examples=12)
def test_bins_are_like_shares_and_values_stay_inside(table: BackoffTable) -> None:
    small = table.quantized(8)
    moved = [[], []]
    for level in range(3):
        rows, *before = table.rows(level, with_carriers=True)
        same, *after = small.rows(level, with_carriers=True)
        assert np.array_equal(rows, same)
        assert np.all(np.abs(after[0]) <= 1)
        for kind, (old, new) in enumerate(zip(before, after, strict=True)):
            single = old.astype(np.float32).astype(float)
            check_bins(single, new, 256)
            counted = (single != 0) & (single != -1)
            moved[kind] += np.abs(np.log2(single[counted] / new[counted])).tolist()
    found = quantize(table, 8)
    for change, logs in zip(found[1:], moved, strict=True):
        assert change.mean == pytest.approx(np.mean(logs), rel=1e-9, abs=1e-12)
        assert change.largest == pytest.approx(max(logs), rel=1e-9, abs=1e-12)


@given(varied_tables, st.sampled_from([8, 16]), st.integers(0, 2**32))
@settings(max_examples=12)
def test_the_automaton_is_the_same(table: BackoffTable, bits: int, seed: int) -> None:
    small = table.quantized(bits)
    assert np.array_equal(table.native.index, small.native.index)
    source = np.random.default_rng(seed)
    contexts = source.integers(0, WORDS + 2, (500, 2), dtype=np.uint32)
    contexts[::5, 1] = NO_ID
    words = source.integers(0, END + 1, 500, dtype=np.uint32)
    logs, following = table.advance(contexts, words)
    small_logs, same = small.advance(contexts, words)
    assert np.array_equal(following, same)
    assert (small_logs <= 1e-6).all()
    np.testing.assert_allclose(small_logs, logs, atol=0.2 if bits == 8 else 1e-6)
    ids = words.copy()
    starts = np.array([0, 0, 7, 200, 500], dtype=np.uint64)
    one, two = (small.score_sequences(ids, starts, PAD, END, threads) for threads in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("bits", [8, 16])
def test_threads_make_no_difference(bits: int) -> None:
    """More rows than one piece of work holds, and enough to be sorted by several threads."""
    source = np.random.default_rng(3)
    pairs = np.unique(source.geometric(0.002, (400_000, 2)) % 3000, axis=0)
    weights = source.geometric(0.1, len(pairs)).astype(np.uint64)
    rows = np.concatenate([pairs, [[3000, 0]]])
    chain = Chain.words(2, pad=3001)
    counts = count_rows(rows, chain, weights=[*weights.tolist(), 1], kind="tokens")
    table = kernel_table(counts, SMOOTHINGS["kneser-ney"], 3001, precision="single")
    one, two = (quantize(table, bits, threads=threads) for threads in (1, 2))
    assert len(table.rows(0)[0]) > 120_000
    assert one[1:] == two[1:]
    for name, array in one.table.to_tensors("t").items():
        assert np.array_equal(array, two.table.to_tensors("t")[name])


def test_tensors_there_and_back() -> None:
    table = varied_table(1, 300, "kneser-ney", "single")
    for bits in (8, 16):
        small = table.quantized(bits)
        tensors = {name: array.copy() for name, array in small.to_tensors("t").items()}
        again = BackoffTable.from_tensors(tensors, "t")
        assert again.shape.value_bits == bits
        for level in range(3):
            for one, two in zip(small.rows(level), again.rows(level), strict=True):
                assert np.array_equal(one, two)
        drawn = again.sample([(0, 1)] * 20, 1, np.arange(20, dtype="u8"), np.zeros(20, "u8"))
        assert (drawn <= END).all()
    assert table.quantized(8).bytes < table.bytes


def test_what_cannot_be_quantised() -> None:
    table = varied_table(1, 50, "kneser-ney", "single")
    small = table.quantized(8)
    assert code_of(lambda: small.quantized(8)) == "E_ARGUMENT"
    assert code_of(lambda: small.quantized(16)) == "E_ARGUMENT"
    for bits in (0, 3, 9, 32, 64):
        assert code_of(lambda bits=bits: table.quantized(bits)) == "E_ARGUMENT"
    assert code_of(lambda: table.quantized(8, threads=0)) == "E_ARGUMENT"


def test_progress_counts_to_the_end() -> None:
    class Watched:
        done = 0.0
        total = 0.0

        def step(self, description: str, *, total: float, **options: object):
            del description, options
            self.total = total
            return self

        def __enter__(self):
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def advance(self, amount: float, *, note: str | None = None) -> None:
            assert amount >= 0
            self.done += amount

    watched = Watched()
    quantize(varied_table(1, 50, "kneser-ney", "single"), 8, progress=watched)
    assert watched.total > 0
    assert watched.done == pytest.approx(watched.total)
