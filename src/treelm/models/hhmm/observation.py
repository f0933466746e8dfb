"""Words below tags: relative frequencies, and what unknown words may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.models.hhmm.rules import Floats, Ints

#: Longest ending that tells tags of unknown words, with ``bayes``.
LONGEST_SUFFIX = 4


@dataclass(frozen=True, eq=False)
class Observations:
    """P(word | tag) for every word of the vocabulary.

    Args:
        start: Where the tags of each word begin, and the total.
        tag: Symbols, ascending for each word.
        value: P(word | tag).
        unigram: Relative frequency of each word.
        tag_counts: How often each symbol was seen as a tag.
        end_share: Share of sentence ends among words and ends.
    """

    start: npt.NDArray[np.int64]
    tag: Ints
    value: Floats
    unigram: Floats
    tag_counts: Floats
    end_share: float

    def probabilities(self, words: npt.NDArray[Any], tags: npt.NDArray[Any]) -> Floats:
        """Return P(word | tag) of words and their tags, 0 for a word that a tag never emits."""
        symbols = len(self.tag_counts)
        word = np.repeat(np.arange(len(self.unigram)), np.diff(self.start))
        keys = word * symbols + self.tag
        wanted = words.astype(np.int64) * symbols + tags.astype(np.int64)
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[places] == wanted, self.value[places], 0.0)


def observe(
    tags: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
    *,
    symbols: int,
    phrasal: int,
    vocabulary_size: int,
    sentences: int,
    open_types: int,
) -> Observations:
    """Return the relative frequencies of words below their tags.

    A symbol of the vocabulary that was never seen, ``<unk>`` above all, gets one count, spread over
    the open tags in proportion to their number of word types. Open are tags with more than
    `open_types` of these; all tags if there are none.

    Args:
        tags: The tag of every word of the text.
        words: The id of every word of the text.
        symbols: How many symbols there are, the end of the sentence as the last.
        phrasal: How many of them are no tags.
        vocabulary_size: How many words there are.
        sentences: How many sentences the text has.
        open_types: See above.
    """
    keys, tokens = np.unique(words * symbols + tags, return_counts=True)
    word, tag, count = keys // symbols, keys % symbols, tokens.astype(np.float64)
    types = np.bincount(tag, minlength=symbols)
    seen = np.bincount(word, minlength=vocabulary_size) > 0
    missing = np.flatnonzero(~seen)
    if len(missing):
        opened = np.flatnonzero(types > open_types)
        if not len(opened):
            opened = np.flatnonzero(types[: symbols - 1] > 0)
            opened = opened[opened >= phrasal]
        share = types[opened] / types[opened].sum()
        word = np.concatenate([word, np.repeat(missing, len(opened))])
        tag = np.concatenate([tag, np.tile(opened, len(missing))])
        count = np.concatenate([count, np.tile(share, len(missing))])
        order = np.lexsort((tag, word))
        word, tag, count = word[order], tag[order], count[order]
    totals = np.bincount(tag, count, minlength=symbols)
    unigram = np.bincount(word, count, minlength=vocabulary_size)
    starts = np.searchsorted(word, np.arange(vocabulary_size + 1))
    return Observations(
        starts.astype(np.int64),
        tag.astype(np.int32),
        count / totals[tag],
        unigram / unigram.sum(),
        totals.astype(np.float64),
        sentences / (sentences + len(words)),
    )


@dataclass(frozen=True, eq=False)
class SuffixTags:
    """Tags of unknown words by their endings: P(tag | ending), the longest known ending counts.

    Args:
        endings: The endings, the empty one among them.
        start: Where the tags of each begin, and the total.
        tag: Symbols, ascending for each ending.
        value: P(tag | ending).
    """

    endings: tuple[str, ...]
    start: npt.NDArray[np.int64]
    tag: Ints
    value: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {each: i for i, each in enumerate(self.endings)})

    def tags(self, word: str) -> tuple[Ints, Floats]:
        """Return the tags of a word and their probabilities."""
        places: dict[str, int] = self._places  # type: ignore[attr-defined]
        for size in range(min(LONGEST_SUFFIX, len(word)), -1, -1):
            place = places.get(word[len(word) - size :])
            if place is not None:
                part = slice(int(self.start[place]), int(self.start[place + 1]))
                return self.tag[part], self.value[part]
        return self.tag[:0], self.value[:0]

    def emissions(self, word: str, tag_counts: Floats) -> tuple[npt.NDArray[np.uint32], Floats]:
        """Return the tags of an unknown word and P(word | tag).

        That is P(tag | word) P(word) / P(tag), the word being one of all in the text.
        """
        tags, shares = self.tags(word)
        values = np.minimum(shares / np.maximum(tag_counts[tags], 1.0), 1.0)
        return tags.astype(np.uint32), values


def learn_suffixes(words: Sequence[str], tags: npt.NDArray[np.int64]) -> SuffixTags:
    """Return the tags of endings, learned from rare words and their tags."""
    counts: dict[str, dict[int, int]] = {"": {}}
    for word, tag in zip(words, tags.tolist(), strict=True):
        for size in range(min(LONGEST_SUFFIX, len(word)) + 1):
            below = counts.setdefault(word[len(word) - size :], {})
            below[tag] = below.get(tag, 0) + 1
    endings = tuple(sorted(counts))
    rows = [sorted(counts[ending].items()) for ending in endings]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    tag = np.array([tag for row in rows for tag, _ in row], np.int32)
    value = np.array([n / sum(m for _, m in row) for row in rows for _, n in row])
    return SuffixTags(endings, starts, tag, value)
