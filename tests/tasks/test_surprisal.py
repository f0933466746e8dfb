"""Tables of surprisal, and the scores of lines."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.models.toy_model import ToyModel, ToySentences

from treelm import _native
from treelm.corpus.corpus import SentenceInDocument, sentences_in_documents
from treelm.errors import UnsupportedTask, UsageError
from treelm.tasks.sample import sample_sentences
from treelm.tasks.score import score_lines
from treelm.tasks.surprisal.rows import COLUMNS, SurprisalRow
from treelm.tasks.surprisal.surprisal import surprisal_rows
from treelm.tasks.surprisal.tables import TableFormat, table_lines

LINES = ['the boat , " left', "", "", "a ship's harbour", "left"]


def table(form: TableFormat, *, eos: bool = False) -> str:
    rows = surprisal_rows(ToyModel.of(), sentences_in_documents(LINES), eos=eos)
    return b"".join(table_lines(rows, form)).decode()


def test_rows_are_numbered_and_in_bits() -> None:
    rows = [
        row
        for sentence in surprisal_rows(ToyModel.of(), sentences_in_documents(LINES))
        for row in sentence
    ]
    assert [(row.doc_id, row.sent_id, row.word_id) for row in rows] == [
        *((1, 1, word) for word in range(1, 6)),
        *((2, 2, word) for word in range(1, 4)),
        (2, 3, 1),
    ]
    assert [row.word for row in rows] == " ".join(LINES).split()
    for row in rows:
        assert row.surprisal == pytest.approx(-row.log_prob / math.log(2))
    assert [row.word for row in rows if row.oov] == [",", '"', "ship's"]


def test_one_row_a_word_and_one_an_end_when_asked() -> None:
    with_ends = table("tsv", eos=True).splitlines()
    assert len(with_ends) == 1 + 9 + 3
    assert sum(line.split("\t")[3] == "</s>" for line in with_ends) == 3
    assert all(line.endswith("\t0") for line in with_ends if "</s>" in line)


def test_tsv_is_never_quoted() -> None:
    lines = table("tsv").splitlines()
    assert lines[0] == "doc_id\tsent_id\tword_id\tword\tsurprisal\tlog_prob\toov"
    assert lines[4].split("\t")[3] == '"'
    assert {line.count("\t") for line in lines} == {6}
    assert lines[4].endswith("\t1")


def test_csv_is_quoted_where_needed() -> None:
    rows = list(csv.DictReader(io.StringIO(table("csv"))))
    assert [row["word"] for row in rows] == " ".join(LINES).split()
    tsv = [line.split("\t") for line in table("tsv").splitlines()[1:]]
    assert [list(row.values()) for row in rows] == tsv


def test_jsonl_has_one_object_a_word() -> None:
    rows = [json.loads(line) for line in table("jsonl").splitlines()]
    assert list(rows[0]) == list(COLUMNS)
    assert rows[3]["word"] == '"'
    assert rows[3]["oov"] is True


def test_json_has_no_infinity() -> None:
    row = SurprisalRow(1, 1, 1, "a", math.inf, -math.inf, False)
    for form in ("jsonl", "minicons"):
        text = b"".join(table_lines([[row]], form)).decode()
        assert "Infinity" not in text
        assert "null" in text


def test_itemmeasures_is_the_table_of_modelblocks() -> None:
    lines = table("itemmeasures").splitlines()
    assert lines[0] == "word sentid sentpos docid totsurp"
    assert lines[6].split(" ")[:4] == ["a", "1", "1", "2"]
    assert {line.count(" ") for line in lines} == {4}


def test_minicons_has_one_list_a_sentence() -> None:
    lines = [json.loads(line) for line in table("minicons").splitlines()]
    assert [len(line) for line in lines] == [5, 3, 1]
    assert lines[2][0][0] == "left"
    assert lines[2][0][1] == pytest.approx(ToyModel.of().surprisal("left")[0].surprisal)


def test_parquet_keeps_types() -> None:
    polars = pytest.importorskip("polars")
    rows = surprisal_rows(ToyModel.of(), sentences_in_documents(LINES))
    frame = polars.read_parquet(io.BytesIO(b"".join(table_lines(rows, "parquet"))))
    assert frame.columns == list(COLUMNS)
    assert frame["word"].to_list() == " ".join(LINES).split()
    assert frame["oov"].dtype == polars.Boolean
    empty = b"".join(table_lines([], "parquet"))
    assert polars.read_parquet(io.BytesIO(empty)).shape == (0, 7)


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl"])
def test_empty_text_gives_no_header_either(form: Literal["tsv", "csv", "jsonl"]) -> None:
    assert b"".join(table_lines([], form)) == b""


def test_sentences_come_as_soon_as_they_are_asked_for() -> None:
    read = []

    def source() -> Iterator[SentenceInDocument]:
        for words in (("the",), ("boat",)):
            read.append(words)
            yield SentenceInDocument(0, words)

    rows = surprisal_rows(ToyModel.of(), source(), line_buffered=True)
    next(rows)
    assert read == [("the",)]


def test_surprisal_needs_a_model_that_goes_word_by_word() -> None:
    with pytest.raises(UnsupportedTask) as caught:
        next(surprisal_rows(ToySentences(ToyModel.of()), sentences_in_documents(LINES)))
    assert caught.value.code == "E_NOT_INCREMENTAL"


@pytest.mark.parametrize("line_buffered", [False, True])
@pytest.mark.parametrize("eos", [False, True])
def test_lines_are_scored_in_order_blank_ones_left_blank(line_buffered: bool, eos: bool) -> None:
    model = ToyModel.of()
    scores = list(score_lines(model, LINES, eos=eos, line_buffered=line_buffered))
    assert [score is None for score in scores] == [False, True, True, False, False]
    for line, score in zip(LINES, scores, strict=True):
        assert score is None or score == pytest.approx(model.score(line, eos=eos).log_prob)


def test_samples_come_in_pieces_that_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ToyModel.of()
    whole = list(sample_sentences(model, 7, seed=2))
    monkeypatch.setattr("treelm.tasks.sample.SAMPLES_AT_ONCE", 3)
    assert list(sample_sentences(model, 7, seed=2)) == whole
    assert list(sample_sentences(model, 0)) == []
    with pytest.raises(UsageError):
        next(sample_sentences(model, -1))
    with pytest.raises(UnsupportedTask):
        next(sample_sentences(ToySentences(model), 1))


@given(st.lists(st.floats()))
@example([0.0, -0.0, 1.0, 1e15, 1e16, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308, math.inf])
def test_numbers_are_written_as_python_writes_them(values: list[float]) -> None:
    text = _native.numbers_text(np.array(values, np.float64))
    assert text.split("\n") == [*map(repr, values), ""]
