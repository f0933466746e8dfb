"""The probability of a bracket is that of all trees with it, as listing them shows."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

import treelm
from treelm.corpus.sample_treebank import sample_path
from treelm.grammar.parser_options import ParserOptions
from treelm.tasks.bracket_probabilities import (
    bracket_probabilities,
    probabilities_of_nodes,
    tree_brackets,
)
from treelm.trees.constituents import Constituent
from treelm.trees.tree import Tree

UNPRUNED = ParserOptions(pruning="none")


@pytest.fixture(scope="module")
def grammar() -> treelm.PcfgModel:
    return treelm.train("pcfg", treelm.TreeCorpus((sample_path(),)))


def test_brackets_of_a_tree_are_in_preorder() -> None:
    tree = Tree.from_string("(S (NP (DT the) (NN dog)) (VP (VBD ran)))")
    assert tree_brackets(tree) == [
        Constituent("S", 0, 3),
        Constituent("NP", 0, 2),
        Constituent("DT", 0, 1),
        Constituent("NN", 1, 2),
        Constituent("VP", 2, 3),
        Constituent("VBD", 2, 3),
    ]


@pytest.mark.parametrize("text", ["The ferry left .", "The old ferry left the harbour ."])
def test_bracket_probabilities_are_sums_over_all_trees(
    text: str, grammar: treelm.PcfgModel
) -> None:
    [forest] = grammar.forests_many([text], options=UNPRUNED)
    [trees] = grammar.k_best_many([text], 3000, options=UNPRUNED)
    assert forest is not None
    assert trees is not None
    listed: defaultdict[Constituent, float] = defaultdict(float)
    held = 0.0
    for each in trees:
        share = math.exp(each.tree_log_prob - each.sentence_log_prob)
        held += share
        for bracket in set(tree_brackets(each.tree)):
            listed[bracket] += share
    assert held > 0.98
    found = bracket_probabilities(forest)
    for bracket, share in listed.items():
        # The trees that are not listed may have the bracket or not.
        assert share - 1e-5 <= found[bracket] <= share + (1 - held) + 1e-5
    assert all(0 <= chance <= 1 for chance in found.values())


def test_every_word_has_one_tag(grammar: treelm.PcfgModel) -> None:
    words = ["The", "old", "ferry", "left", "."]
    [forest] = grammar.forests_many([words], options=UNPRUNED)
    assert forest is not None
    tags = set(grammar.grammar.symbols[grammar.grammar.phrasal :])
    found = bracket_probabilities(forest)
    for place in range(len(words)):
        whole = sum(
            chance
            for (label, first, last), chance in found.items()
            if label in tags and (first, last) == (place, place + 1)
        )
        assert whole == pytest.approx(1.0, abs=1e-5)


def test_nodes_that_nobody_knows_have_no_probability() -> None:
    tree = Tree.from_string("(NP (DT the))")
    assert probabilities_of_nodes(tree, {Constituent("DT", 0, 1): 0.5}) == [None, 0.5]
