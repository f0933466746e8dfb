"""What a back-off table answers: distributions, words one by one, sentences, arrays."""

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
    fallbacks_allowed,
    kernel_table,
    ngram_data,
    ngram_rows,
)

from treelm.errors import EngineError, EstimationError, ModelFileError, TreelmError
from treelm.estimation.backoff_table import NO_ID, BackoffTable
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.kneser_ney import kneser_ney
from treelm.estimation.smoothing import Smoothing

END, UNSEEN, PAD = 3, 4, 5


def table_of(data: Data, smoothing: str = "kneser-ney", **options) -> BackoffTable:
    kind = "tokens" if smoothing == "jelinek-mercer" else "types"
    counts = count_rows(data.rows, data.chain, kind=kind)
    with fallbacks_allowed():
        return kernel_table(counts, SMOOTHINGS[smoothing], data.outcomes, **options)


def pruned(counts: ChainCounts) -> Smoothing:
    """Only what was seen twice stays of the orders above one."""
    return kneser_ney(counts, min_counts=[2] * (len(counts) - 1) + [1])


def linear(counts: ChainCounts) -> Smoothing:
    return Smoothing(((0.0,) * 3,) * len(counts), weights=((0.3, 0.5, 0.7),) * len(counts))


SMOOTHINGS = {"kneser-ney": kneser_ney, "pruned": pruned, "jelinek-mercer": linear}


def code_of(call) -> str:
    with pytest.raises(TreelmError) as caught:
        call()
    return caught.value.code


@given(any_data())
@settings(max_examples=30)
def test_distribution(data: Data) -> None:
    table = table_of(data)
    for row in [*data.rows[:5], (0, *[2**32 - 1] * len(data.chain.columns))]:
        found = table.distribution(row[1:])
        expected = table.log_probabilities([(x, *row[1:]) for x in range(data.outcomes)])
        assert np.array_equal(found, expected)


@given(any_data())
@settings(max_examples=30)
def test_rows_are_the_entries(data: Data) -> None:
    counts = count_rows(data.rows, data.chain)
    table = table_of(data)
    for level in range(len(counts)):
        rows, probabilities, weights = table.rows(level)
        assert sorted(map(tuple, rows.tolist())) == list(
            map(tuple, counts.entries(level)[0].tolist())
        )
        whole = np.zeros((len(rows), len(data.chain.columns) + 1), dtype=np.uint32)
        whole[:, : rows.shape[1]] = rows
        found = np.log(probabilities)
        np.testing.assert_allclose(found, table.log_probabilities(whole, level=level), rtol=1e-14)
        assert len(weights) == len(rows)
        more, *_ = table.rows(level, with_carriers=True)
        assert {tuple(row) for row in rows.tolist()} <= {tuple(row) for row in more.tolist()}


WORDS = st.lists(st.sampled_from([0, 1, 2, END, UNSEEN]), max_size=12)


def padded_context(history: list[int], width: int, *, begins: bool = True) -> list[int]:
    """Most recent word first; one pad stands for all of them."""
    recent = [*reversed(history), PAD] if begins else list(reversed(history))
    return (recent + [NO_ID] * width)[:width]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(data=ngram_data(5), words=WORDS, precision=st.sampled_from(["single", "double"]))
@settings(max_examples=40)
def test_advance(data: Data, words: list[int], precision: str, smoothing: str) -> None:
    """Step by step from shortened contexts, against whole contexts."""
    table = table_of(data, smoothing, precision=precision)
    width = len(data.chain.columns)
    context = np.array([padded_context([], width)], dtype=np.uint32)
    for place, word in enumerate(words):
        full = padded_context(words[:place], width)
        logs, following = table.advance(context, [word])
        assert logs[0] == pytest.approx(table.log_probabilities([[word, *full]])[0], rel=1e-14)
        assert following.shape == (1, width)
        kept = int((following[0] != NO_ID).sum())
        assert following[0].tolist() == (
            padded_context(words[: place + 1], width)[:kept] + [NO_ID] * (width - kept)
        )
        context = following


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(data=ngram_data(4), histories=st.lists(WORDS, min_size=1, max_size=5))
@settings(max_examples=25)
def test_shortened_contexts_have_the_same_futures(
    data: Data, histories: list[list[int]], smoothing: str
) -> None:
    table = table_of(data, smoothing)
    width = len(data.chain.columns)
    contexts = [padded_context(history[:-1], width) for history in histories]
    words = [history[-1] if history else UNSEEN for history in histories]
    _, shortened = table.advance(
        np.array(contexts, dtype=np.uint32).reshape(len(words), width), words
    )
    for context, word, short in zip(contexts, words, shortened.tolist(), strict=True):
        full = [word, *context][:width]
        np.testing.assert_allclose(table.distribution(full), table.distribution(short), rtol=1e-14)
        for later in range(5):  # and after one more word
            queries = [([x, later, *each])[: width + 1] for each in (full, short) for x in range(5)]
            one, two = table.log_probabilities(queries).reshape(2, 5)
            np.testing.assert_allclose(one, two, rtol=1e-14)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("threads", [1, 2])
