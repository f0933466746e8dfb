"""Writing parse files, batch by batch, and resuming interrupted runs."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from treelm.characters import visible
from treelm.corpus.files import Source
from treelm.corpus.temporary import synchronize
from treelm.corpus.words import split_words
from treelm.errors import OutputFileError, TreelmWarning, UsageError, flag
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import (
    Arrays,
    ForestHeader,
    PackedBatch,
    digest_after,
    end_frame,
    pack_batch,
)
from treelm.grammar.k_best import KBest
from treelm.grammar.k_best_arrays import joined_k_best, k_best_of_trees
from treelm.grammar.packed_forest import PackedForest
from treelm.grammar.scored_tree import ScoredTree
from treelm.grammar.stored_forests import joined_forests

#: Seconds of work that a crash of the machine may undo.
_SECONDS_AT_RISK = 10.0
#: Bytes that are looked at together in a file that holds no batch.
_SCAN_BYTES = 1 << 20


def packed_k_best(
    sentences: Sequence[Sequence[str]],
    k_best: Sequence[KBest | None] | Sequence[Sequence[ScoredTree]],
) -> PackedBatch:
    """Return the trees of some sentences as they are stored.

    Raises:
        UsageError: for words with white space, and trees whose words differ from the sentence.
    """
    given = [
        None
        if not words
        else found
        if isinstance(found, KBest)
        else k_best_of_trees(words, found or ())
        for words, found in zip(sentences, k_best, strict=True)
    ]
    return _packed(sentences, joined_k_best(given))


def packed_forests(
    sentences: Sequence[Sequence[str]], forests: Sequence[PackedForest | None]
) -> PackedBatch:
    """Return the forests of some sentences as they are stored.

    Raises:
        UsageError: for words with white space.
    """
    return _packed(sentences, joined_forests(forests))


def _packed(sentences: Sequence[Sequence[str]], arrays: Arrays) -> PackedBatch:
    for words in sentences:
        if split_words(" ".join(words)) != tuple(words):
            raise UsageError(f"{words!r}: a word is empty or contains white space.")
    return pack_batch(sentences, arrays)


class ForestWriter:
    """A growing parse file; use `open_forest`.

    Args:
        descriptor: The file, opened for writing at its end.
        name: Its name, for messages.
        batches: Number of sentences and digest of every existing batch.
    """

    def __init__(self, descriptor: int, name: str, batches: Sequence[tuple[int, bytes]]) -> None:
        self._descriptor, self._name = descriptor, name
        self._before = list(batches)
        self._digest = batches[-1][1] if batches else b""
        self.sentences = sum(count for count, _ in batches)
        self._synchronized = time.monotonic()

    def skip(self, sentences: Iterator[Sequence[str]]) -> None:
        """Skip the sentences that the file already has, and check that they are the same.

        Raises:
            UsageError: ``E_FOREST_OTHER`` if they differ, or there are too few.
        """
        digest, done = b"", 0
        for count, expected in self._before:
            digest = digest_after(digest, islice(sentences, count))
            if digest != expected:
                raise UsageError(
                    f"{self._name}: the file contains parses of another text: sentences {done + 1} "
                    f"to {done + count} differ from those given now. Give the original text, "
                    f"another file to write, or {flag('restart')}.",
                    code="E_FOREST_OTHER",
                )
            done += count
        self._before = []

    def add(
        self,
        sentences: Sequence[Sequence[str]],
        k_best: Sequence[KBest | None] | Sequence[Sequence[ScoredTree]],
    ) -> None:
        """Add the trees of some sentences; what was added stays, whatever happens later.

        Raises:
            OutputFileError: if they cannot be written.
            UsageError: for words with white space, and trees whose words differ from the sentence.
        """
        self.add_batch(packed_k_best(sentences, k_best))

    def add_forests(
        self, sentences: Sequence[Sequence[str]], forests: Sequence[PackedForest | None]
    ) -> None:
        """Add the forests of some sentences."""
        self.add_batch(packed_forests(sentences, forests))

    def add_batch(self, batch: PackedBatch) -> None:
        """Add sentences that were packed somewhere else."""
        self._write(batch.to_bytes(self._digest))
        self._digest = batch.digest(self._digest)
        self.sentences += batch.sentences

    def begin(self, header: ForestHeader) -> None:
        """Write what a file begins with."""
        self._write(header.to_bytes())

    def finish(self) -> None:
        """Mark the end of the file, once everything before it is on the disk."""
        self.synchronize()
        self._write(end_frame(self._digest))

    def synchronize(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            OutputFileError: if it cannot be written there.
        """
        try:
            synchronize(self._descriptor)
        except OSError as error:
            raise self._failed(error) from error
        self._synchronized = time.monotonic()

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        place = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except BaseException as error:
            # Nothing half-written stays; if that fails too, the next run skips it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, place)
                os.lseek(self._descriptor, place, os.SEEK_SET)
            if isinstance(error, OSError):
                raise self._failed(error) from error
            raise
        if time.monotonic() - self._synchronized > _SECONDS_AT_RISK:
            self.synchronize()

    def _failed(self, error: OSError) -> OutputFileError:
        return OutputFileError(
            f"{self._name}: writing failed ({error.strerror}); the earlier batches are complete, "
            "and the same command resumes from there."
        )


