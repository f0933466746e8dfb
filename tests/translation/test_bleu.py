"""BLEU: the statistics and the figure of sacreBLEU, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.errors import CorpusFormatError, UsageError
from treelm.translation.bleu import (
    References,
    bleu,
    list_statistics,
    text_statistics,
    tokenizer,
)

sacrebleu = pytest.importorskip("sacrebleu.metrics")

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "."]), max_size=9).map(" ".join)


def test_the_worked_example() -> None:
    rows = text_statistics(["the cat sat on the mat"], [["the cat sat on a mat"]])
    assert rows.tolist() == [[5, 3, 2, 1, 6, 5, 4, 3, 6, 6]]
    assert bleu(rows.sum(axis=0)) == pytest.approx(53.728497, abs=1e-6)


@given(
    st.integers(1, 6).flatmap(
        lambda size: st.lists(st.lists(WORDS, min_size=size, max_size=size), min_size=2, max_size=4)
    ),
    st.sampled_from(["none", "exp"]),
)
def test_texts_are_measured_as_sacrebleu_does(texts: list[list[str]], smoothing: str) -> None:
    hypotheses, *references = texts
    theirs = sacrebleu.BLEU(tokenize="none", smooth_method=smoothing)
    expected = theirs.corpus_score(hypotheses, references)
    rows = text_statistics(hypotheses, references)
    sums = rows.sum(axis=0)
    assert sums[:4].tolist() == expected.counts
    assert sums[4:8].tolist() == expected.totals
    assert sums[8:].tolist() == [expected.sys_len, expected.ref_len]
    assert bleu(sums, smoothing=smoothing) == pytest.approx(expected.score, abs=1e-9)


@given(st.lists(WORDS, min_size=1, max_size=8), st.lists(WORDS, min_size=1, max_size=3))
def test_a_list_is_measured_as_its_hypotheses_are(
    hypotheses: list[str], references: list[str]
) -> None:
    together = list_statistics(hypotheses, References.of(references))
    alone = [text_statistics([each], [[ref] for ref in references])[0] for each in hypotheses]
    assert together.tolist() == [row.tolist() for row in alone]


def test_13a_splits_as_sacrebleu_does() -> None:
    hypotheses = ['It "works", doesn\'t it?', "a well-known fact: 3.14"]
    references = ['It "works", does it?', "one well-known fact: 3.14!"]
    tokenize = tokenizer("13a")
    rows = text_statistics([*map(tokenize, hypotheses)], [[*map(tokenize, references)]])
    expected = sacrebleu.BLEU(smooth_method="none").corpus_score(hypotheses, [references])
    assert bleu(rows.sum(axis=0)) == pytest.approx(expected.score, abs=1e-9)


def test_closest_length_is_the_shorter_of_two() -> None:
    references = References.of(["a b c d e f", "a b"])
    assert list_statistics(["x x x x", "x x x", ""], references)[:, 9].tolist() == [2, 2, 2]


def test_nothing_at_all_is_worth_nothing() -> None:
    rows = text_statistics(["", "a b c d"], [["a b c d", "a b c d"]])
    assert rows[0].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 4]
    assert bleu(rows).tolist() == [0.0, pytest.approx(100.0)]
    assert bleu(np.zeros(10)) == 0.0


def test_unequal_numbers_of_lines_are_refused() -> None:
    with pytest.raises(CorpusFormatError, match="2 translations, but the references are 1") as seen:
        text_statistics(["a", "b"], [["a"]])
    assert seen.value.code == "E_LENGTH_MISMATCH"
    with pytest.raises(CorpusFormatError, match="the references number 2 are 3"):
        text_statistics(["a"], [["a"], ["a", "b", "c"]])
    with pytest.raises(UsageError, match="needs references"):
        text_statistics(["a"], [])
    with pytest.raises(UsageError, match="not a tokenizer"):
        tokenizer("spm")  # type: ignore[arg-type]


def test_the_baseline_is_measured_as_it_was_published(shared_data: Path) -> None:
    folder = shared_data / "mt" / "multi30k"
    hypotheses, references = (
        (folder / name).read_text(encoding="utf-8").splitlines()
        for name in ("val.moses.en", "val.en")
    )
    ours = bleu(text_statistics(hypotheses, [references]).sum(axis=0))
    theirs = sacrebleu.BLEU(tokenize="none", smooth_method="none")
    assert ours == pytest.approx(theirs.corpus_score(hypotheses, [references]).score, abs=1e-6)
    assert round(float(ours), 1) == 40.1