@given(
    data=ngram_data(5),
    sentences=st.lists(WORDS, max_size=40),
    smoothing=st.sampled_from(sorted(SMOOTHINGS)),
)
@settings(max_examples=20)
def test_score_sequences(
    data: Data, sentences: list[list[int]], threads: int, precision: str, smoothing: str
) -> None:
    table = table_of(data, smoothing, precision=precision)
    order = len(data.chain.columns) + 1
    ids = np.array([word for words in sentences for word in words], dtype=np.uint32)
    starts = np.cumsum([0, *map(len, sentences)]).astype(np.uint64)
    rows = ngram_rows(sentences, order, END, PAD)
    expected = table.log_probabilities(np.array(rows, dtype=np.uint32).reshape(-1, order))
    found = table.score_sequences(ids, starts, PAD, END, threads)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    ends = np.cumsum([len(words) + 1 for words in sentences], dtype=int) - 1
    inside = np.delete(expected, ends)
    np.testing.assert_allclose(
        table.score_sequences(ids, starts, PAD, None, threads), inside, rtol=1e-12
    )


def test_many_sequences_and_threads() -> None:
    """More sentences than one piece of work holds."""
    source = random.Random(9)
    sentences = [[source.randrange(30) for _ in range(source.randrange(12))] for _ in range(9000)]
    data = Data(Chain.words(3, pad=32), ngram_rows(sentences[:2000], 3, 30, 32), 32)
    table = table_of(data)
    ids = np.array([word for words in sentences for word in words], dtype=np.uint32)
    starts = np.cumsum([0, *map(len, sentences)]).astype(np.uint64)
    one, two = (table.score_sequences(ids, starts, 32, 30, threads) for threads in (1, 2))
    assert np.array_equal(one, two)
    rows = np.array(ngram_rows(sentences, 3, 30, 32), dtype=np.uint32)
    np.testing.assert_allclose(one, table.log_probabilities(rows), rtol=1e-12)


@pytest.mark.parametrize("starts", [[], [1, 5], [0, 6], [0, 3, 2, 5], [0, 9, 5], [0, 2**63, 5]])
def test_starts_that_do_not_fit(starts: list[int]) -> None:
    table = table_of(Data(Chain.words(2, pad=PAD), [(0, PAD), (END, 0)], 5))
    ids = np.zeros(5, dtype=np.uint32)
    array = np.array(starts, dtype=np.uint64)
    assert code_of(lambda: table.score_sequences(ids, array, PAD, END)) == "E_ARGUMENT"


@given(any_data(), st.sampled_from(["single", "double"]))
@settings(max_examples=30)
def test_tensors(data: Data, precision: str) -> None:
    table = table_of(data, precision=precision)
    tensors = table.to_tensors("words")
    again = BackoffTable.from_tensors({k: v.copy() for k, v in tensors.items()}, "words")
    for array in tensors.values():
        array.flags.writeable = False
    frozen = BackoffTable.from_tensors(tensors, "words")
    rows = [*data.rows, *((4, *row[1:]) for row in data.rows)]
    for other in (again, frozen):
        assert np.array_equal(other.log_probabilities(rows), table.log_probabilities(rows))
        assert other.widths == table.widths
        assert other.bytes == table.bytes
        assert all(np.array_equal(other.to_tensors("words")[k], v) for k, v in tensors.items())


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    data = Data(Chain.words(3, pad=PAD), ngram_rows([[0, 1, 2], [1, 2]], 3, END, PAD), 5)
    return {name: array.copy() for name, array in table_of(data).to_tensors("t").items()}


