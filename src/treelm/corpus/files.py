"""Files in and out: compression by suffix, standard streams as ``-``, nothing half-written."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO, FileIO
from pathlib import Path
from typing import BinaryIO, Literal, cast

from treelm.characters import visible
from treelm.corpus.file_kinds import FOREST_MAGIC, Wanted, checked_blocks
from treelm.corpus.remote_files import is_url, open_url, url_bytes
from treelm.errors import CorpusFormatError, InputFileError, OutputFileError, TreelmError

#: Suffixes of compressed files.
COMPRESSION = (".gz", ".bz2", ".xz")

#: The file by which a model folder is known.
MODEL_MANIFEST = "manifest.json"

#: A file by name, or a URL to read; ``-`` is standard input or output. `Content` stands for a file
#: that is in memory.
Source = str | os.PathLike[str]

BLOCK_BYTES = 4 << 20

#: What some editors write at the start of UTF-8 files.
_MARK = "\ufeff".encode()


@dataclass(frozen=True)
class Content:
    r"""What a file would hold, in memory: can be read wherever a file can.

    Args:
        name: What messages and records call it.
        data: The bytes.

    Examples:
        >>> list(read_lines(Content("two lines", b"one\ntwo\n")))
        ['one', 'two']
    """

    name: str
    data: bytes

    def __fspath__(self) -> str:
        return self.name


@dataclass(frozen=True)
class NamedFile:
    """A file that messages and records call by another name, such as a temporary one.

    Args:
        path: The file.
        name: What it is called.

    Examples:
        >>> source_name(NamedFile(Path("/tmp/tmp8a1/0.mrg"), "news.txt, parsed"))
        'news.txt, parsed'
    """

    path: Path
    name: str

    def __fspath__(self) -> str:
        return str(self.path)


class HeardFile(ABC):
    """A file that somebody listens to while others read it, so that it need not be read twice.

    Args:
        path: The file.
    """

    def __init__(self, path: Source) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    @abstractmethod
    def listen(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Pass the blocks of a reading on; it may be left before its end."""


_DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


def _open(name: str, suffix: str, mode: Literal["rb", "wb"]) -> BinaryIO:
    """Open a file as the suffix says, which may differ from that of its name."""
    if mode == "rb" and is_url(name):
        return _open_url(name, suffix)
    if suffix == ".gz" and mode == "wb":
        # Neither the time nor the temporary name is in the header: same trees, same bytes.
        raw = FileIO(name, mode)
        file = gzip.GzipFile(filename="", mode=mode, fileobj=raw, mtime=0)
        file.myfileobj = raw  # closed with the file around it
        return cast("BinaryIO", file)
    if suffix == ".gz":
        return cast("BinaryIO", gzip.open(name, mode))
    if suffix == ".bz2":
        return cast("BinaryIO", bz2.open(name, mode))
    if suffix == ".xz":
        return cast("BinaryIO", lzma.open(name, mode))
    return Path(name).open(mode)


def _open_url(url: str, suffix: str) -> BinaryIO:
    """Open what a URL names for reading, as the suffix says."""
    file = open_url(url)
    if suffix == ".gz":
        return cast("BinaryIO", gzip.GzipFile(fileobj=file))
    if suffix == ".bz2":
        return cast("BinaryIO", bz2.BZ2File(file))
    if suffix == ".xz":
        return cast("BinaryIO", lzma.LZMAFile(file))
    return file


def source_name(source: Source) -> str:
    """Return the name of a source as messages show it."""
    if isinstance(source, NamedFile):
        return visible(source.name)
    return "standard input" if os.fspath(source) == "-" else visible(os.fspath(source))


