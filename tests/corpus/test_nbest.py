"""N-best lists of words: Moses and Kaldi, read, written, refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from treelm.corpus.nbest import (
    Hypothesis,
    NBest,
    kaldi_lines,
    moses_lines,
    numbered_lists,
    read_kaldi,
    read_moses,
    read_moses_columns,
)
from treelm.errors import CorpusFormatError, UsageError

MOSES = """\
0 ||| a man . ||| Distortion0= 0 LM0= -32.6 TM0= -1 -2 -3 ||| -102.5
0 ||| the man . ||| Distortion0= 0 LM0= -36.6 TM0= -9 -8 -2 ||| -102.75
3 ||| a dog ||| LM0= -3 ||| -1.0 ||| 0-0 1-1 ||| extra
"""


def test_moses_lists_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "nbest.gz"
    path.write_bytes(gzip.compress(MOSES.encode()))
    lists = list(read_moses(path))
    assert [(best.id, len(best), best.line) for best in lists] == [("0", 2, 1), ("3", 1, 3)]
    first = lists[0].hypotheses[0]
    assert first.words == ("a", "man", ".")
    assert first.features["TM0"] == ("-1", "-2", "-3")
    assert first.score == -102.5
    assert lists[1].hypotheses[0].more == ("0-0 1-1", "extra")
    assert "\n".join(moses_lines(lists)) + "\n" == MOSES


def test_a_feature_is_added(tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text(MOSES)
    (best, _) = read_moses(path)
    changed = NBest(best.id, tuple(each.with_feature("TreeLM0", -42.1) for each in best.hypotheses))
    line = next(iter(moses_lines([changed])))
    assert line == (
        "0 ||| a man . ||| Distortion0= 0 LM0= -32.6 TM0= -1 -2 -3 TreeLM0= -42.1 ||| -102.5"
    )
    assert "TreeLM0" not in best.hypotheses[0].features


def test_short_and_old_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text("7 ||| a b\n\n8 ||| ||| -1 -2 ||| -3\n")
    short, old = read_moses(path)
    assert short.hypotheses[0].score is None
    assert old.hypotheses[0].words == ()
    assert old.hypotheses[0].features == {"": ("-1", "-2")}
    assert list(moses_lines([short, old])) == ["7 ||| a b", "8 |||  ||| -1 -2 ||| -3.0"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("a b c\n", 1), ("0 ||| a ||| f= 1 ||| x\n", 1), ("0 ||| a\n0" + " ||| a" * 9, 2)],
)
def test_malformed_moses_lines_are_refused(text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text(text)
    with pytest.raises(CorpusFormatError, match=f"nbest:{line}: ") as caught:
        list(read_moses(path))
    assert (caught.value.code, caught.value.line) == ("E_NBEST", line)


def test_kaldi_lists_with_scores(tmp_path: Path) -> None:
    text, scores = tmp_path / "text", tmp_path / "scores"
    text.write_text("spk-utt-1 a b\nspk-utt-2\nother-1 c\n")
    scores.write_text("spk-utt-1 -1.5\nspk-utt-2 -2\nother-1 -0.5\n")
    first, second = read_kaldi(text, scores)
    assert first == NBest(
        "spk-utt", (Hypothesis(("a", "b"), score=-1.5), Hypothesis((), score=-2.0)), 1
    )
    assert (second.id, second.line) == ("other", 3)
    assert list(kaldi_lines([first, second])) == text.read_text().splitlines()
    assert list(kaldi_lines([second], scores=True)) == ["other-1 -0.5"]
    with pytest.raises(UsageError, match="x-1 has no score"):
        list(kaldi_lines([NBest("x", (Hypothesis(("a",)),))], scores=True))


def test_malformed_kaldi_lines_are_refused(tmp_path: Path) -> None:
    text, scores = tmp_path / "text", tmp_path / "scores"
    text.write_text("utt-1 a\nutt b\n")
    with pytest.raises(CorpusFormatError, match=r"text:2: "):
        list(read_kaldi(text))
    text.write_text("utt-1 a\nutt-2 b\n")
    scores.write_text("utt-1 -1\n")
    with pytest.raises(CorpusFormatError, match=r"scores:2: there is no score"):
        list(read_kaldi(text, scores))


def test_columns_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text(MOSES)
    lists = list(read_moses_columns(path))
    assert "".join(each.to_text() for each in lists) == MOSES
    table = lists[0].feature_table()
    assert table.layout == (("Distortion0", 1), ("LM0", 1), ("TM0", 3))
    assert table.values.tolist() == [[0, -32.6, -1, -2, -3], [0, -36.6, -9, -8, -2]]
    assert lists[0].totals().tolist() == [-102.5, -102.75]
    assert lists[0].reordered([1, 0]).lines == [2, 1]


def test_old_feature_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text("0 ||| a ||| d: 0 lm: -41.3 tm: -1 -2 ||| -3\n")
    (best,) = read_moses_columns(path)
    assert best.feature_table().layout == (("d", 1), ("lm", 1), ("tm", 2))
    (old,) = read_moses(path)
    assert old.hypotheses[0].features["tm"] == ("-1", "-2")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("LM0= -3", "2: not the features of the line before"),
        ("LM0= -3 -4 TM0= 1", "2: not the features of the line before"),
        ("TM0= 2 LM0= 1 3", "2: not the features of the line before"),
        ("LM0= x TM0= 1 2", '2: "x" is not a score'),
        ("LM0= -inf TM0= 1 2", '2: "-inf" is not a score'),
        ("LM0= nan TM0= 1 2", '2: "nan" is not a score'),
    ],
)
def test_unequal_or_malformed_features_are_refused(
    tmp_path: Path, second: str, message: str
) -> None:
    path = tmp_path / "nbest"
    path.write_text(f"0 ||| a ||| LM0= 1 TM0= 1 2 ||| 1\n0 ||| b ||| {second} ||| 1\n")
    (best,) = read_moses_columns(path)
    with pytest.raises(CorpusFormatError, match=message):
        best.feature_table()


def test_a_feature_named_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text("0 ||| a ||| LM0= 1 LM0= 2 ||| 1\n")
    (best,) = read_moses_columns(path)
    with pytest.raises(CorpusFormatError, match="1: a feature is named twice"):
        best.feature_table()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("0 1 0", "3: sentence 0 follows sentence 1"),
        ("0 x", '2: "x" is not the number of a sentence'),
        ("0 3", "2: there is no sentence 3: there are 3"),
    ],
)
def test_numbers_of_sentences_are_checked(tmp_path: Path, ids: str, message: str) -> None:
    path = tmp_path / "nbest"
    path.write_text("".join(f"{each} ||| a\n" for each in ids.split()))
    with pytest.raises(CorpusFormatError, match=message):
        list(numbered_lists(read_moses_columns(path), 3))
