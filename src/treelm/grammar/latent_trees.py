"""Trees whose labels are known and whose subcategories are not: expected counts of latent rules.

Rules of all kinds are numbered together: binary ones, unary ones, then lexical ones (a tag and a
word); the weights of rule r are a block of k_A x k_B x k_C numbers, one block after the other.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError
from treelm.grammar.binary_trees import NONE, BinaryTrees
from treelm.grammar.expect_shards import TreePiece, expect_in_pieces
from treelm.grammar.extract import count_rules
from treelm.grammar.grammar import FloatArray, Grammar, IntArray
from treelm.grammar.lexicon import TaggedWords
from treelm.kernel_errors import kernel_errors
from treelm.parallel.executor import SERIAL, Executor

#: A larger share of trees that the grammar cannot derive is an error.
TOLERATED_IMPOSSIBLE = 0.01


@dataclass(frozen=True, eq=False)
class LatentRules:
    """The rules of a treebank, and the layout of their weights in one array.

    Args:
        symbols: Number of symbols.
        binary: Rows (A, B, C), ascending.
        unary: Rows (A, B), ascending.
        tags: The tag of every lexical rule.
    """

    symbols: int
    binary: IntArray
    unary: IntArray
    tags: IntArray

    @cached_property
    def rows(self) -> IntArray:
        """Parent, left and right child of every rule, -1 where there is none."""
        count = len(self.binary) + len(self.unary) + len(self.tags)
        rows = np.full((count, 3), -1, dtype=np.int32)
        unary = len(self.binary) + len(self.unary)
        rows[: len(self.binary)] = self.binary
        rows[len(self.binary) : unary, :2] = self.unary
        rows[unary:, 0] = self.tags
        return rows

    def ends(self, substates: IntArray) -> tuple[int, int, int]:
        """Return where the weights of binary, unary and lexical rules end."""
        kinds = substates.astype(np.int64)
        binary = int(kinds[self.binary].prod(axis=1).sum())
        unary = binary + int(kinds[self.unary].prod(axis=1).sum())
        return binary, unary, unary + int(kinds[self.tags].sum())

    def split_weights(
        self, substates: IntArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weights of binary, of unary and of lexical rules."""
        binary, unary, _ = self.ends(substates)
        return weights[:binary], weights[binary:unary], weights[unary:]


class Expectation:
    """What one expectation step gives.

    Args:
        counts: Expected count of every rule with subcategories.
        tree_log_probs: Log probability of every tree, minus infinity if it is impossible.
    """

    __slots__ = ("counts", "tree_log_probs")

    def __init__(self, counts: FloatArray, tree_log_probs: FloatArray) -> None:
        self.counts = counts
        self.tree_log_probs = tree_log_probs

    @property
    def impossible(self) -> int:
        """Number of trees that the grammar cannot derive; they are not counted."""
        return int(np.isneginf(self.tree_log_probs).sum())

    @property
    def log_likelihood(self) -> float:
        """Log probability of all trees that the grammar can derive."""
        return float(self.tree_log_probs[~np.isneginf(self.tree_log_probs)].sum())

    def check(self) -> None:
        """Refuse numbers that show that training has gone wrong.

        Raises:
            EstimationError: ``E_NAN`` naming the tree, or ``E_IMPOSSIBLE_TREES`` if more than one
                tree in a hundred has a probability of zero.
        """
        wrong = np.flatnonzero(np.isnan(self.tree_log_probs))
        if len(wrong):
            raise EstimationError(
                f"the probability of tree {int(wrong[0]) + 1} is NaN. Look at this tree; "
                "it may be far longer or deeper than the others.",
                code="E_NAN",
            )
        trees = len(self.tree_log_probs)
        if self.impossible > TOLERATED_IMPOSSIBLE * trees:
            first = int(np.flatnonzero(np.isneginf(self.tree_log_probs))[0])
            raise EstimationError(
                f"{self.impossible} of {trees} trees have a probability of zero, tree {first + 1} "
                f"being the first; more than {TOLERATED_IMPOSSIBLE:.0%} is too many. Is the rule "
                "filter too large, or does the grammar come from another treebank?",
                code="E_IMPOSSIBLE_TREES",
            )


