"""Files that a URL names, such as ``s3://bucket/text.txt``: whatever fsspec can reach."""

from __future__ import annotations

import os
import re
from typing import Any, BinaryIO, cast

from treelm.errors import InputFileError
from treelm.extras import import_extra

#: A scheme has at least two letters: ``C:`` is a disk.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z0-9+.-]+)*://")


def is_url(source: str | os.PathLike[str]) -> bool:
    """Return whether a name is a URL.

    Examples:
        >>> is_url("s3://bucket/text.txt"), is_url("text.txt"), is_url("-")
        (True, False, False)
    """
    return isinstance(source, str) and _URL.match(source) is not None


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and its path there.

    Raises:
        MissingExtra: without fsspec.
        InputFileError: ``E_NO_FILE`` for a kind of URL that it does not know, or for which another
            package is needed.
    """
    fsspec = import_extra("fsspec", f"Reading {url}")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise InputFileError(f"{url}: cannot be read ({error}).", code="E_NO_FILE") from error
    return system, str(path)


def open_url(url: str) -> BinaryIO:
    """Open what a URL names for reading bytes.

    Raises:
        OSError: if it cannot be opened.
        InputFileError: for a kind of URL that is not known.
    """
    system, path = file_system(url)
    try:
        return cast("BinaryIO", system.open(path, "rb"))
    except OSError:
        raise
    except Exception as error:  # each kind of server has errors of its own
        raise OSError(str(error) or type(error).__name__) from error


def url_bytes(url: str) -> int | None:
    """Return the size of what a URL names, if it is known."""
    system, path = file_system(url)
    try:
        size = system.size(path)
    except Exception:  # opening it says it better
        return None
    return None if size is None else int(size)
