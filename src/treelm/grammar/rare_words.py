"""Rare words of a tag share one distribution over subcategories."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.lexicon import LongArray, TaggedWords, block_starts


class RareWords:
    """Words that are too rare to tell which subcategories of their tags they belong to.

    Args:
        tagged: The pairs of word and tag of trees.
        limit: Words at or below this count are rare.
    """

    def __init__(self, tagged: TaggedWords, limit: int) -> None:
        self.word_counts: LongArray = np.zeros(len(tagged.words), dtype=np.int64)
        np.add.at(self.word_counts, tagged.pairs[:, 0], tagged.tokens)
        self.is_rare: npt.NDArray[np.bool_] = self.word_counts <= limit
        #: The pairs of rare words.
        self.pairs: LongArray = np.flatnonzero(self.is_rare[tagged.pairs[:, 0]])
        self._tags = tagged.pairs[:, 1]
        self._substates: IntArray | None = None

    def _prepare(self, substates: IntArray) -> None:
        """Remember where the counts of rare pairs are; the same for all iterations of a phase."""
        if self._substates is not None and np.array_equal(self._substates, substates):
            return
        sizes = substates[self._tags].astype(np.int64)
        own = sizes[self.pairs]
        self._starts = block_starts(own)
        inner = np.arange(int(self._starts[-1])) - np.repeat(self._starts[:-1], own)
        self._sizes = own
        self._counts_at = np.repeat(block_starts(sizes)[self.pairs], own) + inner
        self._tag_starts = block_starts(substates)
        self._tag_at = np.repeat(self._tag_starts[self._tags[self.pairs]], own) + inner
        self._substates = substates.copy()

    def by_tag(self, counts: FloatArray, substates: IntArray) -> FloatArray:
        """Return the counts of rare words by subcategory, of all symbols: c(A_x|U).

        Args:
            counts: Expected count of every subcategory of every pair.
            substates: Subcategories of all symbols.
        """
        self._prepare(substates)
        size = int(self._tag_starts[-1])
        return np.bincount(self._tag_at, counts[self._counts_at], minlength=size).astype(np.float64)

    def tie(self, counts: FloatArray, substates: IntArray) -> None:
        """Distribute the counts of rare words as those of all rare words of the tag, in place."""
        if not len(self.pairs):
            return
        together = self.by_tag(counts, substates)
        totals = np.add.reduceat(together, self._tag_starts[:-1])
        shares = together / np.repeat(np.where(totals > 0, totals, 1), substates)
        pair_totals = np.add.reduceat(counts[self._counts_at], self._starts[:-1])
        counts[self._counts_at] = np.repeat(pair_totals, self._sizes) * shares[self._tag_at]
