"""Small trees and weights for tests of latent grammars, by name instead of by number."""

from __future__ import annotations

import numpy as np
from tests.reference.latent_grammar import Part, Rule, Weights

from treelm.grammar.binary_trees import build_binary_trees
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.latent_trees import LatentTrees
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree


def latent_trees(texts: list[str]) -> LatentTrees:
    """Return trees written as brackets, for training."""
    trees = [Tree.from_string(text) for text in texts]
    return LatentTrees(build_binary_trees([PackedTrees.from_trees(trees)]))


def substate_array(trees: LatentTrees, substates: dict[str, int]) -> IntArray:
    """Return the number of subcategories of every symbol; one where none is given."""
    return np.array([substates.get(name, 1) for name in trees.trees.symbols], dtype=np.int32)


def rule_names(trees: LatentTrees, substates: IntArray) -> list[Rule]:
    """Return what every weight is about, in the order of the weights."""
    symbols, words = trees.trees.symbols, trees.trees.words
    first_lexical = len(trees.rules.binary) + len(trees.rules.unary)
    names: list[Rule] = []
    for number, row in enumerate(trees.rules.rows.tolist()):
        parts = [symbol for symbol in row if symbol >= 0]
        for place in np.ndindex(*(int(substates[symbol]) for symbol in parts)):
            rule: list[Part] = [(symbols[s], int(x)) for s, x in zip(parts, place, strict=True)]
            if number >= first_lexical:
                rule.append(words[trees.tagged.pairs[number - first_lexical, 0]])
            names.append(tuple(rule))
    return names


def weight_array(trees: LatentTrees, substates: IntArray, weights: Weights) -> FloatArray:
    """Return weights by name as the array that kernels take."""
    return np.array([weights.get(rule, 0.0) for rule in rule_names(trees, substates)])


def named(trees: LatentTrees, substates: IntArray, values: FloatArray) -> dict[Rule, float]:
    """Return an array of weights or counts by name."""
    return dict(zip(rule_names(trees, substates), values.tolist(), strict=True))


def random_weights(trees: LatentTrees, substates: IntArray, seed: int) -> FloatArray:
    """Return positive random weights that add up to one for every subcategory."""
    from treelm.grammar.split_merge import maximize

    size = trees.rules.ends(substates)[2]
    weights = np.random.default_rng(seed).uniform(0.05, 1.0, size)
    maximize(trees.rules, substates, weights, weights.copy())
    return weights
