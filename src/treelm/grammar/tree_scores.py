"""Probabilities of given trees under a grammar, summed over the hidden subcategories."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from treelm import _native
from treelm.grammar.binary_trees import BinaryTrees
from treelm.grammar.grammar import FloatArray, Grammar, IntArray
from treelm.grammar.latent_trees import LatentRules
from treelm.grammar.lexicon import Lexicon, block_starts
from treelm.grammar.tree_rules import (
    Places,
    chosen_trees,
    inner_rules,
    pair_scores,
    whole_trees,
    word_ids,
)
from treelm.kernel_errors import kernel_errors
from treelm.transforms.unary_chains import TAG_MARK


class TreeScores:
    """Computes the probabilities of trees under a grammar, plain or latent.

    Args:
        grammar: The rules.
        lexicon: The words.
    """

    def __init__(self, grammar: Grammar, lexicon: Lexicon) -> None:
        self.grammar, self.lexicon = grammar, lexicon

    @cached_property
    def _numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        """Symbols by name, phrases and tags; tags without their mark."""
        symbols, phrasal = self.grammar.symbols, self.grammar.phrasal
        phrases = {name: number for number, name in enumerate(symbols[:phrasal])}
        tags = {_tag_name(name): number for number, name in enumerate(symbols[phrasal:], phrasal)}
        return phrases, tags

    def log_probs(self, trees: BinaryTrees, count: int, *, threads: int = 1) -> FloatArray:
        """Return the joint natural log probability of each tree and its words.

        Args:
            trees: Trees, binarized as those of the grammar were.
            count: Number of trees they were made from; some may have been left out.
            threads: Number of threads.

        Returns:
            One number for each original tree; minus infinity for what the grammar cannot
            derive, and for trees that were left out.
        """
        result = np.full(count, -np.inf)
        if not len(trees):
            return result
        phrases, tags = self._numbers
        names = [phrases.get(name, -1) for name in trees.symbols[: trees.phrasal]]
        names += [tags.get(_tag_name(name), -1) for name in trees.symbols[trees.phrasal :]]
        symbol = np.array(names, dtype=np.int64)[trees.node_symbol]
        grammar = self.grammar
        rule = inner_rules(trees, symbol, grammar.binary_rules, grammar.unary_rules)
        good = rule >= 0
        good[trees.leaves] = symbol[trees.leaves] >= 0
        kept = whole_trees(trees, good)
        if not kept.any():
            return result
        size = len(grammar.symbols)
        keys = word_ids(trees, self.lexicon.vocabulary) * size + symbol[trees.leaves]
        pairs, places = np.unique(np.maximum(keys, 0), return_inverse=True)
        rule[trees.leaves] = len(grammar.binary_rules) + len(grammar.unary_rules) + places
        node_rule, left, right, starts = chosen_trees(trees, rule, kept)
        used, places = np.unique(node_rule, return_inverse=True)
        rows, weights = self._rules(used.astype(np.int64), pairs)
        with kernel_errors("scoring trees"):
            kernel = _native.LatentTrees(rows, places.astype(np.uint32), left, right, starts)
            found = kernel.log_probs(grammar.substates, weights, threads=threads)
        result[trees.tree_source[kept]] = found
        return result

    def _rules(self, used: Places, pairs: Places) -> tuple[IntArray, FloatArray]:
        """Return the rows and the weights of the rules in use, numbered as `inner_rules` does."""
        grammar, size = self.grammar, len(self.grammar.symbols)
        ends = (len(grammar.binary_rules), len(grammar.binary_rules) + len(grammar.unary_rules))
        binary = used[used < ends[0]]
        unary = used[(used >= ends[0]) & (used < ends[1])] - ends[0]
        own = pairs[used[used >= ends[1]] - ends[1]]
        own = np.stack([own // size, own % size], axis=1)
        rules = LatentRules(
            size,
            grammar.binary_rules[binary],
            grammar.unary_rules[unary],
            own[:, 1].astype(np.int32),
        )
        weights = np.concatenate(
            [
                _blocks(grammar.binary_weights, grammar.binary_starts, binary),
                _blocks(grammar.unary_weights, grammar.unary_starts, unary),
                pair_scores(self.lexicon, own),
            ]
        )
        return rules.rows, weights


def _tag_name(name: str) -> str:
    # The mark comes before the annotation with parents, if there is one.
    return name.replace(TAG_MARK, "", 1) if TAG_MARK in name else name


def _blocks(weights: FloatArray, starts: Places, chosen: Places) -> FloatArray:
    """Return the blocks of some rules one after the other."""
    sizes = starts[chosen + 1] - starts[chosen]
    new = block_starts(sizes)
    places = np.arange(int(new[-1])) + np.repeat(starts[chosen] - new[:-1], sizes)
    return weights[places]