@contextlib.contextmanager
def open_input(source: Source) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed by its suffix.

    Raises:
        InputFileError: if it is missing, unreadable, a folder, or its compression is damaged.
    """
    if isinstance(source, Content):
        yield BytesIO(source.data)
        return
    name = os.fspath(source)
    if name == "-":
        if sys.stdin is None:
            raise InputFileError("standard input is closed; name a file.", code="E_NO_FILE")
        yield cast("BinaryIO", sys.stdin.buffer)
        return
    try:
        file = _open(name, Path(name).suffix, "rb")
    except (OSError, ValueError) as error:
        raise input_error(name, error) from error
    with file:
        yield file


def input_error(source: Source, error: Exception) -> TreelmError:
    """Return the error for a failure to read `source`."""
    name = source_name(source)
    if isinstance(error, FileNotFoundError):
        return InputFileError(f"{name}: there is no such file.", code="E_NO_FILE")
    if isinstance(error, IsADirectoryError) and (Path(source) / MODEL_MANIFEST).is_file():
        return InputFileError(
            f"{name}: this is a model folder; it is given with -m, before the files to read, "
            "a folder of counts to `treelm train ngram --counts FOLDER`.",
            code="E_FOLDER",
        )
    if isinstance(error, IsADirectoryError):
        return InputFileError(f"{name}: this is a folder; name the files in it.", code="E_FOLDER")
    if isinstance(error, PermissionError):
        return InputFileError(f"{name}: no permission to read this file.", code="E_PERMISSION")
    # bz2 reports damage as an OSError without a number.
    if isinstance(error, _DAMAGE) or (isinstance(error, OSError) and error.errno is None):
        return InputFileError(
            f"{name}: the compressed data is damaged or ends too early ({error}). "
            "Was the file copied completely? Does its suffix name its real format?",
            code="E_COMPRESSION",
        )
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputFileError(f"{name}: cannot be read ({reason}).")


def read_blocks(
    source: Source, *, block_bytes: int = BLOCK_BYTES, wanted: Wanted | None = None
) -> Iterator[bytes]:
    """Yield the content of a file in blocks; from a pipe or terminal as soon as bytes arrive.

    Args:
        source: The file.
        block_bytes: Largest size of a block.
        wanted: What the file should be; one that is evidently something else is refused.

    Raises:
        InputFileError: if the file cannot be opened or read to its end.
        CorpusFormatError: ``E_WRONG_KIND`` or ``E_ENCODING``, if it is not what is wanted.
    """
    if isinstance(source, HeardFile):
        return source.listen(read_blocks(source.path, block_bytes=block_bytes, wanted=wanted))
    blocks = _blocks(source, block_bytes)
    return blocks if wanted is None else checked_blocks(blocks, wanted, source_name(source))


def _blocks(source: Source, block_bytes: int) -> Iterator[bytes]:
    with open_input(source) as file:
        # A pipe passes on what it has, so that interactive use does not wait for megabytes.
        read = getattr(file, "read1", file.read) if os.fspath(source) == "-" else file.read
        while True:
            try:
                block = read(block_bytes)
            except (OSError, *_DAMAGE) as error:
                raise input_error(source, error) from error
            if not block:
                return
            yield block


def read_ahead(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks; while one is used, a thread of its own reads the next."""
    from concurrent.futures import ThreadPoolExecutor

    iterator = iter(blocks)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, iterator, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, iterator, None)
            yield block


def size_if_known(source: Source) -> int | None:
    """Return the bytes of a file, where they can be known (not for pipes or what is unpacked)."""
    if isinstance(source, Content):
        return len(source.data)
    path = Path(source)
    if isinstance(source, str) and is_url(source):
        return None if path.suffix in COMPRESSION else url_bytes(source)
    try:
        known = path.is_file() and path.suffix not in COMPRESSION and not is_forest(source)
        return path.stat().st_size if known else None
    except OSError:  # opening the file says it better
        return None


def can_be_read_twice(source: Source) -> bool:
    """Return False for standard input and pipes, whose content is gone once it was read."""
    if isinstance(source, Content):
        return True
    try:
        return os.fspath(source) != "-" and not Path(source).is_fifo()
    except OSError:  # opening the file says it better
        return True


def is_forest(source: Source) -> bool:
    """Return whether a file is one of parses that treelm packed; pipes are not looked at."""
    try:
        path = Path(source)
        if isinstance(source, Content) or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(FOREST_MAGIC)) == FOREST_MAGIC
    except (OSError, ValueError):  # opening it as what it should be says it better
        return False


def first_block(source: Source) -> bytes:
    """Return the start of a file, to tell what it is; this consumes a pipe."""
    return next(read_blocks(source, block_bytes=1 << 16), b"")


