"""Held-out trees: how probable a grammar in training finds trees it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError
from treelm.grammar.binary_trees import NONE, BinaryTrees
from treelm.grammar.grammar import FloatArray
from treelm.grammar.latent_trees import LatentRules, LatentTrees
from treelm.grammar.lexicon import Lexicon, block_starts
from treelm.grammar.split_merge import LatentWeights, unsplit_weights
from treelm.kernel_errors import kernel_errors

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Makes a lexicon of expected counts of tagged words, for a grammar in training.
LexiconMaker = Callable[[FloatArray, LatentWeights], Lexicon]

#: Share of the treebank grammar in the mixture that is judged.
FLOOR_SHARE = 0.001


class HeldOutTrees:
    """Trees that judge the grammars of a training; call it as `split_merge.HeldOut`.

    Words are scored by the smoothed lexicon, as in parsing. Subcategories can make a tree
    impossible that the grammar without them could make; so that one such tree does not decide
    everything, the grammar is judged as a mixture with the treebank grammar. Trees that this one
    cannot make are left out for good.

    Args:
        trees: The held-out trees.
        training: What the grammar is trained on.
        vocabulary: The words of the lexicons.
        lexicon: Makes the lexicon of expected counts of tagged words.
        threads: Kernel threads; results do not depend on it.

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
        kept = _whole_trees(trees, (symbol >= 0) & (rule >= 0))
        #: Trees that the training trees have no rules for.
        self.left_out = len(trees) - int(kept.sum())
        if not kept.any():
            raise EstimationError(
                "no held-out tree can be made of the rules of the training trees. Are they trees "
                "of the same kind?",
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
            self._native = _native.LatentTrees(rules.rows, *_chosen(trees, rule, kept))
        plain = unsplit_weights(training)
        tokens = training.tagged.tokens.astype(np.float64)
        self._floor = self._log_probs(plain, tokens)
        self._possible = ~np.isneginf(self._floor)
        self.left_out += int((~self._possible).sum())

    def _rules(self, trees: BinaryTrees, symbol: Places) -> tuple[Places, Places]:
        """Return the rule of every node, -1 where there is none, and the pairs (word id, tag)."""
        rules, size = self._training.rules, self._training.rules.symbols
        rule = np.full(len(symbol), -1, dtype=np.int64)
        inner = trees.node_word == NONE
        binary = inner & (trees.node_right != NONE)
        unary = inner & ~binary
        keys = symbol[binary] * size + symbol[trees.node_left[binary]]
        keys = keys * size + symbol[trees.node_right[binary]]
        own = rules.binary.astype(np.int64)
        rule[binary] = _find((own[:, 0] * size + own[:, 1]) * size + own[:, 2], keys)
        own = rules.unary.astype(np.int64)
        keys = symbol[unary] * size + symbol[trees.node_left[unary]]
        found = _find(own[:, 0] * size + own[:, 1], keys)
        rule[unary] = np.where(found >= 0, found + len(rules.binary), -1)
        ids = self._word_ids(trees)
        keys = ids * size + symbol[trees.leaves]
        pairs, places = np.unique(keys, return_inverse=True)
        rule[trees.leaves] = len(rules.binary) + len(rules.unary) + places
        tags = pairs % size
        return rule, np.stack([pairs // size, tags], axis=1)

    def _word_ids(self, trees: BinaryTrees) -> Places:
        """Return the ids of all words, signatures for unknown ones."""
        words = [trees.words[word] for word in trees.node_word[trees.leaves].tolist()]
        starts = trees.leaf_starts.tolist()
        encode = self._vocabulary.encode
        encoded = [encode(words[first:last]) for first, last in pairwise(starts)]
        return np.concatenate(encoded).astype(np.int64)

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
        with kernel_errors("judging held-out trees"):
            return self._native.log_probs(
                state.substates, np.concatenate([binary, unary, scores]), threads=self._threads
            )


def pair_scores(lexicon: Lexicon, pairs: Places) -> FloatArray:
    """Return the scores of the tag's subcategories for every pair (word id, tag), in one array."""
    size = len(lexicon.substates)
    owners = np.repeat(np.arange(len(lexicon.vocabulary)), np.diff(lexicon.entry_starts))
    entry = _find(owners * size + lexicon.entry_symbols, pairs[:, 0] * size + pairs[:, 1])
    sizes = lexicon.substates[pairs[:, 1]].astype(np.int64)
    starts = block_starts(sizes)
    within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], sizes)
    tag = np.repeat(lexicon.tag_starts[pairs[:, 1] - lexicon.phrasal], sizes) + within
    scores: FloatArray = np.repeat(lexicon.openness[pairs[:, 0]], sizes) * lexicon.open_scores[tag]
    own = np.repeat(entry >= 0, sizes)
    first = np.repeat(lexicon.score_starts[np.maximum(entry, 0)], sizes)
    scores[own] = lexicon.entry_scores[(first + within)[own]]
    return scores


def _find(known: Places, keys: Places) -> Places:
    """Return the places of keys among ascending numbers, -1 where they are none of them."""
    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[places] == keys, places, -1)


def _whole_trees(trees: BinaryTrees, good: Mask) -> Mask:
    """Return which trees have nothing but good nodes."""
    return np.logical_and.reduceat(good, trees.tree_start[:-1].astype(np.int64))


def _chosen(
    trees: BinaryTrees, rule: Places, kept: Mask
) -> tuple[
    npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]
]:
    """Return rules, children and starts of the chosen trees, their nodes numbered anew."""
    starts = trees.tree_start.astype(np.int64)
    sizes: Places = starts[1:] - starts[:-1]
    nodes = np.repeat(kept, sizes)
    number = np.append(np.cumsum(nodes) - 1, NONE)
    children = (
        number[np.minimum(side[nodes], len(nodes))].astype(np.uint32)
        for side in (trees.node_left, trees.node_right)
    )
    left, right = children
    new_starts = block_starts(sizes[kept]).astype(np.uint32)
    return rule[nodes].astype(np.uint32), left, right, new_starts
