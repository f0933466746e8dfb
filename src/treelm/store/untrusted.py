"""Reading what strangers wrote: regular files only, and JSON without surprises."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from treelm.characters import visible
from treelm.errors import ModelFileError

#: Brackets of JSON may be nested this deep: far more than any configuration needs.
MAX_JSON_DEPTH = 32
#: Lists and objects of one text: each costs hundreds of times the memory of its two bytes.
MAX_JSON_CONTAINERS = 50_000

#: Names of files in the cache of a model hub: SHA-1 or SHA-256.
_CHECKSUM = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

# Strings are swallowed whole, also one that never ends, so that the time is linear.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def excerpt(text: object) -> str:
    """Return something that a file says, short and safe enough for a message."""
    shown = visible(str(text))
    return shown if len(shown) <= 100 else f"{shown[:97]}..."


def own_file(path: Path) -> Path:
    """Return where the content of a file of a model folder lies: there, or where its link leads.

    A link is followed to a regular file in the same folder or below it, and from
    ``CACHE/snapshots/REVISION`` to a file of ``CACHE/blobs`` that is named by a checksum, as model
    hubs lay out what they have downloaded; the way there has no further links. Any other link is
    returned itself, to be refused.
    """
    try:
        target = path.readlink()
    except (OSError, ValueError):  # no link, or nothing at all
        return path
    folder = Path(os.path.realpath(path.parent))
    wanted = Path(os.path.normpath(folder / target))
    is_own = wanted.is_relative_to(folder) or (
        wanted.parent == _blobs(folder) and _CHECKSUM.fullmatch(wanted.name) is not None
    )
    if is_own and os.path.realpath(wanted) == str(wanted) and wanted.is_file():
        return wanted
    return path


def _blobs(folder: Path) -> Path | None:
    """Return where a model hub keeps the files of a snapshot, if the folder is part of one."""
    for revision in (folder, *folder.parents):
        if revision.parent.name == "snapshots":
            return revision.parent.parent / "blobs"
    return None


@contextlib.contextmanager
def open_regular(path: Path, code: str) -> Iterator[int]:
    """Open a regular file for reading and yield its descriptor.

    Symbolic links are not followed, and pipes and devices are not opened, because opening alone
    may block or act.

    Raises:
        ModelFileError: with `code` if it is missing, unreadable or no regular file.
    """
    shown = visible(str(path))
    try:
        kind = path.lstat().st_mode
        if not stat.S_ISREG(kind):
            raise not_regular(path, kind, code)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise unreadable(shown, error, code) from error
    try:
        kind = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(kind):  # exchanged since it was looked at
            raise not_regular(path, kind, code)
        yield descriptor
    except OSError as error:
        raise unreadable(shown, error, code) from error
    finally:
        os.close(descriptor)


def not_regular(path: Path, kind: int, code: str) -> ModelFileError:
    """Return the error for something that is no regular file."""
    what = "a pipe, socket or device"
    if stat.S_ISLNK(kind):
        what = "a symbolic link"
    elif stat.S_ISDIR(kind):
        what = "a folder"
    return ModelFileError(
        f"{visible(str(path))}: this is {what}, where a model has a regular file. "
        "Copy the files themselves, for example with `cp -rL`.",
        code=code,
    )


def unreadable(shown: str, error: Exception, code: str) -> ModelFileError:
    """Return the error for a file or folder that the system does not let us read."""
    if isinstance(error, OSError) and error.errno == errno.ENOENT:
        return ModelFileError(
            f"{shown}: there is no such file. Was the model copied completely?", code=code
        )
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ModelFileError(f"{shown}: cannot be read ({reason}).", code=code)


def read_exactly(descriptor: int, size: int) -> bytes:
    """Return the first `size` bytes of a file, fewer where it is shorter."""
    pieces = []
    place = 0
    while place < size:
        piece = os.pread(descriptor, size - place, place)
        if not piece:
            break
        pieces.append(piece)
        place += len(piece)
    return b"".join(pieces)


def parse_json(data: bytes) -> object:
    """Return the value of a JSON text that says one thing only.

    Refused are repeated keys, NaN and infinities, nesting deeper than `MAX_JSON_DEPTH`, more
    than `MAX_JSON_CONTAINERS` lists and objects, numbers of thousands of digits, and bytes that
    are no UTF-8.

    Raises:
        ValueError: with the reason.

    Examples:
        >>> parse_json(b'{"order": 3}')
        {'order': 3}
        >>> parse_json(b'{"order": 3, "order": 4}')
        Traceback (most recent call last):
        ValueError: the key "order" occurs twice
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is no UTF-8") from error
    depth = containers = 0
    for match in _TOKEN.finditer(text):
        opens = match[0] in "[{"
        containers += opens
        depth += opens - (match[0] in "]}")
        if depth > MAX_JSON_DEPTH:
            raise ValueError(f"brackets are nested deeper than {MAX_JSON_DEPTH}")
        if containers > MAX_JSON_CONTAINERS:
            raise ValueError(f"there are more than {MAX_JSON_CONTAINERS} lists and objects")
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:  # called from deep inside a program
        raise ValueError("brackets are nested too deep") from error
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f'the key "{excerpt(key)}" occurs twice')
        found[key] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{excerpt(text)} is too large a number")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
