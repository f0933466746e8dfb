"""Treebank grammars: rules of binary trees, counted, with their relative frequencies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError
from treelm.grammar.binary_trees import NONE, BinaryTrees
from treelm.grammar.grammar import Grammar, IntArray

Counts = npt.NDArray[np.int64]


def count_rules(trees: BinaryTrees) -> tuple[IntArray, Counts, IntArray, Counts]:
    """Return the unary rules and their counts, and the same for binary rules; ascending."""
    symbol = trees.node_symbol.astype(np.int64)
    inner = trees.node_word == NONE
    binary = inner & (trees.node_right != NONE)
    unary = inner & ~binary
    size = len(trees.symbols)
    parent, child = symbol[unary], symbol[trees.node_left[unary]]
    keys, unary_counts = np.unique(parent * size + child, return_counts=True)
    unary_rules = np.stack([keys // size, keys % size], axis=1).astype(np.int32)
    parent = symbol[binary]
    left, right = symbol[trees.node_left[binary]], symbol[trees.node_right[binary]]
    keys, binary_counts = np.unique((parent * size + left) * size + right, return_counts=True)
    binary_rules = np.stack([keys // size // size, keys // size % size, keys % size], axis=1)
    return unary_rules, unary_counts, binary_rules.astype(np.int32), binary_counts


def extract_grammar(trees: BinaryTrees) -> Grammar:
    """Return the treebank grammar: every rule with its share of the rules of its left side.

    Raises:
        EstimationError: ``E_NO_DATA`` if there are no trees.

    Examples:
        >>> from treelm.grammar.binary_trees import build_binary_trees
        >>> from treelm.trees.packed import PackedTrees
        >>> from treelm.trees.tree import Tree
        >>> trees = [Tree("ROOT", [Tree("X", "a")])] * 3 + [Tree("ROOT", [Tree("Y", "b")])]
        >>> grammar = extract_grammar(build_binary_trees([PackedTrees.from_trees(trees)]))
        >>> grammar.unary_rules.tolist(), grammar.unary_weights.tolist()
        ([[0, 1], [0, 2]], [0.75, 0.25])
    """
    if not len(trees):
        raise EstimationError(
            "there are no trees to read a grammar from "
            f"({trees.cycles} had unary cycles, {trees.bad_roots} no ROOT at the top).",
            code="E_NO_DATA",
        )
    unary_rules, unary_counts, binary_rules, binary_counts = count_rules(trees)
    totals = np.bincount(unary_rules[:, 0], unary_counts, minlength=trees.phrasal)
    totals += np.bincount(binary_rules[:, 0], binary_counts, minlength=trees.phrasal)
    return Grammar(
        trees.symbols,
        trees.phrasal,
        np.ones(len(trees.symbols), dtype=np.int32),
        unary_rules,
        binary_rules,
        unary_counts / totals[unary_rules[:, 0]],
        binary_counts / totals[binary_rules[:, 0]],
    )