class LatentTrees:
    """Trees, their rules, and the kernel that sums over subcategories.

    Args:
        trees: Binary trees.
        tagged: Their tagged words, if not those of the trees themselves.

    Raises:
        EstimationError: ``E_NO_DATA`` if there are no trees.
    """

    def __init__(self, trees: BinaryTrees, tagged: TaggedWords | None = None) -> None:
        if not len(trees):
            raise EstimationError(
                "there are no trees to train on "
                f"({trees.cycles} had unary cycles, {trees.bad_roots} no ROOT at the top).",
                code="E_NO_DATA",
            )
        self.trees = trees
        self.tagged = TaggedWords.of(trees) if tagged is None else tagged
        unary, _, binary, _ = count_rules(trees)
        self.rules = LatentRules(len(trees.symbols), binary, unary, self.tagged.pairs[:, 1].copy())
        node_rule = _node_rules(trees, self.rules, self.tagged.leaf_pairs)
        self._whole = TreePiece(node_rule, trees.node_left, trees.node_right, trees.tree_start)
        self.rule_counts = np.bincount(node_rule, minlength=len(self.rules.rows)).astype(np.float64)
        with kernel_errors("grouping trees by their rules"):
            self._native = _native.LatentTrees(self.rules.rows, *self._whole)

    def __len__(self) -> int:
        return len(self.trees)

    def expect(
        self,
        substates: IntArray,
        weights: FloatArray,
        *,
        counts: FloatArray | None = None,
        threads: int = 1,
        executor: Executor = SERIAL,
    ) -> Expectation:
        """Return expected counts of all rules.

        Args:
            substates: Subcategories of all symbols.
            weights: Weights of all rules.
            counts: An array to fill; by default a new one.
            threads: Number of threads.
            executor: Does the work.

        Raises:
            EstimationError: ``E_NAN`` naming the tree whose numbers overflow.
        """
        counts = np.empty_like(weights) if counts is None else counts
        if executor.threads is not None:
            phrasal = len(self.rules.binary) + len(self.rules.unary)
            # A worker does not know the number of a tree that is too much for it.
            with contextlib.suppress(EstimationError):
                found = expect_in_pieces(
                    self._whole,
                    self.rules.rows[:phrasal],
                    self.rules.tags,
                    substates,
                    weights,
                    counts=counts,
                    executor=executor,
                    threads=executor.threads,
                )
                return Expectation(counts, found)
        with kernel_errors("expecting counts"):
            log_probs = self._native.expect(substates, weights, counts, threads=threads)
        return Expectation(counts, log_probs)

    def merge_gains(
        self, substates: IntArray, weights: FloatArray, shares: FloatArray, *, threads: int = 1
    ) -> FloatArray:
        """Return, at every even subcategory, the log likelihood gained by merging it.

        Args:
            substates: Subcategories of all symbols.
            weights: Weights of all rules.
            shares: Share of each subcategory in itself and its sibling together.
            threads: Number of threads.
        """
        with kernel_errors("comparing likelihoods of merges"):
            return self._native.merge_gains(substates, weights, shares, threads=threads)


def _node_rules(
    trees: BinaryTrees, rules: LatentRules, leaf_pairs: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Return the number of every node's rule."""
    symbol = trees.node_symbol.astype(np.int64)
    size = len(trees.symbols)
    found = np.zeros(len(symbol), dtype=np.uint32)
    inner = trees.node_word == NONE
    binary = inner & (trees.node_right != NONE)
    unary = inner & ~binary
    keys = symbol[binary] * size + symbol[trees.node_left[binary]]
    keys = keys * size + symbol[trees.node_right[binary]]
    known = rules.binary.astype(np.int64)
    found[binary] = np.searchsorted((known[:, 0] * size + known[:, 1]) * size + known[:, 2], keys)
    keys = symbol[unary] * size + symbol[trees.node_left[unary]]
    known = rules.unary.astype(np.int64)
    found[unary] = len(rules.binary) + np.searchsorted(known[:, 0] * size + known[:, 1], keys)
    found[trees.leaves] = len(rules.binary) + len(rules.unary) + leaf_pairs
    return found


def grammar_of(
    trees: BinaryTrees,
    rules: LatentRules,
    substates: IntArray,
    weights: FloatArray,
    split_tree: tuple[IntArray, ...],
) -> Grammar:
    """Return the grammar that the weights of binary and unary rules make."""
    binary, unary, _ = rules.split_weights(substates, weights)
    return Grammar(
        trees.symbols,
        trees.phrasal,
        substates,
        rules.unary,
        rules.binary,
        unary.copy(),
        binary.copy(),
        split_tree,
    )
