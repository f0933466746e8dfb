"""Bracket scores by evalb's conventions."""

from __future__ import annotations

import pytest
from hypothesis import given

from treelm.errors import CorpusFormatError
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses, precision_recall_f1, score_parse
from treelm.testing.strategies import trees
from treelm.trees.constituents import constituents
from treelm.trees.tree import Tree


def tree(text: str) -> Tree:
    return Tree.from_string(text)


GOLD = "(ROOT (S (NP (X a) (X b)) (VP (X c) (NP (X d) (X e)))))"
RIGHT_BRANCHING = "(ROOT (S (X a) (S (X b) (VP (X c) (NP (X d) (X e))))))"


def test_right_branching_oracle() -> None:
    """The oracle of lsvm.md 8: matched 3 of 4, P = R = F = 75."""
    score = evaluate_parses([tree(GOLD)], [tree(RIGHT_BRANCHING)])
    assert score.unlabelled_precision == score.unlabelled_recall == score.unlabelled_f1 == 0.75
    assert score.exact_match == 0.0
    assert score.tagging_accuracy == 1.0


@given(trees())
def test_a_tree_matches_itself(any_tree: Tree) -> None:
    score = score_parse(any_tree, any_tree, "neutral")
    assert score.gold == score.guessed == score.matched == score.unlabelled_matched
    assert score.correct_tags == score.tokens
    assert score.exact


def test_punctuation_is_left_out_by_the_gold_tags() -> None:
    gold = tree("(ROOT (S (NP (NN a) (, ,)) (VP (VB b)) (. .)))")
    guess = tree("(ROOT (S (NP (NN a)) (NN ,) (VP (VB b) (NN .))))")
    score = evaluate_parses([gold], [guess])
    assert score.labelled_f1 == 1.0
    assert score.exact_match == 1.0
    assert score.tagging_accuracy == 1.0


def test_equal_labels_and_function_marks() -> None:
    gold = tree("(ROOT (VP (VB look) (PRT (RP up))))")
    guess = tree("(ROOT (VP (VB look) (ADVP (RB up))))")
    score = evaluate_parses([gold], [guess])
    assert score.labelled_f1 == 1.0
    assert score.tagging_accuracy == 0.5


def test_labels_count_and_unaries_are_a_multiset() -> None:
    gold = tree("(ROOT (S (NP (NP (NN a)))))")
    guess = tree("(ROOT (S (NP (NN a))))")
    score = score_parse(gold, guess)
    assert (score.gold, score.guessed, score.matched) == (3, 2, 2)
    other = score_parse(gold, tree("(ROOT (S (VP (VP (NN a)))))"))
    assert (other.matched, other.unlabelled_matched) == (1, 3)


def test_missing_parse_costs_recall_only() -> None:
    good = tree(GOLD)
    score = evaluate_parses([good, good], [good, None])
    assert (score.labelled_precision, score.labelled_recall) == (1.0, 0.5)
    assert score.labelled_f1 == pytest.approx(2 / 3)
    assert (score.exact_match, score.unparsed, score.sentences) == (0.5, 1, 2)
    assert score.tagging_accuracy == 0.5


def test_corpus_scores_are_sums_not_means() -> None:
    small, big = tree("(ROOT (S (X a)))"), tree(GOLD)
    score = evaluate_parses([small, big], [tree("(ROOT (Y (X a)))"), big])
    assert score.labelled_precision == pytest.approx(4 / 5)
    assert "task:parses" in score.signature


def test_different_words_are_an_error() -> None:
    with pytest.raises(CorpusFormatError, match="from word 2 on") as caught:
        score_parse(tree("(ROOT (S (X a) (X b)))"), tree("(ROOT (S (X a) (X c)))"))
    assert caught.value.code == "E_YIELD_MISMATCH"


def test_quotes_may_be_spelled_as_reading_spells_them() -> None:
    gold = Tree.from_string("(S (`` \") (NN rain) (VBD fell) ('' \"))")
    for opening, closing in (("``", "''"), ("\u201c", "\u201d"), ('"', '"')):
        words = (opening, "rain", "fell", closing)
        guess = Tree("S", [Tree(tag, word) for tag, word in zip(gold.tags, words, strict=True)])
        assert score_parse(gold, guess).matched == score_parse(gold, gold).matched == 1
    for wrong in ("(S (`` ``) (NN rain) (VBD fell))", "(S (`` ``) (NN snow) (VBD fell) ('' ''))"):
        with pytest.raises(CorpusFormatError, match="different words from word"):
            score_parse(gold, Tree.from_string(wrong))


def test_phrases_left_without_words_are_no_constituents() -> None:
    spans = constituents(
        tree("(ROOT (S (X (. .)) (NP (NN a))))"), ignore_positions={0}, ignore_labels={"ROOT"}
    )
    assert dict(spans) == {("S", 0, 1): 1, ("NP", 0, 1): 1}


def test_precision_recall_f1_where_undefined() -> None:
    assert precision_recall_f1(0, 0, 0) == (0.0, 0.0, 0.0)
    assert precision_recall_f1(1, 2, 4) == (0.5, 0.25, pytest.approx(1 / 3))
