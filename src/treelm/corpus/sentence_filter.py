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
from treelm.corpus.files import (
    Content,
    HeardFile,
    NamedFile,
    Source,
    can_be_read_twice,
    read_blocks,
)

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
        gathered = _GatheredHashes()
        for piece in pieces:
            gathered.add(piece)
        return gathered.filter()

    def looks_at(self, hashes: Hashes) -> Hashes:
        """Return the hashes that can be looked up."""
        return _below(hashes, self.shift)

    def contains(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return for each hash whether the corpus has such a sentence."""
        found = np.ones(len(hashes), np.bool_)
        for places in _probes(hashes, len(self.bits) * 8):
            found &= (self.bits[places >> 3] >> (places & 7)) & 1 == 1
        return found


class _GatheredHashes:
    """Hashes of sentences on their way to a filter: duplicates and what is too much are removed."""

    def __init__(self) -> None:
        self._kept = np.zeros(0, np.uint64)
        self._shift = 0
        self._new: list[Hashes] = []
        self._new_size = 0

    def add(self, hashes: Hashes) -> None:
        """Add the hashes of some more sentences."""
        self._new.append(hashes)
        self._new_size += len(hashes)
        if self._new_size > _GATHERED:
            self._settle()

    def add_all(self, other: _GatheredHashes) -> None:
        """Add what was gathered elsewhere."""
        # What the other left out is left out here too, or the sample would not be one.
        self._shift = max(self._shift, other._shift)
        for hashes in (other._kept, *other._new):
            self.add(hashes)

    def filter(self) -> SentenceFilter:
        """Return the filter of all that was added."""
        self._settle()
        count = max(1, -(-len(self._kept) * _BITS_PER_SENTENCE // 8)) * 8
        flags = np.zeros(count, np.bool_)
        for places in _probes(self._kept, count):
            flags[places] = True
        return SentenceFilter(np.packbits(flags, bitorder="little"), self._shift, len(self._kept))

    def _settle(self) -> None:
        """Keep the different hashes, of too many the smallest, and what tells these from others."""
        kept = _different(_below(np.concatenate([self._kept, *self._new]), self._shift))
        while len(kept) > MOST_SENTENCES:
            self._shift += 1
            kept = _below(kept, self._shift)
        self._kept, self._new, self._new_size = kept, [], 0


def _different(hashes: Hashes) -> Hashes:
    """Return each hash once, in order; `numpy.unique` may take twenty times as long for this."""
    hashes.sort()
    is_first = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=is_first[1:])
    return hashes[is_first]


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
    """Return which sentences corpora have; None if a file could be read only once.

    Of a text that is `overheard`, what was read through by others is not read again.
    """
    gathered = _GatheredHashes()
    for corpus in corpora:
        if not _gather(corpus, gathered):
            return None
    return gathered.filter() if any(corpus.paths for corpus in corpora) else None


def overheard(corpus: TextCorpus) -> TextCorpus:
    """Return a text whose sentences are hashed while it is read, for `filter_of_corpora`."""
    return TextCorpus(
        path if isinstance(path, Content | NamedFile) else _OverheardText(path)
        for path in corpus.paths
    )


def _gather(corpus: TextCorpus | TreeCorpus, gathered: _GatheredHashes) -> bool:
    """Add the sentences of a corpus and return True, or False if they cannot be read any more."""
    if isinstance(corpus, TreeCorpus):
        if not all(map(can_be_read_twice, corpus.paths)):
            return False
        gathered.add(sentence_hashes(TreeSentences(corpus)))
        return True
    for path in corpus.paths:
        text = path if isinstance(path, _OverheardText) else _OverheardText(path)
        heard = text.gathered()
        if heard is None:
            return False
        gathered.add_all(heard)
    return True


class _OverheardText(HeardFile):
    """A text file whose sentences are hashed in the first reading that comes to its end."""

    def __init__(self, path: Source) -> None:
        super().__init__(path)
        self._heard: _GatheredHashes | None = None

    def listen(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        if self._heard is not None:
            yield from blocks
            return
        heard = _GatheredHashes()  # in this reading: there may be others at the same time
        rest = b""
        for block in blocks:
            lines, _, rest = (rest + block).rpartition(b"\n")
            heard.add(_line_hashes(lines))
            yield block
        heard.add(_line_hashes(rest))
        self._heard = heard

    def gathered(self) -> _GatheredHashes | None:
        """Return the hashes; if nobody has read the file, it is read, or None if it is gone."""
        if self._heard is None and can_be_read_twice(self.path):
            for _ in self.listen(read_blocks(self.path)):
                pass
        return self._heard
