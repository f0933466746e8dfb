"""Compact tables: the same rows and the same numbers as in the order of hashes, to the last bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimation.kernel_models import Data, any_data
from tests.estimation.test_backoff_table import SMOOTHINGS, code_of, table_of
from tests.estimation.test_quantize import END, PAD, varied_table

from treelm.errors import ModelFileError
from treelm.estimation.backoff_table import NO_ID, BackoffTable
from treelm.estimation.layout import check_layout, make_compact
from treelm.estimation.quantize import quantize


def sorted_rows(table: BackoffTable, level: int) -> list[tuple[object, ...]]:
    columns, *values = table.rows(level, with_carriers=True)
    return sorted(zip(map(tuple, columns.tolist()), *(v.tolist() for v in values), strict=True))


def check_same(one: BackoffTable, two: BackoffTable, queries: np.ndarray) -> None:
    for level in range(len(one.widths)):
        assert sorted_rows(one, level) == sorted_rows(two, level)
        for look in (
            lambda table, level=level: table.log_probabilities(queries, level=level),
            lambda table, level=level: table.backoff_weights(queries[:, 1:], level=level),
        ):
            assert np.array_equal(look(one), look(two))
    for row in queries[:3]:
        context = row[1:].tolist()
        assert np.array_equal(one.distribution(context), two.distribution(context))


@pytest.mark.parametrize("precision", ["single", "double"])
@given(
    data=any_data(),
    smoothing=st.sampled_from(sorted(SMOOTHINGS)),
    bits=st.sampled_from([None, 4, 5, 6, 7, 8, 16]),
)
@settings(max_examples=40)
def test_a_compact_table_has_the_same_rows_and_numbers(
    data: Data, precision: str, smoothing: str, bits: int | None
) -> None:
    table = table_of(data, smoothing, precision=precision)
    if bits is not None:
        table = quantize(table, bits).table
    compact = make_compact(table, bits)
    assert compact.shape.compact
    assert not table.shape.compact
    rows = [*data.rows, *((4, *row[1:]) for row in data.rows)]
    rows += [(row[0], *([NO_ID] * (len(row) - 1))) for row in data.rows]
    check_same(table, compact, np.array(rows, dtype=np.uint32))


@pytest.mark.parametrize("bits", [None, 4, 6, 8, 16])
@pytest.mark.parametrize("smoothing", sorted(SMOOTHINGS))
def test_sequences_have_the_same_scores_and_states(smoothing: str, bits: int | None) -> None:
    table = varied_table(5, 400, smoothing, "single")
    if bits is not None:
        table = quantize(table, bits).table
    compact = make_compact(table, bits)
    source = np.random.default_rng(1)
    ids = source.integers(0, END, 4000).astype(np.uint32)
    starts = np.concatenate([[0], np.sort(source.integers(0, 4000, 500)), [4000]]).astype(np.uint64)
    for end in (END, None):
        assert np.array_equal(
            table.score_sequences(ids, starts, PAD, end),
            compact.score_sequences(ids, starts, PAD, end, threads=2),
        )
    contexts = np.stack([ids[:2000], ids[1:2001]], axis=1)
    for one, two in zip(
        table.advance(contexts, ids[2:2002]), compact.advance(contexts, ids[2:2002]), strict=True
    ):
        assert np.array_equal(one, two)


def test_compact_tables_are_smaller_and_saved_as_they_are() -> None:
    table = varied_table(7, 600, "kneser-ney", "single")
    compact = make_compact(table)
    assert compact.bytes < 0.75 * table.bytes
    again = BackoffTable.from_tensors(compact.to_tensors("t"), "t")
    for name in ("slots", "index", "codebooks"):
        one, two = getattr(again.native, name), getattr(compact.native, name)
        assert one.ctypes.data == two.ctypes.data  # used where they lie
    copied = pickle.loads(pickle.dumps(compact))
    ids, starts = np.arange(50, dtype=np.uint32), np.array([0, 20, 50], dtype=np.uint64)
    expected = table.score_sequences(ids, starts, PAD, END)
    for each in (compact, again, copied):
        assert np.array_equal(each.score_sequences(ids, starts, PAD, END), expected)


def test_samples_of_a_compact_table_have_its_probabilities() -> None:
    compact = make_compact(varied_table(9, 300, "kneser-ney", "single"))
    context = [3, 1]
    count = 4000
    drawn = compact.sample(
        [context] * count, 1, np.zeros(count, np.uint64), np.arange(count, dtype=np.uint64)
    )
    expected = np.exp(compact.distribution(context))
    found = np.bincount(drawn, minlength=len(expected)) / count
    assert np.abs(found - expected).max() < 5 * np.sqrt(expected.max() / count)


def test_what_a_compact_table_cannot_be() -> None:
    table = varied_table(3, 200, "kneser-ney", "single")
    compact = make_compact(table)
    assert code_of(lambda: make_compact(compact)) == "E_ARGUMENT"
    assert code_of(lambda: quantize(compact, 8)) == "E_ARGUMENT"
    assert code_of(lambda: make_compact(quantize(table, 8).table, 4)) == "E_ARGUMENT"
    with pytest.raises(ValueError, match=r"layout.* compact"):
        check_layout(5, "hashed")
    check_layout(5, "compact")
    check_layout(8, "hashed")


@pytest.mark.parametrize("change", ["ranges", "version", "shape"])
def test_damaged_compact_tables_are_refused(change: str) -> None:
    tensors = dict(make_compact(varied_table(3, 200, "kneser-ney", "single")).to_tensors("t"))
    name = "t.index" if change == "ranges" else "t.shape"
    damaged = np.array(tensors[name])
    if change == "ranges":
        damaged[1] += 1
    elif change == "version":
        damaged[0] = 4
    else:
        damaged[-1] += 1
    with pytest.raises(ModelFileError) as caught:
        BackoffTable.from_tensors({**tensors, name: damaged}, "t")
    assert caught.value.code == "E_MODEL_TABLES"
