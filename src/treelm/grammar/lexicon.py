"""Lexicons: how well every tag, and every subcategory of a tag, explains a word.

Every id of the vocabulary - a word, the signature of unknown words, ``<unk>`` - has scores of its
own for the tags it was seen with. For all other tags it has one number, its openness: their scores
are the openness times `Lexicon.open_scores`. Both lexicons here have this form, which
keeps a table of all words and all subcategories out of memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, ModelFileError
from treelm.grammar.binary_trees import BinaryTrees
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.store.schema import non_negative

LongArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TiedEntries:
    """Entries that say nothing about subcategories: multiples of the open scores of their tags.

    Args:
        marks: Which entries of a lexicon they are.
        factors: What the open scores of each are multiplied by.
    """

    marks: npt.NDArray[np.bool_]
    factors: FloatArray


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Scores ``e(A_x -> w)`` of words.

    Args:
        vocabulary: Words, signatures and ``<unk>``; its ids are those of the tables.
        phrasal: The first symbol that is a tag.
        substates: Subcategories of all symbols, as in the grammar.
        entry_starts: Where the entries of every id begin, and their number at the end.
        entry_symbols: Tag of every entry, ascending within an id.
        entry_scores: Scores of the entries' subcategories, one block after the other.
        openness: Per id, the factor of `open_scores` for tags without an entry.
        open_scores: Per subcategory of all tags, one after the other; zero for a closed class.
        normalized: Whether the scores of a subcategory sum to one over the vocabulary.
        codes: The tables of codes that the scores of entries were decoded from, if they were.
        tied: The entries that are multiples of `open_scores` and stored as such, if any are.

    Raises:
        ModelFileError: ``E_LEXICON`` if the arrays do not fit together.
    """

    vocabulary: Vocabulary
    phrasal: int
    substates: IntArray
    entry_starts: LongArray
    entry_symbols: IntArray
    entry_scores: FloatArray
    openness: FloatArray
    open_scores: FloatArray
    normalized: bool = False
    codes: Mapping[str, npt.NDArray[Any]] | None = None
    tied: TiedEntries | None = None

    def __post_init__(self) -> None:
        starts, symbols = self.entry_starts, self.entry_symbols
        ids, tags = len(self.vocabulary), int(self.substates[self.phrasal :].sum())
        if starts.dtype != np.int64 or starts.shape != (ids + 1,) or symbols.ndim != 1:
            raise _wrong("it does not have one list of entries for each word")
        if starts[0] != 0 or starts[-1] != len(symbols) or (np.diff(starts) < 0).any():
            raise _wrong("the lists of entries do not follow each other")
        if symbols.dtype != np.int32 or (
            len(symbols) and (symbols.min() < self.phrasal or symbols.max() >= len(self.substates))
        ):
            raise _wrong("an entry names something that is not a tag")
        if self.tied is not None and self.tied.marks.shape != symbols.shape:
            raise _wrong("it does not say of each entry whether it is tied")
        firsts = np.zeros(len(symbols) + 1, dtype=np.bool_)
        firsts[starts] = True
        if not (firsts[1:-1] | (np.diff(symbols) > 0)).all():
            raise _wrong("the tags of a word are not in ascending order, or one occurs twice")
        sizes = {
            "entry_scores": int(self.score_starts[-1]),
            "openness": ids,
            "open_scores": tags,
        }
        for name, size in sizes.items():
            array = getattr(self, name)
            if array.dtype != np.float64 or array.shape != (size,):
                raise _wrong(f'"{name}" has {array.size} numbers, and should have {size}')
            problem = non_negative(array)
            if problem is not None:
                raise _wrong(f'"{name}" {problem}')

    @cached_property
    def score_starts(self) -> LongArray:
        """Where the scores of every entry begin, and their number at the end."""
        return block_starts(self.substates[self.entry_symbols])

    @cached_property
    def tag_starts(self) -> LongArray:
        """Where the subcategories of every tag begin in `open_scores`, and their number."""
        return block_starts(self.substates[self.phrasal :])

    def scores(self, word_id: int) -> list[tuple[int, FloatArray]]:
        """Return the tags of a word of the vocabulary, each with the scores of its subcategories.

        Args:
            word_id: An id; ``vocabulary.encode`` gives those of a sentence.
        """
        known = range(int(self.entry_starts[word_id]), int(self.entry_starts[word_id + 1]))
        own = {
            int(self.entry_symbols[entry]): self.entry_scores[
                self.score_starts[entry] : self.score_starts[entry + 1]
            ]
            for entry in known
        }
        found = []
        for tag, (first, last) in enumerate(
            zip(self.tag_starts[:-1].tolist(), self.tag_starts[1:].tolist(), strict=True)
        ):
            symbol = self.phrasal + tag
            values = own.get(symbol)
            if values is None:
                values = self.openness[word_id] * self.open_scores[first:last]
            if values.any():
                found.append((symbol, values))
        return found

    def check_normalized(self, tolerance: float = 1e-6) -> None:
        """Refuse a lexicon that claims to be normalized but is not.

        Raises:
            EstimationError: ``E_NOT_NORMALIZED``.
        """
        if not self.normalized:
            return
        sums = self.openness.sum() * self.open_scores
        owner = np.repeat(np.arange(len(self.vocabulary)), np.diff(self.entry_starts))
        sizes = np.diff(self.score_starts)
        place = np.repeat(
            self.tag_starts[self.entry_symbols - self.phrasal] - self.score_starts[:-1], sizes
        ) + np.arange(len(self.entry_scores))
        extra = self.entry_scores - np.repeat(self.openness[owner], sizes) * self.open_scores[place]
        np.add.at(sums, place, extra)
        if len(sums) and not np.abs(sums - 1.0).max() <= tolerance:
            worst = int(np.abs(sums - 1.0).argmax())
            raise EstimationError(
                f"the words of tag subcategory {worst} sum to {sums[worst]:.9g}, not to 1.",
                code="E_NOT_NORMALIZED",
            )


