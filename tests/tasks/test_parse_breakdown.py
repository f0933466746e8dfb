"""Bracket scores by label and by length, against counts made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.errors import UsageError
from treelm.tasks.evaluate.parse_accuracy import ParseAccuracy, evaluate_parses
from treelm.tasks.evaluate.parse_breakdown import by_label, by_length
from treelm.testing.strategies import trees
from treelm.trees.tree import Tree


def tree(text: str) -> Tree:
    return Tree.from_string(text)


def flat(words: int, extra: str = "") -> Tree:
    return tree(f"(ROOT (S {' '.join(['(NN a)'] * words)} {extra}))")


def relabelled(gold: Tree) -> Tree:
    """Return the tree with every NP called VP."""

    def rewrite(node: Tree, children: tuple[Tree, ...]) -> Tree:
        if node.word is not None:
            return node
        return Tree("VP" if node.label.base == "NP" else node.label, children)

    return gold.transform(rewrite)


def flattened(gold: Tree) -> Tree:
    return Tree("ROOT", [Tree("S", [node for node in gold.preorder() if node.word is not None])])


@st.composite
def parsed_corpora(draw: st.DrawFn) -> ParseAccuracy:
    """Gold trees with parses that are right, wrong, or not there."""
    gold = draw(st.lists(trees(), min_size=1, max_size=8))
    ways = (lambda right: right, relabelled, flattened, lambda _: None)
    guesses = [draw(st.sampled_from(ways))(right) for right in gold]
    return evaluate_parses(gold, guesses, draw(st.sampled_from(["english", "neutral"])))


def test_by_label_against_counts_by_hand() -> None:
    # Sentence 1: gold S NP VP NP NP PP NP, the parse lacks the larger NP.
    # Sentence 2: gold S NP VP, the parse calls the VP an ADJP.
    # Sentence 3: gold S VP, no parse.
    gold = [
        "(S (NP (P We)) (VP (V saw) (NP (NP (D the) (N man)) (PP (I with) (NP (D a) (N dog))))))",
        "(S (NP (P It)) (VP (V ran)))",
        "(S (VP (V go)))",
    ]
    guesses = [
        tree("(S (NP (P We)) (VP (V saw) (NP (D the) (N man)) (PP (I with) (NP (D a) (N dog)))))"),
        tree("(S (NP (P It)) (ADJP (V ran)))"),
        None,
    ]
    found = by_label(evaluate_parses([tree(text) for text in gold], guesses))
    assert [(score.label, score.gold, score.guessed, score.matched) for score in found] == [
        ("NP", 5, 4, 4),
        ("S", 3, 2, 2),
        ("VP", 3, 1, 1),
        ("PP", 1, 1, 1),
        ("ADJP", 0, 1, 0),
    ]
    noun_phrases, _, verb_phrases, _, never_gold = found
    assert (noun_phrases.precision, noun_phrases.recall) == (1.0, 4 / 5)
    assert noun_phrases.f1 == pytest.approx(8 / 9)
    assert (verb_phrases.precision, verb_phrases.recall, verb_phrases.f1) == (1.0, 1 / 3, 0.5)
    assert (never_gold.precision, never_gold.recall, never_gold.f1) == (0.0, 0.0, 0.0)
    assert " ".join(noun_phrases.to_record()) == "label gold guessed matched precision recall f1"


def test_equal_labels_are_one_row() -> None:
    gold, guess = tree("(VP (VB look) (PRT (RP up)))"), tree("(VP (VB look) (ADVP (RB up)))")
    assert [score.label for score in by_label(evaluate_parses([gold], [guess]))] == ["ADVP", "VP"]
    neutral = by_label(evaluate_parses([gold], [guess], "neutral"))
    assert [(score.label, score.gold, score.guessed) for score in neutral] == [
        ("VP", 1, 1),
        ("PRT", 1, 0),
        ("ADVP", 0, 1),
    ]


def test_repeated_spans_count_once_each() -> None:
    gold, guess = tree("(A (B (A (X a))))"), tree("(A (B (A (C (A (X a))))))")
    found = by_label(evaluate_parses([gold], [guess]))
    assert [(score.label, score.gold, score.guessed, score.matched) for score in found] == [
        ("A", 2, 3, 2),
        ("B", 1, 1, 1),
        ("C", 0, 1, 0),
    ]


def test_by_length_against_counts_by_hand() -> None:
    lengths = [1, 10, 11, 20, 21, 30, 31, 40, 41, 100]
    gold = [flat(length) for length in lengths]
    guesses: list[Tree | None] = list(gold)
    guesses[1] = None
    guesses[9] = tree(f"(ROOT (S (NP {' '.join(['(NN a)'] * 100)})))")
    found = by_length(evaluate_parses(gold, guesses))
    assert [(score.words, score.sentences) for score in found] == [
        ("1-10", 2),
        ("11-20", 2),
        ("21-30", 2),
        ("31-40", 2),
        ("41+", 2),
    ]
    assert (found[0].precision, found[0].recall, found[0].exact_match) == (1.0, 0.5, 0.5)
    assert found[0].f1 == pytest.approx(2 / 3)
    assert (found[4].gold, found[4].guessed, found[4].matched) == (2, 3, 2)
    assert (found[4].precision, found[4].recall, found[4].f1) == (2 / 3, 1.0, 0.8)
    assert found[4].exact_match == 0.5
    assert all(score.f1 == score.exact_match == 1.0 for score in found[1:4])


def test_length_counts_no_punctuation() -> None:
    gold = [flat(10, "(. .)"), flat(10, "(NN .)"), tree("(ROOT (S (. .)))")]
    found = by_length(evaluate_parses(gold, gold))
    assert [(score.words, score.sentences) for score in found] == [
        ("0", 1),
        ("1-10", 1),
        ("11-20", 1),
    ]
    assert (found[0].gold, found[0].f1, found[0].exact_match) == (0, 0.0, 1.0)


def test_bins_of_ones_own() -> None:
    accuracy = evaluate_parses([flat(1), flat(2), flat(9)], [None, None, None])
    found = by_length(accuracy, [1, 4])
    assert [score.words for score in found] == ["1", "2-4", "5+"]
    assert [score.words for score in by_length(accuracy, [])] == ["1+"]
    for wrong in ([0], [4, 4], [4, 1], [-1]):
        with pytest.raises(UsageError, match="increasing"):
            by_length(accuracy, wrong)


@given(parsed_corpora())
def test_labels_sum_to_the_totals(accuracy: ParseAccuracy) -> None:
    found = by_label(accuracy)
    for name in ("gold", "guessed", "matched"):
        totals = sum(getattr(score, name) for score in accuracy.per_sentence)
        assert sum(getattr(score, name) for score in found) == totals
    assert len({score.label for score in found}) == len(found)
    assert [score.gold for score in found] == sorted((s.gold for s in found), reverse=True)
    assert all(score.matched <= min(score.gold, score.guessed) for score in found)
    assert all(max(score.gold, score.guessed) > 0 for score in found)


@given(parsed_corpora(), st.sets(st.integers(1, 30), max_size=4))
def test_bins_sum_to_the_totals(accuracy: ParseAccuracy, longest: set[int]) -> None:
    found = by_length(accuracy, sorted(longest))
    for name in ("gold", "guessed", "matched"):
        totals = sum(getattr(score, name) for score in accuracy.per_sentence)
        assert sum(getattr(score, name) for score in found) == totals
    assert sum(score.sentences for score in found) == accuracy.sentences
    exact = sum(score.exact_match * score.sentences for score in found)
    assert exact == pytest.approx(accuracy.exact_match * accuracy.sentences)