@contextlib.contextmanager
def open_forest(
    path: Source, header: ForestHeader, *, restart: bool = False
) -> Iterator[ForestWriter]:
    """Open a parse file for appending; it is created if it does not exist.

    Call `ForestWriter.skip` with the text, `add` with new sentences, and `finish`.

    Args:
        path: The file.
        header: The header; that of an existing file must be equal.
        restart: Start over, whatever the file contains.

    Raises:
        UsageError: ``E_FOREST_OTHER`` if the file contains something else, or is being written.
        OutputFileError: if it cannot be written.
        CorpusFormatError: ``E_FOREST_FILE`` if it is not a parse file, or damaged.
    """
    name = visible(os.fspath(path))
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(Path(path), flags, 0o666)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OutputFileError(f"{name}: cannot be written ({reason}).") from error
    try:
        _lock(descriptor, name)
        batches: list[tuple[int, bytes]] = []
        if restart or _is_barely_begun(descriptor, header.to_bytes()):
            end = 0
        else:
            with ForestFile(path, is_resumed=True) as file:
                _check_header(file.header, header, name)
                batches, end = _whole_batches(file)
        try:
            os.ftruncate(descriptor, end)
            os.lseek(descriptor, end, os.SEEK_SET)
        except OSError as error:
            raise OutputFileError(f"{name}: cannot be written ({error.strerror}).") from error
        writer = ForestWriter(descriptor, name, batches)
        if not end:
            writer.begin(header)
        yield writer
        writer.synchronize()
    finally:
        os.close(descriptor)


def _is_barely_begun(descriptor: int, start: bytes) -> bool:
    """Return whether a file has nothing but the first bytes of a header, and perhaps zeros.

    That is what a program leaves that was killed at the first write, or a machine that crashed.
    """
    begun = os.pread(descriptor, len(start), 0)
    if begun == start:
        return False
    if not start.startswith(begun.rstrip(b"\0")):
        return False
    place = len(begun)
    while data := os.pread(descriptor, _SCAN_BYTES, place):
        if data.strip(b"\0"):
            return False
        place += len(data)
    return True


def _whole_batches(file: ForestFile) -> tuple[list[tuple[int, bytes]], int]:
    """Return the sentences and digests of the batches to resume after, and where the last ends.

    The last ones are those that a crash of the machine may have damaged; they are left out.
    """
    whole = len(file.batches)
    while whole and not file.is_whole(whole - 1):
        whole -= 1
    end = file.batches[whole - 1].end if whole else file.start
    if whole < len(file.batches) or file.has_damaged_end:
        warnings.warn(
            f"{file.name}: the end of the file is damaged, as after a crash of the machine. What "
            f"follows the first {whole} batches is left out and parsed again.",
            TreelmWarning,
            stacklevel=5,
        )
    batches = [(batch.frame.sentences, batch.frame.digest) for batch in file.batches[:whole]]
    return batches, end


def _lock(descriptor: int, name: str) -> None:
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(
            f"{name}: another program is writing this file. Wait for it, or write to another file.",
            code="E_FOREST_OTHER",
        ) from error
    except OSError:  # a file system without locks
        return


def _check_header(found: ForestHeader, wanted: ForestHeader, name: str) -> None:
    """Refuse to continue a file that was begun with other options."""
    if found == wanted:
        return
    for field, what in (
        ("content", "with different content"),
        ("k", "with a different k"),
        ("parser", "by a different model"),
        ("options", "with different options"),
    ):
        if getattr(found, field) != getattr(wanted, field):
            raise UsageError(
                f"{name}: the file contains parses made {what} ({getattr(found, field)}, not "
                f"{getattr(wanted, field)}). Write to another file, or start over with "
                f"{flag('restart')}.",
                code="E_FOREST_OTHER",
            )
