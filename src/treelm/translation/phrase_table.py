"""Phrase tables: what is read of them, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treelm import _native
from treelm.corpus.files import Source, encoding_error, read_ahead, read_blocks, source_name
from treelm.errors import CorpusFormatError
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress


class PhraseTable:
    """Pairs of phrases with their scores, in memory; it cannot be changed.

    Args:
        native: The kernel's table.
        source: What the file is called.
    """

    def __init__(self, native: _native.PhraseTable, source: str) -> None:
        self.native = native
        self.source = source

    @classmethod
    def read(
        cls,
        source: Source,
        *,
        reordering: Source | None = None,
        allow_deletion: bool = False,
        progress: Progress = SILENT,
    ) -> PhraseTable:
        """Return the table of a file in the format of Moses, perhaps compressed.

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
        """
        reader = _native.PhraseTableReader(allow_deletion=allow_deletion)
        table = _read(reader, source, progress)
        if reordering is not None:
            table = _read(_native.ReorderingReader(table), reordering, progress)
        return cls(table, source_name(source))

    def __len__(self) -> int:
        return len(self.native)

    def __repr__(self) -> str:
        return f"PhraseTable({self.source!r}, rows={len(self)})"

    @property
    def score_count(self) -> int:
        """Scores of a pair of phrases."""
        return self.native.score_count

    @property
    def has_reordering(self) -> bool:
        """Whether it has probabilities of orientations."""
        return self.native.has_reordering


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
