"""Files of scores."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.score_files import (
    ScoreTable,
    align_tables,
    parse_labels,
    parse_scores,
    read_scores,
    write_outcomes,
    write_score_table,
)
from treelm.errors import CorpusFormatError

HEADER = "id\tlen\tlogp_model\tlogp_unigram\tn_trees\tfallback"
SCORES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.just(-math.inf), st.just(-0.0)
)


@given(st.lists(st.tuples(SCORES, st.floats(-1e6, 0), st.booleans()), min_size=1, max_size=20))
def test_tables_come_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, float, bool]]
) -> None:
    path = tmp_path_factory.mktemp("scores") / "x.tsv.gz"
    number = len(rows)
    table = ScoreTable(
        ids=tuple(f"s{place}" for place in range(number)),
        scores=np.array([row[0] for row in rows]),
        lengths=np.arange(1, number + 1),
        unigram=np.array([row[1] for row in rows]),
        n_trees=np.arange(number),
        fallback=np.array([row[2] for row in rows]),
    )
    write_score_table(path, table)
    found = read_scores(path)
    assert found.ids == table.ids
    assert not found.is_classifier
    for name in ("scores", "lengths", "unigram", "n_trees", "fallback"):
        assert getattr(found, name).tolist() == getattr(table, name).tolist()


def test_classifiers_have_three_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    write_score_table(path, ScoreTable(("a", "b"), np.array([1.5, -math.inf]), np.array([3, 4])))
    assert path.read_text() == "id\tlen\tscore\na\t3\t1.5\nb\t4\t-inf\n"
    assert read_scores(path).is_classifier
    with pytest.raises(ValueError, match="lengths"):
        write_score_table(path, ScoreTable(("a",), np.array([1.0])))


def test_one_number_a_line() -> None:
    table = parse_scores(["-1.5", " -2e3 ", "", "", "-inf", "4"], "x")
    assert table.scores.tolist() == [-1.5, -2000.0, -math.inf, 4.0]
    assert table.ids == ("1", "2", "3", "4")
    assert table.documents is not None
    assert table.documents.tolist() == [0, 0, 1, 1]
    assert not table.is_classifier


ROW = "a\t3\t-1.0\t-2.0\t1\t0"


@pytest.mark.parametrize(
    ("lines", "line", "code"),
    [
        (["-1", "x"], 2, "E_SCORE_FILE"),
        (["-1", "-1 -2"], 2, "E_SCORE_FILE"),
        (["-1", "1_0"], 2, "E_SCORE_FILE"),
        (["-1", "٣"], 2, "E_SCORE_FILE"),
        (["-1", "0x10"], 2, "E_SCORE_FILE"),
        (["-1", "nan"], 2, "E_NAN"),
        (["-1", "-NaN"], 2, "E_NAN"),
        (["-1", "inf"], 2, "E_NAN"),
        (["-1", "1e999"], 2, "E_NAN"),
        (["-1", "-1e999"], 2, "E_NAN"),
        (["id\tlen"], 1, "E_SCORE_FILE"),
        (["id"], 1, "E_SCORE_FILE"),
        ([ROW], 1, "E_SCORE_FILE"),
        ([HEADER, "a\t3"], 2, "E_SCORE_FILE"),
        ([HEADER, ROW, ""], 3, "E_SCORE_FILE"),
        ([HEADER, ROW, ROW], 3, "E_SCORE_IDS"),
        ([HEADER, "\t3\t-1\t-2\t1\t0"], 2, "E_SCORE_FILE"),
        ([HEADER, "a\t0\t-1\t-2\t1\t0"], 2, "E_SCORE_FILE"),
        ([HEADER, "a\t1.5\t-1\t-2\t1\t0"], 2, "E_SCORE_FILE"),
        ([HEADER, "a\t3\tnan\t-2\t1\t0"], 2, "E_NAN"),
        ([HEADER, "a\t3\t-1\t-inf\t1\t0"], 2, "E_NAN"),
        ([HEADER, "a\t3\t-1\t-2\t-1\t0"], 2, "E_SCORE_FILE"),
        ([HEADER, "a\t3\t-1\t-2\t1\tyes"], 2, "E_SCORE_FILE"),
    ],
)
def test_malformed_lines_are_refused_with_their_place(
    lines: list[str], line: int, code: str
) -> None:
    with pytest.raises(CorpusFormatError, match=rf"^x\.tsv:{line}: ") as caught:
        parse_scores(lines, "x.tsv")
    assert (caught.value.code, caught.value.line) == (code, line)


@pytest.mark.parametrize("lines", [[], ["", ""], [HEADER]])
def test_files_without_scores_are_refused(lines: list[str]) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        parse_scores(lines, "x.tsv")
    assert caught.value.code == "E_NO_DATA"


def test_tables_are_brought_into_one_order() -> None:
    first = ScoreTable(("s10", "s9"), np.array([1.0, 2.0]), np.array([3, 4]))
    second = ScoreTable(("s9", "s10"), np.array([5.0, 6.0]), np.array([4, 3]))
    one, two = align_tables(first, second)
    assert one.ids == two.ids == ("s9", "s10")
    assert (one.scores.tolist(), two.scores.tolist()) == ([2.0, 1.0], [5.0, 6.0])
    assert align_tables(first, second, by_id=False)[1].ids == ("s10", "s9")


@pytest.mark.parametrize(
    "other",
    [
        ScoreTable(("s9", "s11"), np.array([1.0, 2.0]), np.array([4, 3]), name="B"),
        ScoreTable(("s9",), np.array([1.0]), np.array([4]), name="B"),
        ScoreTable(("s9", "s10"), np.array([1.0, 2.0]), np.array([4, 4]), name="B"),
    ],
)
def test_tables_of_other_sentences_are_refused(other: ScoreTable) -> None:
    table = ScoreTable(("s9", "s10"), np.array([1.0, 2.0]), np.array([4, 3]), name="A")
    with pytest.raises(CorpusFormatError, match="A") as caught:
        align_tables(table, other)
    assert caught.value.code == "E_SCORE_IDS"


def test_labels_and_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_outcomes(path, [True, False])
    assert path.read_text() == "1\n0\n"
    found = parse_labels(["1", "+1", "+", "good", "0", "-1", "-", " bad"])
    assert found is not None
    assert found.tolist() == [True] * 4 + [False] * 4
    assert parse_labels([]) is None
    assert parse_labels(["1", ""]) is None
