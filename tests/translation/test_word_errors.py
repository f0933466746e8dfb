"""Word errors: brute force, vectors against single sentences, and the command."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command_line import assert_fine, assert_refused, treelm_inside

from treelm.translation.word_errors import WordErrors, list_errors, word_errors

SENTENCES = st.lists(st.sampled_from("abcd"), max_size=6).map(" ".join)


def fewest_errors(right: tuple[str, ...], found: tuple[str, ...]) -> int:
    """Return the edit distance by its definition."""

    @cache
    def rest(i: int, j: int) -> int:
        if i == len(right) or j == len(found):
            return len(right) - i + len(found) - j
        return min(
            rest(i + 1, j + 1) + (right[i] != found[j]), rest(i + 1, j) + 1, rest(i, j + 1) + 1
        )

    return rest(0, 0)


@given(SENTENCES, st.lists(SENTENCES, max_size=8))
def test_word_errors_are_the_fewest(reference: str, hypotheses: list[str]) -> None:
    right = tuple(reference.split())
    expected = [fewest_errors(right, tuple(text.split())) for text in hypotheses]
    assert list_errors(hypotheses, right).tolist() == [[each, len(right)] for each in expected]
    for text, errors in zip(hypotheses, expected, strict=True):
        found = word_errors(reference, text)
        assert found.errors == errors
        assert found.words == len(right)
        # What is put in less what is left out is what the lengths differ by.
        assert found.insertions - found.deletions == len(text.split()) - len(right)
        assert (found.wrong_sentences, found.sentences) == (int(errors > 0), 1)


def test_word_errors_kinds() -> None:
    assert word_errors("the cat sat", "the sat") == WordErrors(0, 0, 1, 3, 1, 1)
    assert word_errors("", "a b") == WordErrors(0, 2, 0, 0, 1, 1)
    assert word_errors("a", "a").added(word_errors("b c", "c")) == WordErrors(0, 0, 1, 3, 1, 2)


def test_word_errors_command(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    right, found, lists = tmp_path / "ref", tmp_path / "hyp", tmp_path / "lists"
    right.write_text("the cat sat\non a mat\n")
    found.write_text("the cat sat down\non mat\n")
    record = json.loads(
        assert_fine(treelm_inside(capfdbinary, "evaluate", "wer", right, found, "--json"))
    )
    assert record["wer"] == pytest.approx(100 * 2 / 6)
    counts = [record[name] for name in ("substitutions", "insertions", "deletions", "words")]
    assert counts == [0, 1, 1, 6]
    assert record["sentence_error_rate"] == 100.0
    low, high = record["interval"]
    assert low <= record["wer"] <= high
    lists.write_text("0 ||| the cat\n0 ||| the cat sat\n1 ||| on a map\n")
    done = treelm_inside(
        capfdbinary, "evaluate", "wer", right, lists, "--n-best", "moses", "--json"
    )
    record = json.loads(done.stdout)
    assert record["wer"] == pytest.approx(100 * 2 / 6)
    assert record["oracle_wer"] == pytest.approx(100 / 6)
    right.write_text("u1 the cat sat\nu2 on a mat\n")
    found.write_text("u2 on a mat\nu1 the cat\n")
    done = treelm_inside(capfdbinary, "evaluate", "wer", right, found, "--named", "--json")
    assert json.loads(done.stdout)["deletions"] == 1
    found.write_text("u3 on a mat\n")
    assert_refused(
        treelm_inside(capfdbinary, "evaluate", "wer", right, found, "--named"), 3, "u3", "reference"
    )
    assert_refused(treelm_inside(capfdbinary, "evaluate", "wer", right, found), 3, "2", "1")
