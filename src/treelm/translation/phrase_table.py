"""Phrase tables: what is read of them, what is refused, and the form that is mapped.

A saved table is a file of tables (`treelm.store.tables`) that is used in place: opening it reads
the words, and translating reads the rows of the phrases that occur. Nothing in it is trusted; the
kernel checks each row before its first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.files import (
    Content,
    Source,
    encoding_error,
    read_ahead,
    read_blocks,
    source_name,
)
from treelm.errors import CorpusFormatError, ModelFileError, UsageError, flag, spelled
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress
from treelm.store.schema import ANY, Tensor, read_tensors
from treelm.store.tables import MAX_HEADER_BYTES, open_tables, write_tables
from treelm.store.untrusted import excerpt

#: How the name of a saved table ends.
SUFFIX = ".safetensors"
_FORMAT, _VERSION = "treelm phrase table", "1"
_SHAPE, _TARGET_COUNTS = "shape", "target_counts"
#: The tensors of a saved table; what is in them is checked by the kernel, when it is used.
_SCHEMA = (
    Tensor("words", np.uint8, (ANY,)),
    Tensor("word_starts", np.uint64, ("words+1",)),
    Tensor(_TARGET_COUNTS, np.uint64, ("words",)),
    Tensor("source_words", np.uint32, (ANY,)),
    Tensor("source_starts", np.uint64, ("sources+1",)),
    Tensor("target_words", np.uint32, (ANY,)),
    Tensor("target_starts", np.uint64, (ANY,)),
    Tensor("row_starts", np.uint32, ("sources+1",)),
    Tensor("targets", np.uint32, ("rows",)),
    Tensor("scores", np.float64, ("rows", ANY)),
    Tensor("point_starts", np.uint64, ("rows+1",)),
    Tensor("points", np.uint8, (ANY, 2)),
    Tensor("orientations", np.float64, (ANY, 6)),
    Tensor(_SHAPE, np.uint64, (2,)),
)


class PhraseTable:
    """Pairs of phrases with their scores, in memory or mapped; it cannot be changed.

    Args:
        native: The kernel's table.
        source: What the file is called.
        target_counts: How often each of its words occurs in target phrases, if that is known.
    """

    def __init__(
        self,
        native: _native.PhraseTable,
        source: str,
        target_counts: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        self.native = native
        self.source = source
        self._target_counts = target_counts

    @classmethod
    def read(
        cls,
        source: Source,
        *,
        reordering: Source | None = None,
        allow_deletion: bool = False,
        progress: Progress = SILENT,
    ) -> PhraseTable:
        """Return the table of a file in the format of Moses, perhaps compressed, or a saved one.

        Lines are ``source ||| target ||| scores ||| alignment ||| ...``; scores are probabilities,
        and what follows the alignment is not used. A last score of 2.718 in all lines, as in old
        tables, is the phrase penalty and not a score.

        Args:
            source: The file.
            reordering: Table of orientations, ``source ||| target ||| six probabilities``:
                monotone, swap and discontinuous, backward and then forward.
            allow_deletion: Whether target phrases may be empty.
            progress: Shows how far the reading is.

        Raises:
            CorpusFormatError: ``E_PHRASE_TABLE`` with the line for a malformed line, or for a pair
                that is there twice.
            ModelFileError: as `open`, for a saved table.
            UsageError: for a saved table with empty target phrases or orientations, if the former
                are not allowed, or there are others of the latter.
        """
        counts = None
        if is_saved(source):
            saved = cls.open(source)
            table, counts = saved.native, saved._target_counts
            if table.has_deletions and not allow_deletion:
                raise UsageError(
                    f"{source_name(source)}: this table has phrases that are translated by "
                    f"nothing; {flag('allow_deletion')} takes them."
                )
            if table.has_reordering and reordering is not None:
                left_out = spelled(command_line="--reordering-table", python="reordering")
                raise UsageError(
                    f"{source_name(source)}: this table has its orientations in it; leave out "
                    f"{left_out}."
                )
        else:
            table = _read(
                _native.PhraseTableReader(allow_deletion=allow_deletion), source, progress
            )
        if reordering is not None:
            table = _read(_native.ReorderingReader(table), reordering, progress)
        return cls(table, source_name(source), counts)

    @classmethod
    def open(cls, source: Source) -> PhraseTable:
        """Return a saved table, mapped: its rows are read when they are needed.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the file is no such table; a row that cannot be is
                found when it is used.
        """
        name = source_name(source)
        tables = open_tables(Path(os.path.realpath(source)))
        found = (tables.metadata.get("format"), tables.metadata.get("version"))
        if found != (_FORMAT, _VERSION):
            what = f"a table of version {excerpt(found[1])}" if found[0] == _FORMAT else "no table"
            raise ModelFileError(
                f"{name}: this is {what} that this treelm can translate with. Make it again from "
                "the phrase table of Moses, with `treelm convert`.",
                code="E_MODEL_TABLES",
            )
        try:
            arrays = read_tensors(tables, _SCHEMA, only=True)
            counts = arrays.pop(_TARGET_COUNTS)
            longest, has_deletions = arrays.pop(_SHAPE).tolist()
            with kernel_errors(f"opening {name}"):
                native = _native.PhraseTable(
                    **arrays, longest_source=longest, has_deletions=bool(has_deletions)
                )
        except ModelFileError as error:
            raise ModelFileError(
                f"{name}: {str(error).rstrip('.')}. The file is damaged; make it again with "
                "`treelm convert`.",
                code="E_MODEL_TABLES",
            ) from error
        return cls(native, name, counts)

    def save(self, path: Source) -> None:
        """Write a file that `read` maps; it appears under its name only when it is complete.

        Raises:
            OutputFileError: if it cannot be written; what stood there is unchanged.
            UsageError: if the name does not end in ``.safetensors``.
        """
        if Path(path).suffix != SUFFIX:
            raise UsageError(
                f"{source_name(path)}: the name of a saved phrase table must end in {SUFFIX}."
            )
        arrays = self.native.arrays()
        shape = [self.native.longest_source, self.native.has_deletions]
        arrays |= {_SHAPE: np.array(shape, np.uint64), _TARGET_COUNTS: self._counts(arrays)}
        write_tables(Path(path), arrays, {"format": _FORMAT, "version": _VERSION})

    def __len__(self) -> int:
        return len(self.native)

    def __repr__(self) -> str:
        return f"PhraseTable({self.source!r}, rows={len(self)})"

    @property
    def score_count(self) -> int:
        """Scores of a pair of phrases."""
        return self.native.score_count

    def _counts(self, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
        if self._target_counts is not None:
            return self._target_counts
        words = len(arrays["word_starts"]) - 1
        return np.bincount(arrays["target_words"], minlength=words).astype(np.uint64)

    def target_words(self) -> dict[str, int]:
        """Return the words of target phrases, and how often each of them occurs in these.

        A phrase that translates several source phrases counts once.
        """
        arrays = self.native.arrays()
        starts, text = arrays["word_starts"].tolist(), arrays["words"].tobytes()
        return {
            text[first:last].decode(): count
            for (first, last), count in zip(
                pairwise(starts), self._counts(arrays).tolist(), strict=True
            )
            if count
        }

    @property
    def has_reordering(self) -> bool:
        """Whether it has probabilities of orientations."""
        return self.native.has_reordering


def is_saved(source: Source) -> bool:
    """Return whether a file is one of tables, and so no text; pipes are not looked at."""
    try:
        path = Path(source)
        if isinstance(source, Content) or not path.is_file():
            return False
        with path.open("rb") as file:
            length, brace = file.read(8), file.read(1)
    except (OSError, ValueError):  # opening it as text says it better
        return False
    return brace == b"{" and int.from_bytes(length, "little") <= MAX_HEADER_BYTES


def _read(
    reader: _native.PhraseTableReader | _native.ReorderingReader, source: Source, progress: Progress
) -> _native.PhraseTable:
    """Return what a reader makes of a file."""
    with (
        progress.step(f"reading {source_name(source)}", unit="B") as step,
        _table_errors(source),
    ):
        for block in read_ahead(read_blocks(source)):
            reader.feed(block)
            step.advance(len(block))
        return reader.finish()


@contextmanager
def _table_errors(source: Source) -> Iterator[None]:
    name = source_name(source)
    try:
        yield
    except _native.KernelError as error:
        code, message, line, column = error.args
        if code == "E_ENCODING":
            raise encoding_error(source, int(line), int(column)) from error
        if code != "E_PHRASE_TABLE":
            with kernel_errors(f"reading {name}"):
                raise
        place = f"{name}:{line}" if line else name
        raise CorpusFormatError(
            f"{place}: {message}. Lines look like: das Haus ||| the house ||| 0.4 0.3 0.5 0.2",
            code=code,
            path=name,
            line=int(line) or None,
        ) from error
