"""Files in and out: compression by suffix, standard streams as ``-``, nothing half-written."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Literal, cast

from treelm.errors import CorpusFormatError, InputFileError, TreelmError

#: A file by name; ``-`` is standard input or output.
Source = str | os.PathLike[str]

BLOCK_BYTES = 4 << 20
_DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


def _open(name: str, suffix: str, mode: Literal["rb", "wb"]) -> BinaryIO:
    """Open a file as the suffix says, which may be another than that of its name."""
    if suffix == ".gz":
        return cast("BinaryIO", gzip.open(name, mode))
    if suffix == ".bz2":
        return cast("BinaryIO", bz2.open(name, mode))
    if suffix == ".xz":
        return cast("BinaryIO", lzma.open(name, mode))
    return Path(name).open(mode)


def source_name(source: Source) -> str:
    """Return the name of a source as messages show it."""
    return "standard input" if os.fspath(source) == "-" else os.fspath(source)


@contextlib.contextmanager
def open_input(source: Source) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed by its suffix.

    Raises:
        InputFileError: if it is missing, unreadable, a folder, or its compression is damaged.
    """
    name = os.fspath(source)
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = _open(name, Path(name).suffix, "rb")
    except (OSError, ValueError) as error:
        raise input_error(name, error) from error
    with file:
        yield file


def input_error(source: Source, error: Exception) -> TreelmError:
    """Return the error that a failure to read `source` becomes."""
    name = source_name(source)
    if isinstance(error, FileNotFoundError):
        return InputFileError(f"{name}: there is no such file.", code="E_NO_FILE")
    if isinstance(error, IsADirectoryError):
        return InputFileError(f"{name}: this is a folder; name the files in it.", code="E_FOLDER")
    if isinstance(error, PermissionError):
        return InputFileError(f"{name}: no permission to read this file.", code="E_PERMISSION")
    if isinstance(error, _DAMAGE):
        return InputFileError(
            f"{name}: the compressed data is damaged or ends too early ({error}). "
            "Was the file copied completely? Does its suffix name its real format?",
            code="E_COMPRESSION",
        )
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputFileError(f"{name}: cannot be read ({reason}).")


def read_blocks(source: Source, *, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the content of a file in blocks; from a pipe or terminal as soon as bytes arrive.

    Raises:
        InputFileError: if the file cannot be opened or read to its end.
    """
    with open_input(source) as file:
        # A pipe hands on what it has, so that interactive use does not wait for megabytes.
        read = getattr(file, "read1", file.read) if os.fspath(source) == "-" else file.read
        while True:
            try:
                block = read(block_bytes)
            except (OSError, *_DAMAGE) as error:
                raise input_error(source, error) from error
            if not block:
                return
            yield block


def peek(source: Source, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file without using them up, also of standard input."""
    if os.fspath(source) == "-":
        return cast("BufferedReader", sys.stdin.buffer).peek(size)
    return next(read_blocks(source, block_bytes=size), b"")


def read_lines(source: Source) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their line ends (LF or CR LF).

    Raises:
        InputFileError: if the file cannot be read.
        CorpusFormatError: ``E_ENCODING`` with line and column for invalid UTF-8.
    """
    number = 0
    rest: list[bytes] = []  # pieces of a line that goes on
    for block in read_blocks(source):
        *complete, last = block.split(b"\n")
        for piece in complete:
            number += 1
            rest.append(piece)
            yield _decode(b"".join(rest), source, number)
            rest.clear()
        if last:
            rest.append(last)
    if rest:
        yield _decode(b"".join(rest), source, number + 1)


def _decode(line: bytes, source: Source, number: int) -> str:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        name = source_name(source)
        raise CorpusFormatError(
            f"{name}:{number}:{error.start + 1}: the text is not valid UTF-8. "
            f"Convert it first, for example: iconv -f latin1 -t utf-8 {name}",
            code="E_ENCODING",
            path=name,
            line=number,
            column=error.start + 1,
        ) from error


@contextlib.contextmanager
def write_atomically(target: Source) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to a temporary file in the same folder, which is renamed at the end and removed on
    any error; compression by suffix. ``-`` is standard output.
    """
    name = os.fspath(target)
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise TreelmError(
            f"{path}: cannot be written ({error.strerror}). Does its folder exist?",
            code="E_OUTPUT",
        ) from error
    try:
        with _open(temporary, path.suffix, "wb") as file:
            yield file
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise TreelmError(
            f"{path}: writing failed ({error.strerror}); nothing was changed.", code="E_OUTPUT"
        ) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
