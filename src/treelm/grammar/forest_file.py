"""Parse files, read in order, by number, or by the words of a sentence."""

from __future__ import annotations

import contextlib
import os
import weakref
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.files import Source, input_error
from treelm.errors import EstimationError, UsageError
from treelm.grammar.forest_format import (
    FRAME_BYTES,
    FRAME_MAGIC,
    KEY_BYTES,
    MAX_HEADER_BYTES,
    ForestHeader,
    Frame,
    damaged,
    digest_after,
    key_of,
    read_frame,
    read_header,
    unpack_frame,
)
from treelm.grammar.k_best import KBest, packed_together, text_of
from treelm.grammar.k_best_arrays import Arrays, parted_k_best
from treelm.grammar.packed_forest import PackedForest, k_best_of_forests
from treelm.grammar.stored_forests import parted_forests
from treelm.trees.packed import PackedTrees

#: Number of unpacked batches that are kept.
_KEPT_BATCHES = 4
#: Bytes that are looked at together where there is no batch.
_SCAN_BYTES = 1 << 20


class Batch(NamedTuple):
    """Where a batch is in the file."""

    first_sentence: int
    place: int
    """Place of its keys, after its frame."""
    frame: Frame

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.place + self.frame.following


class ForestFile(Sequence[KBest | None]):
    """The trees of many sentences in a file, opened for reading by sentence.

    Items are lists of trees, the best first; None is a blank line of the text. For a forest
    file the lists are computed on demand, and are empty where there is no tree. A file that is
    still being written may be read: it then contains what was complete when it was opened.

    Args:
        path: The file.
        is_resumed: Whether what follows the last whole batch is ignored, whatever it is, as long as
            nothing whole follows it.

    Raises:
        InputFileError: if it cannot be read.
        CorpusFormatError: ``E_FOREST_FILE`` if it is not a parse file, or damaged.
    """

    def __init__(self, path: Source, *, is_resumed: bool = False) -> None:
        self.path = Path(path)
        self.name = visible(os.fspath(path))
        self._is_resumed = is_resumed
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise input_error(path, error) from error
        try:
            self._size = os.fstat(self._descriptor).st_size
            start = self._bytes(0, MAX_HEADER_BYTES + 64)
            self.header, self.start = read_header(start, self.name)
            self.batches, self.end, self.is_complete = self._scan(self.start)
        except BaseException:
            self.close()
            raise
        self._sentences = sum(batch.frame.sentences for batch in self.batches)
        # A strong reference to itself would keep the file open when nobody needs it any more.
        self._unpacked = lru_cache(_KEPT_BATCHES)(partial(ForestFile._unpack, weakref.proxy(self)))

    header: ForestHeader
    batches: list[Batch]
    start: int
    """Where the first batch begins."""
    end: int
    """Where the last complete batch ends."""
    has_damaged_end: bool
    """Whether something follows the last whole batch that no program was just writing."""
    is_complete: bool
    """Whether the whole text was parsed."""

    # -- opening ----------------------------------------------------------------------------

    def _bytes(self, place: int, size: int) -> bytes:
        pieces = []
        while size > 0:
            try:
                piece = os.pread(self._descriptor, min(size, 1 << 30), place)
            except OSError as error:
                raise input_error(self.path, error) from error
            if not piece:
                break
            pieces.append(piece)
            place, size = place + len(piece), size - len(piece)
        return b"".join(pieces)

    def _scan(self, place: int) -> tuple[list[Batch], int, bool]:
        """Return all batches, where the last ends, and whether the end is marked.

        What a killed program left half-written at the end is ignored, and so are the zeros with
        which a crash of the machine fills what was not yet on the disk.
        """
        batches: list[Batch] = []
        sentences = 0
        self.has_damaged_end = False
        while place < self._size:
            data = self._bytes(place, FRAME_BYTES)
            if len(data) < FRAME_BYTES:
                break
            frame = read_frame(data)
            behind = place + FRAME_BYTES
            if frame is None:
                if self._is_zero_from(place) or (
                    self._is_resumed and not self._has_frame_after(place)
                ):
                    self.has_damaged_end = True
                    break
                raise damaged(self.name, f"there is no batch at byte {place}")
            if frame.is_end:
                if frame.following or not self._is_zero_from(behind):
                    raise damaged(self.name, f"something follows the end at byte {place}")
                self.has_damaged_end = behind != self._size
                return batches, place, True
            if behind + frame.following > self._size:
                break
            batches.append(Batch(sentences, behind, frame))
            sentences += frame.sentences
            place = batches[-1].end
        return batches, place, False

    def _is_zero_from(self, place: int) -> bool:
        """Return whether there is nothing but zeros from here to the end."""
        while data := self._bytes(place, _SCAN_BYTES):
            if data.count(0) != len(data):
                return False
            place += len(data)
        return True

    def _has_frame_after(self, place: int) -> bool:
        """Return whether something further on can be a batch, or the mark of the end."""
        while data := self._bytes(place, _SCAN_BYTES + FRAME_BYTES):
            found = data.find(FRAME_MAGIC)
            while found >= 0:
                if read_frame(data[found : found + FRAME_BYTES]) is not None:
                    return True
                found = data.find(FRAME_MAGIC, found + 1)
            place += _SCAN_BYTES
        return False

    def is_whole(self, number: int) -> bool:
        """Return whether the bytes of a batch are those that were written."""
        batch = self.batches[number]
        crc = 0
        for place in range(batch.place, batch.end, _SCAN_BYTES):
            crc = zlib.crc32(self._bytes(place, min(_SCAN_BYTES, batch.end - place)), crc)
        return crc == batch.frame.crc

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self.close()

    # -- reading ----------------------------------------------------------------------------

    def _unpack(self, number: int, k: int | None = None) -> list[KBest | None]:
        packed = self.forests(number) if self.header.content == "forests" else None
        try:
            if packed is not None:
                return k_best_of_forests(packed, k or self.header.k)
            return parted_k_best(*self.arrays(number))
        except (ValueError, EstimationError, UsageError) as error:
            raise damaged(self.name, f"batch {number + 1}: {error}") from error

    def forests(self, number: int) -> list[PackedForest | None]:
        """Return the forests of a batch, None for blank lines.

        Raises:
            UsageError: if the file contains lists of trees.
        """
        if self.header.content != "forests":
            raise UsageError(f"{self.name}: the file contains lists of trees, not forests.")
        sentences, arrays = self.arrays(number)
        try:
            return parted_forests(sentences, arrays)
        except (ValueError, EstimationError) as error:
            raise damaged(self.name, f"batch {number + 1}: {error}") from error

    def arrays(self, number: int) -> tuple[list[tuple[str, ...]], Arrays]:
        """Return the sentences of a batch, and its arrays as they are stored."""
        batch = self.batches[number]
        following = self._bytes(batch.place, batch.frame.following)
        sentences, arrays = unpack_frame(batch.frame, following, self.name)
        return sentences, dict(arrays)

    def batch(self, number: int) -> list[KBest | None]:
        """Return the k-best lists of a batch; the last few are kept."""
        return self._unpacked(number)

    def __len__(self) -> int:
        return self._sentences

    @overload
    def __getitem__(self, index: int) -> KBest | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[KBest | None]: ...

    def __getitem__(self, index: int | slice) -> KBest | list[KBest | None] | None:
        if isinstance(index, slice):
            return [self._item(place) for place in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"there is no sentence {index} in a file of {len(self)}.")
        return self._item(place)

    def _item(self, place: int) -> KBest | None:
        number = int(np.searchsorted(self._first_sentences, place, side="right")) - 1
        return self._unpacked(number)[place - self.batches[number].first_sentence]

    @cached_property
    def _first_sentences(self) -> npt.NDArray[np.int64]:
        return np.array([batch.first_sentence for batch in self.batches], dtype=np.int64)

    def __iter__(self) -> Iterator[KBest | None]:
        for number in range(len(self.batches)):
            yield from self._unpack(number)

    def best_lists(self) -> Iterator[list[KBest | None]]:
        """Yield lists of the best tree alone, a batch of sentences at a time."""
        for number in range(len(self.batches)):
            yield [own and own.first(1) for own in self._unpack(number, k=1)]

    def best_trees(self) -> Iterator[PackedTrees]:
        """Yield the best tree of every sentence, a batch at a time, for kernels.

        Sentences without a tree are left out.
        """
        for batch in self.best_lists():
            found = [own for own in batch if own]
            if found:
                yield packed_together(found)

    def best_as_brackets(self) -> Iterator[bytes]:
        """Yield the best tree of every sentence as a line, a batch of sentences at a time.

        A sentence without a tree is a blank line.
        """
        for batch in self.best_lists():
            yield text_of(batch, scores=False)

    # -- by words ---------------------------------------------------------------------------

    @cached_property
    def _keys(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Keys of all sentences in ascending order, and the sentences."""
        pieces = [
            np.frombuffer(
                self._bytes(batch.place, KEY_BYTES * batch.frame.sentences), dtype="<u8"
            ).astype(np.uint64)
            for batch in self.batches
        ]
        keys = np.concatenate([np.zeros(0, dtype=np.uint64), *pieces])
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def find(self, words: Sequence[str]) -> int | None:
        """Return the number of the first sentence with these words, None if there is none."""
        keys, order = self._keys
        key = np.uint64(key_of(words))
        for place in order[np.searchsorted(keys, key) : np.searchsorted(keys, key, side="right")]:
            found = self[int(place)]
            if (() if found is None else found.words) == tuple(words):
                return int(place)
        return None

    # -- checking ---------------------------------------------------------------------------

    def verify(self) -> None:
        """Read everything.

        Raises:
            CorpusFormatError: ``E_FOREST_FILE`` for damage anywhere.
        """
        digest = b""
        for number, batch in enumerate(self.batches):
            k_best = self._unpack(number)
            digest = digest_after(
                digest, (() if found is None else found.words for found in k_best)
            )
            if digest != batch.frame.digest:
                raise damaged(self.name, f"batch {number + 1} does not continue the one before")
