"""Probabilities of given trees: the worked examples, and sums over all trees of a sentence."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from tests.grammar.small_grammars import grammars, make_grammar, make_lexicon, sentences
from tests.reference.derivations import Derivation, derivations

from treelm.grammar.binary_trees import build_binary_trees
from treelm.grammar.chart import ChartParser
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.tree_scores import TreeScores
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree


def log_probs(grammar: Grammar, lexicon: Lexicon, *texts: str) -> list[float]:
    trees = [Tree.from_string(text) for text in texts]
    packed = build_binary_trees([PackedTrees.from_trees(trees)], keep_cycles=True)
    found: list[float] = TreeScores(grammar, lexicon).log_probs(packed, len(trees)).tolist()
    return found


def test_the_sum_over_subcategories_of_the_specification() -> None:
    grammar = make_grammar(["ROOT", "A"], 1, {}, {(0, 1, 1): [0.1, 0.4, 0.3, 0.2]}, [1, 2])
    lexicon = make_lexicon(grammar, {("a", 1): [0.9, 0.2], ("b", 1): [0.1, 0.8]})
    good, bad = log_probs(grammar, lexicon, "(ROOT (A a) (A b))", "(ROOT (A a) (A c))")
    assert math.exp(good) == pytest.approx(0.335, rel=1e-12)
    assert bad == -math.inf


def test_the_two_trees_of_the_specification() -> None:
    grammar = make_grammar(["ROOT", "A", "B"], 1, {}, {(0, 1, 2): 0.6, (0, 2, 1): 0.4})
    scores = {("a", 1): 0.7, ("b", 1): 0.3, ("a", 2): 0.5, ("b", 2): 0.5}
    lexicon = make_lexicon(grammar, scores, normalized=True)
    trees = ("(ROOT (A a) (B b))", "(ROOT (B a) (A b))", "(ROOT (A a) (A b))")
    found = np.exp(log_probs(grammar, lexicon, *trees))
    assert found.tolist() == pytest.approx([0.21, 0.06, 0.0])
    whole = ChartParser(grammar, lexicon).log_probs([("a", "b")])
    assert math.exp(whole[0]) == pytest.approx(0.27)
    assert (found / math.exp(whole[0])).tolist()[:2] == pytest.approx([7 / 9, 2 / 9])


def test_repeated_chains_have_their_share_of_the_sum() -> None:
    grammar = make_grammar(
        ["ROOT", "A", "B", "t"],
        3,
        {(0, 1): 1.0, (1, 2): 0.5, (2, 1): 0.5, (1, 3): 0.5, (2, 3): 0.5},
        {},
    )
    lexicon = make_lexicon(grammar, {("a", 3): 1.0}, normalized=True)
    chains = ["(ROOT (A (t a)))", "(ROOT (A (B (t a))))", "(ROOT (A (B (A (t a)))))"]
    assert np.exp(log_probs(grammar, lexicon, *chains)).tolist() == pytest.approx(
        [0.5, 0.25, 0.125]
    )
    assert ChartParser(grammar, lexicon).log_probs([("a",)])[0] == pytest.approx(0.0)


def bracketed(grammar: Grammar, derivation: Derivation, words: list[str]) -> str:
    symbol, _, first, _, children = derivation
    inner = [bracketed(grammar, child, words) for child in children] or [words[first]]
    return f"({grammar.symbols[symbol]} {' '.join(inner)})"


@settings(max_examples=80)
@given(grammars(), sentences)
def test_every_tree_is_the_sum_over_its_derivations(
    pair: tuple[Grammar, Lexicon], words: list[str]
) -> None:
    grammar, lexicon = pair
    trees: dict[str, float] = defaultdict(float)
    for weight, derivation in derivations(grammar, lexicon, lexicon.vocabulary.encode(words)):
        trees[bracketed(grammar, derivation, words)] += weight
    whole = ChartParser(grammar, lexicon).log_probs([words])[0]
    found = np.exp(log_probs(grammar, lexicon, *trees)) if trees else np.zeros(0)
    assert found.tolist() == pytest.approx(list(trees.values()), rel=1e-9)
    assert float(found.sum()) == pytest.approx(math.exp(whole), rel=1e-9)
