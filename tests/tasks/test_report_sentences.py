"""Which sentences count in a report."""

from __future__ import annotations

import math

import numpy as np
import pytest

from treelm.corpus.score_files import ScoreTable
from treelm.errors import CorpusFormatError
from treelm.tasks.report.sentences import check_overlap, common_sentences, find_overlap


def table(**scores: float) -> ScoreTable:
    """Return a table of sentences of as many words as their names have letters."""
    return ScoreTable(
        tuple(scores),
        np.array(list(scores.values())),
        np.array([len(name) for name in scores], dtype=np.int64),
    )


def test_what_one_model_dropped_is_dropped_for_all() -> None:
    found = common_sentences({"m": table(a=-1, b=-2, c=-3), "n": table(c=-6, a=-4)}, {"n": ["b"]})
    assert found.tables["m"].ids == found.tables["n"].ids == ("a", "c")
    assert found.tables["n"].scores.tolist() == [-4, -6]
    assert found.dropped == {"m": 0, "n": 1}
    assert found.left_out == ("b",)


def test_dropped_sentences_may_stand_in_their_table() -> None:
    found = common_sentences({"m": table(a=-1, b=-2), "n": table(a=-1, b=0)}, {"n": {"b"}})
    assert found.tables["m"].ids == ("a",)


def test_minus_infinity_is_a_score() -> None:
    found = common_sentences({"m": table(a=-math.inf, b=-2), "n": table(a=-1, b=-2)})
    assert found.tables["m"].scores.tolist() == [-math.inf, -2]
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("second", "dropped", "code", "part"),
    [
        (table(a=-1), {}, "E_SCORE_IDS", '"b" of "m"'),
        (table(a=-1, b=-1, c=-1), {}, "E_SCORE_IDS", '"c" of "n"'),
        (table(a=math.nan, b=1), {}, "E_NAN", '"a" is nan'),
        (table(a=math.inf, b=1), {}, "E_NAN", "inf"),
        (table(a=-1), {"x": ["b"]}, "E_SCORE_IDS", '"x"'),
        (table(a=1, b=1), {"m": ["a"], "n": ["b"]}, "E_NO_DATA", "no sentence is left"),
        (ScoreTable(("a", "a"), np.zeros(2)), {}, "E_SCORE_IDS", "two sentences"),
        (ScoreTable(("a", "b\tc"), np.zeros(2)), {}, "E_SCORE_IDS", r"b\x09c"),
        (ScoreTable(("a", ""), np.zeros(2)), {}, "E_SCORE_IDS", "empty"),
        (
            ScoreTable(("a", "b"), np.zeros(2), np.array([1, 9])),
            {},
            "E_SCORE_IDS",
            "9 words in the scores",
        ),
    ],
)
def test_scores_of_other_sentences_are_refused(
    second: ScoreTable, dropped: dict[str, list[str]], code: str, part: str
) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        common_sentences({"m": table(a=-1, b=-2), "n": second}, dropped)
    assert caught.value.code == code
    assert part in str(caught.value)


def test_no_tables_have_nothing_in_common() -> None:
    assert common_sentences({}).tables == {}


def sentences(*lines: str) -> list[list[str]]:
    return [line.split() for line in lines]


def test_overlap_counts_sentences_word_for_word() -> None:
    train = sentences("a b c d e", "short", "x y z u v w", "a b c d e")
    test = sentences("a b c d e", "a b c d e", "short", "A b c d e", "a b c d e f")
    found = find_overlap(iter(train), iter(test))
    assert (found.sentences, found.found) == (5, 3)
    assert (found.telling, found.telling_found) == (4, 2)
    assert found.share == 0.5
    assert found.examples == ("a b c d e",)


@pytest.mark.parametrize(("seen", "fine"), [(0, True), (1, True), (2, False)])
def test_overlap_is_tolerated_up_to_one_in_a_hundred(seen: int, fine: bool) -> None:
    test = sentences(*(f"one two three four {n}" for n in range(100)))
    found = find_overlap([*test[:seen], ["he"]], test)
    assert found.is_tolerable is fine
    check_overlap(found, allow_overlap=True)
    if fine:
        check_overlap(found)
    else:
        with pytest.raises(CorpusFormatError, match=r"2 of 100 .* \(2\.0%\)") as caught:
            check_overlap(found)
        assert caught.value.code == "E_OVERLAP"


def test_short_sentences_do_not_count_against_a_test() -> None:
    test = sentences("he left", "she left")
    found = find_overlap(test, test)
    assert (found.found, found.share) == (2, 0.0)
    check_overlap(found)
    assert find_overlap([], []).share == 0
