"""Held-out trees: their likelihood under a grammar in training."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from treelm import _native
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError
from treelm.grammar.binary_trees import BinaryTrees
from treelm.grammar.grammar import FloatArray
from treelm.grammar.latent_trees import LatentRules, LatentTrees
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.split_merge import LatentWeights, unsplit_weights
from treelm.grammar.tree_rules import (
    Places,
    chosen_trees,
    inner_rules,
    pair_scores,
    whole_trees,
    word_ids,
)
from treelm.kernel_errors import kernel_errors

#: Makes a lexicon of expected counts of tagged words, for a grammar in training.
LexiconMaker = Callable[[FloatArray, LatentWeights], Lexicon]

#: Share of the treebank grammar in the mixture that is evaluated.
FLOOR_SHARE = 0.001


class HeldOutTrees:
    """Trees that evaluate the grammars of a training run; call it as `split_merge.HeldOut`.

    Words are scored by the smoothed lexicon, as in parsing. Subcategories can make a tree
    impossible that the grammar without them could derive; so that one such tree does not decide
    everything, the grammar is evaluated as a mixture with the treebank grammar. Trees that the
    treebank grammar cannot derive are left out.

    Args:
        trees: The held-out trees.
        training: What the grammar is trained on.
        vocabulary: The words of the lexicons.
        lexicon: Makes the lexicon of expected counts of tagged words.
        threads: Number of threads.

    Raises:
        EstimationError: ``E_NO_DATA`` if no tree is left.
    """

    def __init__(
        self,
        trees: BinaryTrees,
        training: LatentTrees,
        vocabulary: Vocabulary,
        lexicon: LexiconMaker,
        *,
        threads: int = 1,
    ) -> None:
        self._training, self._vocabulary = training, vocabulary
        self._lexicon, self._threads = lexicon, threads
        made = training.trees
        numbers = {name: number for number, name in enumerate(made.symbols)}
        known = np.array([numbers.get(name, -1) for name in trees.symbols], dtype=np.int64)
        symbol = known[trees.node_symbol]
        rule, pairs = self._rules(trees, symbol)
        kept = whole_trees(trees, (symbol >= 0) & (rule >= 0))
        #: Trees that the training trees have no rules for.
        self.left_out = len(trees) - int(kept.sum())
        if not kept.any():
            raise EstimationError(
                "no held-out tree can be derived with the rules of the training trees. Are they "
                "trees of the same kind?",
                code="E_NO_DATA",
            )
        self._pairs = pairs
        rules = LatentRules(
            len(made.symbols),
            training.rules.binary,
            training.rules.unary,
            pairs[:, 1].astype(np.int32),
        )
        with kernel_errors("grouping held-out trees by their rules"):
            self._native = _native.LatentTrees(rules.rows, *chosen_trees(trees, rule, kept))
        plain = unsplit_weights(training)
        tokens = training.tagged.tokens.astype(np.float64)
        self._floor = self._log_probs(plain, tokens)
        self._possible = ~np.isneginf(self._floor)
        self.left_out += int((~self._possible).sum())

    def _rules(self, trees: BinaryTrees, symbol: Places) -> tuple[Places, Places]:
        """Return the rule of every node, -1 where there is none, and the pairs (word id, tag)."""
        rules, size = self._training.rules, self._training.rules.symbols
        rule = inner_rules(trees, symbol, rules.binary, rules.unary)
        keys = word_ids(trees, self._vocabulary) * size + symbol[trees.leaves]
        pairs, places = np.unique(keys, return_inverse=True)
        rule[trees.leaves] = len(rules.binary) + len(rules.unary) + places
        return rule, np.stack([pairs // size, pairs % size], axis=1)

    def __call__(self, state: LatentWeights, counts: FloatArray) -> float:
        """Return the log likelihood of the trees.

        Args:
            state: The grammar in training.
            counts: Expected counts of the training's tagged words.
        """
        found = self._log_probs(state, counts)[self._possible]
        floor = self._floor[self._possible] + math.log(FLOOR_SHARE)
        return float(np.logaddexp(found + math.log1p(-FLOOR_SHARE), floor).sum())

    def _log_probs(self, state: LatentWeights, counts: FloatArray) -> FloatArray:
        binary, unary, _ = self._training.rules.split_weights(state.substates, state.weights)
        scores = pair_scores(self._lexicon(counts, state), self._pairs)
        with kernel_errors("scoring held-out trees"):
            return self._native.log_probs(
                state.substates, np.concatenate([binary, unary, scores]), threads=self._threads
            )
