"""The rules that trees use, looked up in a grammar that was made from other trees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import Vocabulary
from treelm.grammar.binary_trees import NONE, BinaryTrees
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.lexicon import Lexicon, block_starts

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_Ids = npt.NDArray[np.uint32]


def find_places(known: Places, keys: Places) -> Places:
    """Return the places of keys among ascending numbers, -1 for keys not among them.

    Examples:
        >>> find_places(np.array([2, 5, 9]), np.array([9, 3, 2])).tolist()
        [2, -1, 0]
    """
    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[places] == keys, places, -1)


def inner_rules(trees: BinaryTrees, symbol: Places, binary: IntArray, unary: IntArray) -> Places:
    """Return the rule of every node without a word: binary ones first, then unary ones.

    Args:
        trees: The trees.
        symbol: Per node, its symbol in the grammar; -1 if the grammar does not have it.
        binary: Rows (A, B, C) of the grammar, ascending.
        unary: Rows (A, B) of the grammar, ascending.

    Returns:
        -1 for words and for rules that the grammar does not have.
    """
    size = 1 + max(
        int(symbol.max(initial=0)), int(binary.max(initial=0)), int(unary.max(initial=0))
    )
    rule = np.full(len(symbol), -1, dtype=np.int64)
    inner = trees.node_word == NONE
    branching = inner & (trees.node_right != NONE)
    single = inner & ~branching
    sides = [symbol[branching]]
    sides += [symbol[side[branching]] for side in (trees.node_left, trees.node_right)]
    own = binary.astype(np.int64)
    found = find_places(
        (own[:, 0] * size + own[:, 1]) * size + own[:, 2],
        (sides[0] * size + sides[1]) * size + sides[2],
    )
    rule[branching] = np.where(np.min(sides, axis=0) >= 0, found, -1)
    above, below = symbol[single], symbol[trees.node_left[single]]
    own = unary.astype(np.int64)
    found = find_places(own[:, 0] * size + own[:, 1], above * size + below)
    known = (found >= 0) & (above >= 0) & (below >= 0)
    rule[single] = np.where(known, found + len(binary), -1)
    return rule


def word_ids(trees: BinaryTrees, vocabulary: Vocabulary) -> Places:
    """Return the ids of all words in the order of the text, signatures for unknown ones."""
    words = [trees.words[word] for word in trees.node_word[trees.leaves].tolist()]
    starts = trees.leaf_starts.tolist()
    encoded = [vocabulary.encode(words[first:last]) for first, last in pairwise(starts)]
    return np.concatenate([*encoded, np.zeros(0, dtype=np.uint32)]).astype(np.int64)


def pair_scores(lexicon: Lexicon, pairs: Places) -> FloatArray:
    """Return the scores of the tag's subcategories for every pair (word id, tag), in one array."""
    size = len(lexicon.substates)
    owners = np.repeat(np.arange(len(lexicon.vocabulary)), np.diff(lexicon.entry_starts))
    entry = find_places(owners * size + lexicon.entry_symbols, pairs[:, 0] * size + pairs[:, 1])
    sizes = lexicon.substates[pairs[:, 1]].astype(np.int64)
    starts = block_starts(sizes)
    within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], sizes)
    tag = np.repeat(lexicon.tag_starts[pairs[:, 1] - lexicon.phrasal], sizes) + within
    scores: FloatArray = np.repeat(lexicon.openness[pairs[:, 0]], sizes) * lexicon.open_scores[tag]
    own = np.repeat(entry >= 0, sizes)
    first = np.repeat(lexicon.score_starts[np.maximum(entry, 0)], sizes)
    scores[own] = lexicon.entry_scores[(first + within)[own]]
    return scores


def whole_trees(trees: BinaryTrees, good: Mask) -> Mask:
    """Return which trees have only good nodes."""
    return np.logical_and.reduceat(good, trees.tree_start[:-1].astype(np.int64))


def chosen_trees(trees: BinaryTrees, rule: Places, kept: Mask) -> tuple[_Ids, _Ids, _Ids, _Ids]:
    """Return rules, children and starts of the chosen trees, their nodes renumbered."""
    starts = trees.tree_start.astype(np.int64)
    sizes: Places = starts[1:] - starts[:-1]
    nodes = np.repeat(kept, sizes)
    number = np.append(np.cumsum(nodes) - 1, NONE)
    left, right = (
        number[np.minimum(side[nodes], len(nodes))].astype(np.uint32)
        for side in (trees.node_left, trees.node_right)
    )
    new_starts = block_starts(sizes[kept]).astype(np.uint32)
    return rule[nodes].astype(np.uint32), left, right, new_starts