def read_lines(source: Source, wanted: Wanted | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their line ends (LF or CR LF).

    Args:
        source: The file.
        wanted: What the file should be; one that is evidently something else is refused.

    Raises:
        InputFileError: if the file cannot be read.
        CorpusFormatError: ``E_ENCODING`` with line and column for invalid UTF-8;
            ``E_WRONG_KIND`` if the file is not what is wanted.
    """
    return lines_of(read_blocks(source, wanted=wanted), source)


def documents_in(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of each document of a text with blank lines between documents.

    Examples:
        >>> list(documents_in(["", "one", "two", "", "", "three"]))
        [['one', 'two'], ['three']]
    """
    document: list[str] = []
    for line in lines:
        if line.strip():
            document.append(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def lines_of(blocks: Iterable[bytes], source: Source, lines_before: int = 0) -> Iterator[str]:
    """Yield the lines of blocks of UTF-8 text.

    Args:
        blocks: The text.
        source: What messages call it.
        lines_before: Number of lines of the source before the first of these.
    """
    number = lines_before
    rest: list[bytes] = []  # pieces of an unfinished line
    for block in blocks:
        end = block.rfind(b"\n")
        if end < 0:
            rest.append(block)
            continue
        rest.append(block[:end])
        complete = b"".join(rest)
        rest = [block[end + 1 :]] if end + 1 < len(block) else []
        for line in _decoded_lines(complete, source, number):
            number += 1
            yield line
    if rest:
        yield _decode(b"".join(rest), source, number + 1)


def _decoded_lines(text: bytes, source: Source, before: int) -> Iterable[str]:
    """Return complete lines, all decoded at once where each of them is plain; `before` precede."""
    if b"\r" not in text:
        try:
            return (text if before else text.removeprefix(_MARK)).decode().split("\n")
        except UnicodeDecodeError:  # the lines before the invalid one come first
            pass
    pieces = text.split(b"\n")
    return (_decode(line, source, number) for number, line in enumerate(pieces, before + 1))


def _decode(line: bytes, source: Source, number: int) -> str:
    if number == 1:
        line = line.removeprefix(_MARK)
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise encoding_error(source, number, error.start + 1) from error


def encoding_error(source: Source, line: int, column: int) -> CorpusFormatError:
    """Return the error for bytes that are not UTF-8; line and byte column count from 1."""
    name = source_name(source)
    return CorpusFormatError(
        f"{name}:{line}:{column}: the text is not valid UTF-8. "
        f"Convert it first, for example: iconv -f latin1 -t utf-8 {name}",
        code="E_ENCODING",
        path=name,
        line=line,
        column=column,
    )


@contextlib.contextmanager
def write_atomically(target: Source) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to a temporary file in the same folder, which is renamed at the end and removed on
    any error; compression by suffix. They are on the disk before the file gets its name, so that
    after a crash of the machine the file is the old or the new one. ``-`` is standard output.
    Anything but a regular file (a pipe, a device) cannot be replaced and is written to directly.

    Raises:
        OutputFileError: if it cannot be written; what stood there is unchanged.
    """
    name = os.fspath(target)
    if name == "-":
        if sys.stdout is None:
            raise OutputFileError("standard output is closed; name a file with -o.")
        yield cast("BinaryIO", sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    from treelm.corpus.temporary import synchronize, synchronize_folder

    path = Path(os.path.realpath(name))
    shown = visible(name)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with _open(str(path), path.suffix, "wb") as file:
                yield file
            return
        with contextlib.ExitStack() as cleanup:
            old_mode = path.stat().st_mode & 0o777 if path.exists() else None
            place, descriptor = cleanup.enter_context(_temporary_beside(path, shown, old_mode))
            with _open(str(place), path.suffix, "wb") as file:
                yield file
            if old_mode is not None:
                os.fchmod(descriptor, old_mode)
            synchronize(descriptor)
            place.replace(path)
        synchronize_folder(path.parent)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputFileError(
            f"{shown}: writing failed ({error.strerror}); nothing was changed."
        ) from error


@contextlib.contextmanager
def _temporary_beside(path: Path, shown: str, old_mode: int | None) -> Iterator[tuple[Path, int]]:
    """Give a file beside another; it is private until it gets the permissions of the old one."""
    from treelm.corpus.temporary import temporary_file

    with contextlib.ExitStack() as cleanup:
        try:
            # Without an old file the system gives the usual permissions, by the umask.
            mode = 0o666 if old_mode is None else 0o600
            made = cleanup.enter_context(temporary_file(path.parent, mode))
        except OSError as error:
            raise OutputFileError(
                f"{shown}: cannot be written ({error.strerror}). Does its folder exist?"
            ) from error
        yield made
