"""Writing parse files, batch by batch, and resuming interrupted runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from treelm.characters import visible
from treelm.corpus.corpus import split_words
from treelm.corpus.files import Source
from treelm.errors import OutputFileError, UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import (
    Arrays,
    ForestHeader,
    digest_after,
    end_frame,
    pack_frame,
)
from treelm.grammar.k_best import KBest
from treelm.grammar.k_best_arrays import joined_k_best, k_best_of_trees
from treelm.grammar.packed_forest import PackedForest
from treelm.grammar.scored_tree import ScoredTree
from treelm.grammar.stored_forests import joined_forests


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
                    "another file to write, or --restart.",
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
        given = [
            None
            if not words
            else found
            if isinstance(found, KBest)
            else k_best_of_trees(words, found or ())
            for words, found in zip(sentences, k_best, strict=True)
        ]
        self.add_arrays(sentences, joined_k_best(given))

    def add_forests(
        self, sentences: Sequence[Sequence[str]], forests: Sequence[PackedForest | None]
    ) -> None:
        """Add the forests of some sentences."""
        self.add_arrays(sentences, joined_forests(forests))

    def add_arrays(self, sentences: Sequence[Sequence[str]], arrays: Arrays) -> None:
        """Add some sentences and their arrays."""
        for words in sentences:
            if split_words(" ".join(words)) != tuple(words):
                raise UsageError(f"{words!r}: a word is empty or contains white space.")
        self._write(pack_frame(sentences, arrays, self._digest))
        self._digest = digest_after(self._digest, sentences)
        self.sentences += len(sentences)

    def finish(self) -> None:
        """Mark the end of the file."""
        self._write(end_frame(self._digest))

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
                raise OutputFileError(
                    f"{self._name}: writing failed ({error.strerror}); the earlier batches are "
                    "complete, and the same command resumes from there."
                ) from error
            raise


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
        start = header.to_bytes()
        size = os.fstat(descriptor).st_size
        begun = os.pread(descriptor, len(start), 0)
        if restart or (size < len(start) and start.startswith(begun)):  # killed at the first write
            os.ftruncate(descriptor, 0)
            os.write(descriptor, start)
        else:
            with ForestFile(path) as file:
                _check_header(file.header, header, name)
                end = file.end
                batches = [(batch.frame.sentences, batch.frame.digest) for batch in file.batches]
                if file.batches:  # the last is the one that a crash of the machine may have damaged
                    file.arrays(len(file.batches) - 1)
            os.ftruncate(descriptor, end)
            os.lseek(descriptor, end, os.SEEK_SET)
        yield ForestWriter(descriptor, name, batches)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        ("k", "with a different -k"),
        ("parser", "by a different model"),
        ("options", "with different options"),
    ):
        if getattr(found, field) != getattr(wanted, field):
            raise UsageError(
                f"{name}: the file contains parses made {what} ({getattr(found, field)}, not "
                f"{getattr(wanted, field)}). Write to another file, or start over with --restart.",
                code="E_FOREST_OTHER",
            )
