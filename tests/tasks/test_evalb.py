"""The counts of evalb with COLLINS.prm; the expected numbers are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from treelm.corpus.brackets import EVALUATION_OPTIONS, ReadOptions, parse_tree, rewrite_brackets
from treelm.tasks.evaluate.evalb import EvalbSentence, Status, score_evalb, summarize_evalb
from treelm.tasks.evaluate.parse_accuracy import score_parse
from treelm.tasks.evaluate.parse_files import evaluate_evalb, evaluate_parse_files
from treelm.testing.strategies import trees
from treelm.trees.constituents import constituents
from treelm.trees.tree import Tree

TRACE_BELOW_A_NOUN_PHRASE = "(TOP (S (NP (NP (NN rain)) (SBAR (-NONE- 0))) (VP (VBD fell))))"
RAIN_FELL = "(TOP (S (NP (NN rain)) (VP (VBD fell))))"


def score(gold: str, guess: str) -> EvalbSentence:
    return score_evalb(1, [parse_tree(gold)], [parse_tree(guess)] if guess else [])


def counts(row: EvalbSentence) -> tuple[int, int, int, int, int, int]:
    return row.matched, row.gold, row.guessed, row.crossing, row.words, row.correct_tags


def files(folder: Path, gold: str, guess: str) -> tuple[Path, Path]:
    paths = folder / "gold.mrg", folder / "guess.mrg"
    for path, text in zip(paths, (gold, guess), strict=True):
        path.write_text(text)
    return paths


def test_a_phrase_over_its_like_counts_when_its_trace_is_gone(tmp_path: Path) -> None:
    row = score(TRACE_BELOW_A_NOUN_PHRASE, RAIN_FELL)
    assert counts(row) == (3, 4, 3, 0, 2, 2)
    assert not row.complete
    pair = files(tmp_path, f"{TRACE_BELOW_A_NOUN_PHRASE}\n", f"{RAIN_FELL}\n")
    accuracy = evaluate_parse_files(*pair, ReadOptions()).accuracy
    assert (accuracy.labelled_recall, accuracy.labelled_precision) == (0.75, 1.0)
    assert accuracy.exact_match == 0
    found = evaluate_evalb(*pair, ReadOptions())
    assert (found.all.recall, found.all.precision, found.all.complete_match) == (75, 100, 0)


@pytest.mark.parametrize(
    ("gold", "guess", "expected"),
    [
        # S A B match; C over "c d" is not D over "c d".
        ("(S (A (X a)) (B (X b) (C (X c) (X d))))", "(S (A (X a)) (B (X b) (D (X c) (X d))))", (3, 4, 4, 0, 4, 4)),
        # A over "a b" crosses B over "b c"; so does the second one of that span.
        ("(S (X a) (B (X b) (X c)))", "(S (A (A (X a) (X b))) (X c))", (1, 2, 3, 2, 3, 3)),
        # A wrong tag changes nothing else.
        ("(S (A (X a)) (X b))", "(S (A (Y a)) (X b))", (2, 2, 2, 0, 2, 1)),
        # Function tags are cut off phrases, not off tags.
        ("(S (NP-SBJ=1 (PRP I)) (VP (VB-X go)))", "(S (NP (PRP I)) (VP (VB go)))", (3, 3, 3, 0, 2, 1)),
        # ADVP and PRT are one, as phrases and as tags.
        ("(S (ADVP (RB up)) (PRT on))", "(S (PRT (RB up)) (ADVP on))", (2, 2, 2, 0, 2, 2)),
        # Both roots are left out, whatever they are called; punctuation is no word.
        ("( (S (NP (NN a)) (. .)))", "(ROOT (S (NP (NN a) (. .))))", (2, 2, 2, 0, 1, 1)),
        # NML and unary chains of one label are phrases like others.
        ("(NP (NML (NN a) (NN b)) (NN c))", "(NP (NP (NN a) (NN b) (NN c)))", (1, 2, 2, 0, 3, 3)),
    ],
)  # fmt: skip
def test_counts_of_a_sentence(gold: str, guess: str, expected: tuple[int, ...]) -> None:
    row = score(gold, guess)
    assert row.status is Status.VALID
    assert counts(row) == expected


def test_the_length_counts_punctuation_but_no_trace() -> None:
    row = score("(S (NP (-NONE- *)) (VP (VB go)) (, ,) (. .))", "(S (VP (VB go)) (, ,) (. .))")
    assert (row.length, row.words) == (3, 1)


@pytest.mark.parametrize(
    ("gold", "guess", "reason"),
    [
        ("(S (X a) (X b))", "(S (X a) (X c))", '"b" and "c"'),
        ("(S (X a) (X b))", "(S (X a))", "2 words"),
        # Each tree's own tags say what is punctuation.
        ("(S (X a) (. b))", "(S (X a) (X b))", "1 words"),
    ],
)
def test_other_words_are_an_error(gold: str, guess: str, reason: str) -> None:
    row = score(gold, guess)
    assert row.status is Status.ERROR
    assert reason in row.reason
    assert counts(row) == (0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("guess", ["", "(S (. .))"])
def test_a_parse_without_words_is_skipped(guess: str) -> None:
    assert score("(S (X a) (. .))", guess).status is Status.SKIPPED


def test_summaries_leave_out_errors_skipped_and_long_sentences() -> None:
    forty_one = " ".join(["(X a)"] * 41)
    rows = [
        score("(S (A (X a) (X b)) (X c))", "(S (X a) (A (X b) (X c)))"),  # 1 of 2, 1 crosses
        score("(S (A (X a)) (X b))", "(S (A (X a)) (X b))"),
        score("(S (X a))", "(S (X b))"),
        score("(S (X a))", ""),
        score(f"(S (A {forty_one}))", f"(S {forty_one})"),  # 1 of 2, and of 1
    ]
    found, short = summarize_evalb(rows), summarize_evalb(rows, 40)
    assert (found.sentences, found.errors, found.skipped, found.valid) == (5, 1, 1, 3)
    assert (short.sentences, short.errors, short.skipped, short.valid) == (4, 1, 1, 2)
    assert found.recall == pytest.approx(100 * 4 / 6)
    assert found.precision == pytest.approx(100 * 4 / 5)
    assert found.f1 == pytest.approx(100 * 8 / 11)
    assert found.complete_match == pytest.approx(100 / 3)
    assert found.average_crossing == pytest.approx(1 / 3)
    assert found.no_crossing == pytest.approx(200 / 3)
    assert (found.two_or_less_crossing, found.tagging_accuracy) == (100, 100)
    assert (short.recall, short.precision, short.complete_match) == (75, 75, 50)
    nothing = summarize_evalb([])
    assert (nothing.valid, nothing.recall, nothing.f1, nothing.tagging_accuracy) == (0, 0, 0, 0)


PLAIN_TREES = trees(
    6, labels=st.sampled_from(["S", "A", "ADVP", "PRT"]), words=st.sampled_from(["a"])
)


@given(PLAIN_TREES, PLAIN_TREES)
def test_counts_are_those_of_the_other_scores_where_no_punctuation_is(
    gold: Tree, guess: Tree
) -> None:
    assume(len(gold.words) == len(guess.words))
    row, plain = score_evalb(1, [gold], [guess]), score_parse(gold, guess)
    assert (row.matched, row.gold, row.guessed) == (plain.matched, plain.gold, plain.guessed)
    assert (row.words, row.complete) == (plain.tokens, plain.exact)
    right, found = constituents(gold), constituents(guess)
    crossing = 0
    for _, start, end in found.elements():
        inside = set(range(start, end))
        others = [set(range(a, b)) for _, a, b in right]
        crossing += any(inside & o and inside - o and o - inside for o in others)
    assert row.crossing == crossing


def test_lines_are_paired_as_evalb_pairs_them(tmp_path: Path) -> None:
    gold = "(S (X a) (X b))\n" * 6
    guess = (
        "(S (X a) (X b))\n"
        "(X a) (X b)\n"  # several trees on a line are one parse without the phrase above
        "\n"
        "(())\n"
        "(S (X a b))\n"  # malformed
        "(S (X 1) (X b))\n"
    )
    found = evaluate_evalb(*files(tmp_path, gold, guess), ReadOptions())
    assert [row.status for row in found.sentences] == [0, 0, 2, 2, 1, 1]
    assert counts(found.sentences[1]) == (0, 1, 0, 0, 2, 2)
    assert "E_MULTI_WORD" in found.sentences[4].reason


def test_wrapped_trees_are_paired_one_by_one_and_escapes_are_read(tmp_path: Path) -> None:
    gold = "( (S (X 1\\/2)\n  (X b)))\n\n( (S (X c)))\n"
    guess = "(ROOT (S (X 1/2) (X b)))\n(ROOT (S (X c)))\n"
    found = evaluate_evalb(*files(tmp_path, gold, guess), ReadOptions())
    assert [row.number for row in found.sentences] == [1, 2]
    assert found.all.complete_match == 100


def test_evaluation_reads_every_phrase_that_has_words(tmp_path: Path) -> None:
    path = tmp_path / "trees.mrg"
    path.write_text("( (S (NML-1 (NML (NN a)) (NP (-NONE- *))) (CODE x)))\n")
    read = b"".join(rewrite_brackets(path, EVALUATION_OPTIONS.recipe()))
    assert read == b"(ROOT (S (NML (NML (NN a)))))\n"


@pytest.mark.parametrize(
    ("treebank", "expected"),
    [("wsj-sample", (4585, 4592, 97.14)), ("gum", (23337, 23370, 97.81))],
)
def test_simplified_trees_of_treebanks_lack_what_evalb_says(
    shared_data: Path, tmp_path: Path, treebank: str, expected: tuple[int, int, float]
) -> None:
    """The numbers are those that evalb prints for the trees that training reads."""
    source = shared_data / "treebanks" / treebank / "test.mrg"
    simplified = tmp_path / "simplified.mrg"
    recipe = ReadOptions(respell=False).recipe()
    simplified.write_bytes(b"".join(rewrite_brackets(source, recipe)))
    found = evaluate_evalb(source, simplified, ReadOptions())
    matched, gold, complete = expected
    assert sum(row.matched for row in found.sentences) == matched
    assert sum(row.gold for row in found.sentences) == gold
    assert (found.all.errors, found.all.skipped, found.all.precision) == (0, 0, 100)
    assert round(found.all.complete_match, 2) == complete
    # What is scored by default are the same constituents.
    plain = evaluate_parse_files(source, simplified, ReadOptions()).accuracy
    assert [(row.matched, row.gold, row.guessed) for row in plain.per_sentence] == [
        (row.matched, row.gold, row.guessed) for row in found.sentences
    ]
