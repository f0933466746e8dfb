"""The expectation step of latent grammars over pieces of a treebank, done by anybody.

Counts are sums of floating-point numbers, so their order is part of the result. The kernel adds up
phrasal rules piece by piece, and words one by one; a worker therefore has one piece, in which every
word is a rule of its own, and what it returns is added up in the order of the trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.grammar.binary_trees import NONE
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.kernel_errors import kernel_errors
from treelm.parallel.executor import Executor
from treelm.parallel.progress import SILENT, shared_step

#: Nodes after which the kernel begins another piece, at the end of a tree.
PIECE_NODES = 1 << 15

Nodes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]


class TreePiece(NamedTuple):
    """Some trees."""

    node_rule: Nodes
    node_left: Nodes
    node_right: Nodes
    tree_start: Nodes


def tree_pieces(whole: TreePiece, nodes: int = PIECE_NODES) -> Iterator[TreePiece]:
    """Yield the trees in the pieces of the kernel.

    Args:
        whole: All trees.
        nodes: Least number of nodes of a piece but the last.
    """
    starts = whole.tree_start.astype(np.int64)
    first = 0
    for tree in range(1, len(starts)):
        if starts[tree] - starts[first] < nodes and tree < len(starts) - 1:
            continue
        own = slice(int(starts[first]), int(starts[tree]))
        begin = np.uint32(own.start)
        left, right = (
            np.where(children == NONE, NONE, children - begin).astype(np.uint32)
            for children in (whole.node_left[own], whole.node_right[own])
        )
        yield TreePiece(
            whole.node_rule[own],
            left,
            right,
            (starts[first : tree + 1] - own.start).astype(np.uint32),
        )
        first = tree


class _Expected(NamedTuple):
    """What the expectation step has found in some trees."""

    places: Places
    """Of the phrasal weights that they use."""
    counts: FloatArray
    words: Places
    """The lexical rule of every word."""
    word_counts: FloatArray
    """Counts of the subcategories of every word's tag, one word after the other."""
    log_probs: FloatArray


@dataclass(frozen=True, eq=False)
class _Expect:
    """The expectation step over a piece.

    Args:
        phrasal: Rows of binary and unary rules.
        tags: The tag of every lexical rule.
        substates: Subcategories of all symbols.
        weights: Weights of all rules.
        phrasal_weights: Number of those of phrasal rules, which come first.
        threads: Number of threads.
    """

    phrasal: IntArray
    tags: IntArray
    substates: IntArray
    weights: FloatArray
    phrasal_weights: int
    threads: int

    def __call__(self, piece: TreePiece) -> _Expected:
        leaves = np.flatnonzero(piece.node_rule >= len(self.phrasal))
        words = piece.node_rule[leaves].astype(np.int64) - len(self.phrasal)
        rules = piece.node_rule.copy()
        rules[leaves] = len(self.phrasal) + np.arange(len(leaves), dtype=np.uint32)
        rows = np.full((len(self.phrasal) + len(leaves), 3), -1, dtype=np.int32)
        rows[: len(self.phrasal)] = self.phrasal
        rows[len(self.phrasal) :, 0] = self.tags[words]
        own = self.weights[word_places(self.tags, self.substates, words) + self.phrasal_weights]
        weights = np.concatenate([self.weights[: self.phrasal_weights], own])
        counts = np.empty_like(weights)
        with kernel_errors("expecting counts"):
            trees = _native.LatentTrees(
                rows, rules, piece.node_left, piece.node_right, piece.tree_start
            )
            log_probs = trees.expect(self.substates, weights, counts, threads=self.threads)
        found = counts[: self.phrasal_weights]
        places = np.flatnonzero(found)
        return _Expected(places, found[places], words, counts[self.phrasal_weights :], log_probs)


def word_places(tags: IntArray, substates: IntArray, words: Places) -> Places:
    """Return where the weights of lexical rules stand among those of all, one after the other."""
    sizes = substates[tags].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    own = sizes[words]
    ends = np.cumsum(own)
    within = np.arange(int(own.sum())) - np.repeat(ends - own, own)
    return np.repeat(starts[words], own) + within


def expect_in_pieces(
    trees: TreePiece,
    phrasal: IntArray,
    tags: IntArray,
    substates: IntArray,
    weights: FloatArray,
    *,
    counts: FloatArray,
    executor: Executor,
    threads: int,
) -> FloatArray:
    """Fill `counts` as the kernel does, by many workers; return the log probability of every tree.

    Args:
        trees: The trees.
        phrasal: Rows of binary and unary rules.
        tags: The tag of every lexical rule.
        substates: Subcategories of all symbols.
        weights: Weights of all rules.
        counts: An array to fill.
        executor: Does the work.
        threads: Number of threads of every worker.
    """
    lexical = int(substates[tags].astype(np.int64).sum())
    work = _Expect(phrasal, tags, substates, weights, len(weights) - lexical, threads)
    counts[:] = 0.0
    log_probs = []
    # What is shown of a cycle are its iterations.
    with shared_step(executor, SILENT, "expecting counts", unit="trees") as (_, finished):
        for found in executor.map(work, tree_pieces(trees)):
            finished(len(found.log_probs))
            counts[found.places] += found.counts
            places = word_places(tags, substates, found.words) + work.phrasal_weights
            np.add.at(counts, places, found.word_counts)
            log_probs.append(found.log_probs)
    return np.concatenate(log_probs)