@dataclass(frozen=True, eq=False)
class TaggedWords:
    """The distinct pairs of word and tag in trees, and how often each occurs.

    Args:
        words: The words.
        pairs: Rows (word, tag), ascending.
        tokens: How often each pair occurs.
        first_tokens: How often each occurs at the beginning of a sentence.
        leaf_pairs: The pair of every leaf of the trees, in the order of the text.
    """

    words: tuple[str, ...]
    pairs: IntArray
    tokens: LongArray
    first_tokens: LongArray
    leaf_pairs: LongArray

    @classmethod
    def of(
        cls,
        trees: BinaryTrees,
        *,
        words: tuple[str, ...] | None = None,
        leaf_words: npt.NDArray[np.uint32] | None = None,
    ) -> TaggedWords:
        """Return the pairs of word and tag of trees.

        Args:
            trees: The trees.
            words: Words to use instead of those of the trees, such as a vocabulary's.
            leaf_words: With `words`, the word of every leaf in the order of the text.
        """
        size = len(trees.symbols)
        leaves = trees.leaves
        if words is None or leaf_words is None:
            words, leaf_words = trees.words, trees.node_word[leaves]
        keys = leaf_words.astype(np.int64) * size + trees.node_symbol[leaves]
        found, leaf_pairs, tokens = np.unique(keys, return_inverse=True, return_counts=True)
        firsts = leaf_pairs[trees.leaf_starts[:-1]]
        return cls(
            words,
            np.stack([found // size, found % size], axis=1).astype(np.int32),
            tokens,
            np.bincount(firsts, minlength=len(found)),
            leaf_pairs,
        )

    def starts(self, substates: IntArray) -> LongArray:
        """Return where the subcategories of every pair begin, and their number at the end."""
        return block_starts(substates[self.pairs[:, 1]])

    def check_counts(self, counts: FloatArray, substates: IntArray) -> None:
        """Refuse expected counts that do not fit the pairs.

        Raises:
            EstimationError: ``E_EXPECTED_COUNTS``.
        """
        if counts.shape != (int(self.starts(substates)[-1]),):
            raise EstimationError(
                "there must be one expected count for each subcategory of each tagged word.",
                code="E_EXPECTED_COUNTS",
            )
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            at = int(np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)))[0])
            pair = int(np.searchsorted(self.starts(substates), at, side="right")) - 1
            raise EstimationError(
                f'the expected count of "{self.words[self.pairs[pair, 0]]}" under a tag is '
                f"{counts[at]}. A tree with a probability of zero may be the cause.",
                code="E_EXPECTED_COUNTS",
            )


def block_starts(sizes: npt.NDArray[np.signedinteger[Any]]) -> LongArray:
    """Return where blocks of these sizes begin, and the number of all at the end."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def smooth_subcategories(
    scores: FloatArray, starts: LongArray, alpha: float, *, others: bool = False
) -> FloatArray:
    """Return scores moved towards the mean of their block by `alpha`.

    Args:
        scores: The scores.
        starts: Where blocks begin, and their end.
        alpha: How far to move.
        others: Move towards the mean of the other scores of a block; a lone score is unchanged.
    """
    if not len(scores) or not alpha:
        return scores
    sizes = np.diff(starts)
    sums = np.add.reduceat(scores, starts[:-1])
    if not others:
        mean_moved: FloatArray = (1 - alpha) * scores + alpha * np.repeat(sums / sizes, sizes)
        return mean_moved
    share = np.repeat(alpha / np.maximum(sizes - 1, 1), sizes)
    moved = (1 - alpha - share) * scores + share * np.repeat(sums, sizes)
    return np.where(np.repeat(sizes > 1, sizes), moved, scores)


def _wrong(what: str) -> ModelFileError:
    return ModelFileError(f"this is not a lexicon: {what}.", code="E_LEXICON")
