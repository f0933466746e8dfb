"""Trees of sentences and how good each is, as a ranker learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.grammar.grammar import FloatArray
from treelm.grammar.k_best import KBest, is_fallback, packed_together
from treelm.grammar.k_best_arrays import k_best_of_trees
from treelm.grammar.scored_tree import ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.trees.counted_brackets import bracket_counts, bracket_spans, ignored_positions
from treelm.trees.profile import Profile
from treelm.trees.tree import Tree

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

#: Lists whose features are found at once.
_AT_ONCE = 64
#: F1 of trees that differ by less are the same.
_SAME = 1e-9


class _Waiting(NamedTuple):
    """A list whose features are still to be found."""

    trees: KBest
    guessed: Numbers
    matched: Numbers
    gold: int

    @property
    def f1(self) -> FloatArray:
        return 2 * self.matched / np.maximum(self.guessed + self.gold, 1)


class RankedLists:
    """Lists of trees with what tells the trees of each apart.

    Args:
        profile: Says what heads are, and which constituents count.
        threads: Kernel threads; results do not depend on it.
    """

    def __init__(self, profile: Profile, threads: int = 1) -> None:
        self._profile, self._threads = profile, threads
        self._kernel = _native.RankingLists()
        self._waiting: list[_Waiting] = []
        self._starts = [0]
        self._counts: list[Numbers] = []  # constituents of each tree, and those that are right
        self._gold = 0

    def __len__(self) -> int:
        return len(self._starts) - 1

    def add(self, gold: Tree, found: Sequence[ScoredTree]) -> None:
        """Add the trees of a sentence; left out if none is better than another."""
        if len(found) < 2 or is_fallback(found):
            return
        trees = found if isinstance(found, KBest) else k_best_of_trees(gold.words, found)
        guessed, matched = bracket_counts(gold, trees.packed, self._profile)
        ignored = ignored_positions(gold, self._profile)
        total = bracket_spans(gold, ignored, self._profile).total()
        waiting = _Waiting(trees, guessed, matched, total)
        if np.ptp(waiting.f1) < _SAME or not np.isfinite(trees.scores).all():
            return
        self._waiting.append(waiting)
        self._starts.append(self._starts[-1] + len(trees))
        self._counts.append(np.stack([guessed, matched]))
        self._gold += total
        if len(self._waiting) == _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        sizes = [len(each.trees) for each in self._waiting]
        best = [each.f1 >= each.f1.max() - _SAME for each in self._waiting]
        with kernel_errors("ranking trees"):
            self._kernel.add(
                packed_together([each.trees for each in self._waiting]).native,
                self._profile.native,
                starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64),
                scores=np.concatenate([each.trees.scores for each in self._waiting]),
                best=np.concatenate(best).astype(np.uint8),
                threads=self._threads,
            )
        self._waiting = []

    def frequent(self, least: int) -> Hashes:
        """Return the features that tell trees apart in at least so many lists."""
        self._flush()
        return self._kernel.frequent(least)

    def keep(self, features: Hashes) -> None:
        """Drop all other features; weights are then given in the order of these."""
        self._flush()
        with kernel_errors("ranking trees"):
            self._kernel.keep(features)

    def loss(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log likelihood of the best trees, and its gradient."""
        with kernel_errors("ranking trees"):
            return self._kernel.loss(weights, threads=self._threads)

    def fit(self, weights: FloatArray, regularization: float, iterations: int) -> FloatArray:
        """Return the weights with the least loss and squared norm, found from others."""
        with kernel_errors("ranking trees"):
            return self._kernel.fit(
                weights,
                regularization=regularization,
                iterations=iterations,
                threads=self._threads,
            )

    def f1(self, weights: FloatArray | None = None) -> float:
        """Return the labelled F1 of the trees that weights choose; without any, of the first."""
        if not len(self):
            return 0.0
        first = np.array(self._starts[:-1])
        chosen = first if weights is None else first + self._kernel.choose(weights)
        guessed, matched = np.concatenate(self._counts, axis=1)[:, chosen].sum(axis=1).tolist()
        return float(2 * matched / (guessed + self._gold))
