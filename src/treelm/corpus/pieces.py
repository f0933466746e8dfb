"""Pieces of text files that workers read themselves, wherever they are.

Only places are sent to workers: bytes of a file on a file system that all machines share. What must
be unpacked is sent, or unpacked into a file first.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from treelm.corpus.corpus import hashed_blocks
from treelm.corpus.encoder import TextPiece
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Content, Source, open_input, size_if_known, source_name
from treelm.corpus.remote_files import is_url
from treelm.errors import CorpusFormatError, EngineError, InputFileError

#: Bytes that a worker gets at a time, at most: some hundred megabytes of its memory.
PIECE_BYTES = 32 << 20
#: And at least, of files that are not large enough to keep many workers busy otherwise. Words are
#: counted so quickly that small pieces of a text take longer to merge.
LEAST_TREE_BYTES = 4 << 20
LEAST_TEXT_BYTES = 24 << 20
#: Pieces of files that are neither small nor large.
PIECES = 64
#: The longest tree that is read; what is longer was never closed.
_LONGEST_TREE = 32 << 20


class FileRange(NamedTuple):
    """Some lines of a plain file."""

    source: Source
    """The file, as messages name it."""
    path: str
    lines_before: int
    first: int
    """Bytes of the file before them."""
    size: int
    checksum: int

    def read(self) -> TextPiece:
        """Return the lines.

        Raises:
            EngineError: if the file is not to be seen from here.
            InputFileError: ``E_TEXT_CHANGED`` if something else is in it by now.
        """
        try:
            with open_input(self.path) as file:
                file.seek(self.first)
                data = file.read(self.size)
        except (OSError, InputFileError) as error:
            raise EngineError(
                f"{source_name(self.source)}: a worker cannot read it "
                f"({getattr(error, 'strerror', None) or error}). Workers read the text themselves, "
                "so it must be on a file system that all machines share."
            ) from error
        if zlib.crc32(data) != self.checksum:
            raise changed_text(source_name(self.source))
        return TextPiece(self.source, self.lines_before, data)


Piece = TextPiece | FileRange

#: Cuts a file into pieces of about so many bytes, and hashes it on the way.
Cut = Callable[[Iterable[Source], int, "hashlib._Hash | None"], Iterator[TextPiece]]


def read_piece(piece: Piece) -> TextPiece:
    """Return the lines of a piece."""
    return piece.read() if isinstance(piece, FileRange) else piece


def pieces_in_place(
    paths: Iterable[Source],
    cut: Cut,
    size: int,
    digest: hashlib._Hash | None,
    folder: Path | None = None,
) -> Iterator[Piece]:
    """Yield files in pieces, of plain files only where they stand.

    Args:
        paths: The files.
        cut: Cuts them.
        size: Bytes of a piece.
        digest: Hashes what is read.
        folder: Where pieces of all other files are written to; None to yield these as they are.
    """
    written = 0
    for path in paths:
        is_plain = not isinstance(path, Content) and size_if_known(path) is not None
        first = 0
        for piece in cut([path], size, digest):
            length, checksum = len(piece.data), zlib.crc32(piece.data)
            if is_plain:
                place = _absolute(path)
                yield FileRange(path, place, piece.lines_before, first, length, checksum)
            elif folder is not None:
                written += 1
                file = folder / f"{written}.piece"
                file.write_bytes(piece.data)
                yield FileRange(path, str(file), piece.lines_before, 0, length, checksum)
            else:
                yield piece
            first += length


def _absolute(path: Source) -> str:
    if isinstance(path, str) and is_url(path):
        return path
    return str(Path(path).absolute())


def tree_pieces(
    paths: Iterable[Source], size: int, digest: hashlib._Hash | None = None
) -> Iterator[TextPiece]:
    """Yield files of trees in pieces, cut at ends of lines that are ends of trees.

    Brackets are counted and nothing else is looked at, so whoever reads a piece must look for what
    is wrong: a file with malformed trees may be cut anywhere.

    Args:
        paths: The files.
        size: Bytes of a piece.
        digest: Hashes what is read, as fingerprints of trees do.

    Raises:
        CorpusFormatError: for brackets that do not match.
        InputFileError: for a file that cannot be read.
    """
    for path in paths:
        lines, rest = 0, b""
        for block in hashed_blocks(path, digest, Wanted.TREES):
            rest += block
            start = 0
            while len(rest) - start >= size:
                end = _end_of_tree(rest, start, size)
                if not end:
                    break
                yield TextPiece(path, lines, rest[start:end])
                lines += rest.count(b"\n", start, end)
                start = end
            rest = rest[start:]
            if len(rest) > size + _LONGEST_TREE:
                raise _unbalanced(path)
        if rest:
            yield TextPiece(path, lines, rest)


def _end_of_tree(text: bytes, start: int, size: int) -> int:
    """Return the first end of a line at least so far away with all brackets closed, or 0."""
    end = text.find(b"\n", start + size - 1) + 1
    depth = text.count(b"(", start, end) - text.count(b")", start, end)
    while end and depth > 0:
        last, end = end, text.find(b"\n", end) + 1
        depth += text.count(b"(", last, end) - text.count(b")", last, end)
    return end if depth == 0 else 0


def _unbalanced(path: Source) -> CorpusFormatError:
    name = source_name(path)
    return CorpusFormatError(f"{name}: brackets do not match.", code="E_UNBALANCED", path=name)


def piece_size(known: int | None, least: int) -> int:
    """Return how many bytes a worker gets at a time.

    Args:
        known: Bytes of all files, if that is known.
        least: The least that is worth while.
    """
    all_bytes = PIECES * PIECE_BYTES if known is None else known
    return min(max(all_bytes // PIECES, least), PIECE_BYTES)


def bytes_if_known(paths: Iterable[Source]) -> int | None:
    """Return the bytes of files, where they can be known."""
    sizes = [size_if_known(path) for path in paths]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def changed_text(name: str) -> InputFileError:
    """Return the error for a text that is not what it was at the first reading."""
    return InputFileError(
        f"{name}: the text changed while it was being counted. Count it again once it is complete.",
        code="E_TEXT_CHANGED",
    )
