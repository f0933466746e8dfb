"""Which sentences a corpus has, remembered in two bytes each: a Bloom filter of their hashes.

Sentences of fewer than `LEAST_WORDS` words are not kept, because they repeat naturally. Of more
than `MOST_SENTENCES` those with the smallest hashes are kept, so that the filter never takes more
than 2 MiB; the same are then looked at in any other text, so a share is a sample's. A sentence that
is not in the corpus is taken for one of it once in 2000 times. Nothing depends on the order of the
sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.files import can_be_read_twice, read_blocks

Hashes = npt.NDArray[np.uint64]

#: Shorter sentences are in every text.
LEAST_WORDS = 5
#: Of more sentences only a sample is kept.
MOST_SENTENCES = 1 << 20

_BITS_PER_SENTENCE = 16
_PROBES = 11
_HASH_BITS = 64
#: Hashes that are gathered before duplicates are removed.
_GATHERED = 1 << 18


def sentence_hashes(sentences: Iterable[Sequence[str]]) -> Hashes:
    """Return the hashes of those sentences that are long enough.

    Examples:
        >>> len(sentence_hashes([["Yes", "."], ["the", "old", "ferry", "left", "."]]))
        1
    """
    return line_hashes(" ".join(words) for words in sentences)


def line_hashes(lines: Iterable[str]) -> Hashes:
    """Return the hashes of lines that are long enough, as `sentence_hashes` gives them.

    Examples:
        >>> line = " the old  ferry left ."
        >>> line_hashes([line]) == sentence_hashes([line.split()])
        array([ True])
    """
    return _line_hashes("\n".join(lines).encode("utf-8", "surrogatepass"))


def _line_hashes(text: bytes) -> Hashes:
    return _native.line_hashes(text, least_words=LEAST_WORDS)


@dataclass(frozen=True, eq=False)
class SentenceFilter:
    """The sentences of a corpus; those of several filters together can be looked up, too.

    Args:
        bits: The filter, eight bits per byte.
        shift: Only hashes below 2^(64 - shift) are kept and looked up.
        sentences: Number of different sentences in it.
    """

    bits: npt.NDArray[np.uint8]
    shift: int
    sentences: int

    @classmethod
    def of(cls, pieces: Iterable[Hashes]) -> SentenceFilter:
        """Return the filter of hashes, which come in pieces."""
        kept, shift = np.zeros(0, np.uint64), 0
        gathered: list[Hashes] = []
        size = 0
        for piece in pieces:
            gathered.append(piece)
            size += len(piece)
            if size > _GATHERED:
                kept, shift = _smallest([kept, *gathered], shift)
                gathered, size = [], 0
        kept, shift = _smallest([kept, *gathered], shift)
        count = max(1, -(-len(kept) * _BITS_PER_SENTENCE // 8)) * 8
        flags = np.zeros(count, np.bool_)
        for places in _probes(kept, count):
            flags[places] = True
        return cls(np.packbits(flags, bitorder="little"), shift, len(kept))

    def looks_at(self, hashes: Hashes) -> Hashes:
        """Return the hashes that can be looked up."""
        return _below(hashes, self.shift)

    def contains(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return for each hash whether the corpus has such a sentence."""
        found = np.ones(len(hashes), np.bool_)
        for places in _probes(hashes, len(self.bits) * 8):
            found &= (self.bits[places >> 3] >> (places & 7)) & 1 == 1
        return found


def _smallest(pieces: Sequence[Hashes], shift: int) -> tuple[Hashes, int]:
    """Return the different hashes, of too many the smallest, and what tells these from others."""
    # Sorting is quicker than np.unique, which hashes hashes.
    kept = np.sort(_below(np.concatenate(pieces), shift))
    kept = kept[np.append(True, kept[1:] != kept[:-1])[: len(kept)]]
    while len(kept) > MOST_SENTENCES:
        shift += 1
        kept = _below(kept, shift)
    return kept, shift


def _below(hashes: Hashes, shift: int) -> Hashes:
    if not shift:
        return hashes
    return hashes[hashes < np.uint64(1 << (_HASH_BITS - shift))]


def _probes(hashes: Hashes, count: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the places of hashes in a filter of so many bits, one place of each at a time."""
    # 32 bits begin, 32 others step; the upper bits of a sample are zero, so they are mixed first.
    mixed = hashes * np.uint64(0x9E3779B97F4A7C15)
    place = hashes.astype(np.uint32)
    step = (mixed >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    for _ in range(_PROBES):
        yield (place.astype(np.uint64) * np.uint64(count) >> np.uint64(32)).astype(np.int64)
        place += step


def filter_of_corpora(corpora: Sequence[TextCorpus | TreeCorpus]) -> SentenceFilter | None:
    """Return which sentences corpora have; None if a file could be read only once."""
    paths = [path for corpus in corpora for path in corpus.paths]
    if not paths or not all(map(can_be_read_twice, paths)):
        return None
    return SentenceFilter.of(piece for corpus in corpora for piece in _pieces(corpus))


def _pieces(corpus: TextCorpus | TreeCorpus) -> Iterator[Hashes]:
    if isinstance(corpus, TreeCorpus):
        yield sentence_hashes(TreeSentences(corpus))
        return
    for path in corpus.paths:
        rest = b""
        for block in read_blocks(path):
            lines, _, rest = (rest + block).rpartition(b"\n")
            yield _line_hashes(lines)
        yield _line_hashes(rest)