@pytest.mark.parametrize("place", range(23))
@pytest.mark.parametrize("value", [0, 1, 2, 3, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_forged_descriptions(tensors: dict[str, np.ndarray], place: int, value: int) -> None:
    """Every number of the description replaced: refused, or a table that still answers."""
    shape = tensors["t.shape"]
    shape[place] = value
    ids, starts = np.arange(5, dtype=np.uint32), np.array([0, 5], dtype=np.uint64)
    try:
        table = BackoffTable.from_tensors(tensors, "t")
        answers = table.distribution([0] * table.context_columns)
        scores = table.score_sequences(ids, starts, PAD, END)
    except (ModelFileError, EstimationError) as error:
        assert error.code in {"E_MODEL_TABLES", "E_ARGUMENT"}  # noqa: PT017 (or it answers)
    else:
        assert not np.isnan(answers).any()
        assert len(scores) == len(ids) + 1
        assert not np.isnan(scores).any()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.pop("t.slots"),
        lambda t: t.pop("t.shape"),
        lambda t: t.update({"t.slots": t["t.slots"][:-1]}),
        lambda t: t.update({"t.slots": t["t.slots"].reshape(-1, 1)}),
        lambda t: t.update({"t.slots": t["t.slots"].astype(np.int64)}),
        lambda t: t.update({"t.slots": np.append(t["t.slots"], t["t.slots"])}),
        lambda t: t.update({"t.shape": t["t.shape"][:-1]}),
        lambda t: t.update({"t.shape": np.append(t["t.shape"], t["t.shape"][:1])}),
        lambda t: t.update({"t.shape": t["t.shape"].astype(float)}),
        lambda t: t.pop("t.index"),
        lambda t: t.update({"t.index": t["t.index"][:-1]}),
        lambda t: t.update({"t.index": t["t.index"].astype(float)}),
        lambda t: t.pop("t.codebooks"),
        lambda t: t.update({"t.codebooks": np.zeros(256, np.float32)}),
    ],
)
def test_damaged_arrays(tensors: dict[str, np.ndarray], change) -> None:
    change(tensors)
    assert code_of(lambda: BackoffTable.from_tensors(tensors, "t")) == "E_MODEL_TABLES"


def test_arity() -> None:
    table = table_of(Data(Chain.words(3, pad=PAD), ngram_rows([[0, 1]], 3, END, PAD), 5))
    assert code_of(lambda: table.log_probabilities([(0, 1)])) == "E_ARITY"
    assert code_of(lambda: table.distribution([0])) == "E_ARITY"
    assert code_of(lambda: table.backoff_weights([(0, 1, 2)])) == "E_ARITY"
    assert code_of(lambda: table.advance([(0,)], [1])) == "E_ARITY"
    assert (
        code_of(lambda: table.sample([(0,)], 1, np.zeros(1, "u8"), np.zeros(1, "u8"))) == "E_ARITY"
    )
    assert code_of(lambda: table.advance([(0, 1)], [1, 2])) == "E_ARGUMENT"
    for call in (table.rows, lambda j: table.log_probabilities([(0, 1, 2)], level=j)):
        assert code_of(lambda call=call: call(3)) == "E_ARGUMENT"


def test_only_sequences_have_words() -> None:
    table = table_of(Data(Chain(("e",), (1, 0), (None,)), [(0, 1), (1, 1)], 5))
    zeros = np.zeros(2, dtype=np.uint64)
    with pytest.raises((EstimationError, EngineError)):
        table.advance([(0,)], [1])
    with pytest.raises((EstimationError, EngineError)):
        table.score_sequences(np.zeros(0, dtype=np.uint32), zeros, 0, None)


@pytest.mark.parametrize("seed", range(20))
def test_forged_slots(tensors: dict[str, np.ndarray], seed: int) -> None:
    """Arrays overwritten with noise, or shuffled: answers may be wrong, nothing worse."""
    source = np.random.default_rng(seed)
    name = "t.slots" if seed % 4 < 2 else "t.index"
    array = tensors[name]
    if seed % 2:
        top = 256 if array.dtype == np.uint8 else 2**32
        tensors[name] = source.integers(0, top, array.shape, dtype=array.dtype)
    else:
        tensors[name] = source.permuted(array, axis=0)
    table = BackoffTable.from_tensors(tensors, "t")
    ids = source.integers(0, 7, (50, 3), dtype=np.uint32)
    numbers = np.arange(50, dtype=np.uint64)
    table.log_probabilities(ids)
    table.advance(ids[:, 1:], ids[:, 0])
    table.score_sequences(ids.ravel(), np.array([0, 70, 150], dtype=np.uint64), PAD, END)
    drawn = table.sample(ids[:, 1:], 1, numbers, numbers)
    assert (drawn < table.shape.outcomes).all()
    for level in range(3):
        rows, *_ = table.rows(level, with_carriers=True)
        assert (rows[:, 0] < table.shape.outcomes).all()
