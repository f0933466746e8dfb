"""Models of trees that spell unknown words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.scores import Sample, SentenceScore
from treelm.models.interface.spelled import Spelled
from treelm.models.interface.tree_model import PARSED_AT_ONCE, TreeScorer
from treelm.trees.tree import Tree

Floats = npt.NDArray[np.float64]


class SpelledTrees(Spelled, TreeScorer):
    """A model of trees that spells the unknown words of their leaves."""

    _closed: TreeScorer

    def tree_log_probs(self, trees: Sequence[Tree], *, threads: int = 1) -> Floats:
        """Return the joint natural log probability of each tree and its words."""
        found = self._closed.tree_log_probs(trees, threads=threads)
        return found + self.spelling_sums([tree.words for tree in trees])

    def tree_log_probs_of_distinct(self, trees: Sequence[Tree], *, threads: int = 1) -> Floats:
        """Return `tree_log_probs` of the result of `distinct`."""
        found = self._closed.tree_log_probs_of_distinct(trees, threads=threads)
        return found + self.spelling_sums([tree.words for tree in trees])

    def _sample_log_prob(self, sample: Sample) -> float:
        """Return the log probability of a sampled tree as it is written."""
        if sample.tree is None:  # given up before it was complete
            return sample.log_prob
        own = self.samples_own_trees
        score = self.tree_log_probs_of_distinct if own else self.tree_log_probs
        return float(score([sample.tree])[0])

    def score_lists(
        self, lists: Iterable[Sequence[ScoredTree]], *, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the score of each sentence given trees of it: the sum over the distinct ones."""
        rest = iter(lists)
        while batch := list(islice(rest, PARSED_AT_ONCE)):
            words = [parses[0].tree.words if len(parses) else () for parses in batch]
            sums = self.spelling_sums(words).tolist()
            scores = self._closed.score_lists(batch, threads=threads)
            for score, extra in zip(scores, sums, strict=True):
                yield score._replace(log_prob=score.log_prob + extra)
