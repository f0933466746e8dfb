"""Temporary files and folders, of which the next run removes what a killed one left.

Their names begin with ``.treelm-file-`` and ``.treelm-folder-``. Whoever uses one holds a lock on
it, which ends with the process, so that leftovers can be told from what is in use at once. Where
the file system knows no locks, and for names without a kind, as earlier versions gave them, a
leftover is what nobody changed for a day. What belongs to another user is never touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"\.treelm-(?:(file|folder)-)?[a-z0-9_]{8}")
#: Seconds after which what cannot be locked counts as left behind.
_OLD = 24 * 60 * 60
#: Folders that this process has looked through.
_seen: set[Path] = set()


@contextlib.contextmanager
def temporary_file(folder: Path, mode: int = 0o600) -> Iterator[tuple[Path, int]]:
    """Give a new empty file, and a descriptor of it; whatever has its name afterwards is removed.

    Args:
        folder: Where to make it; leftovers there are removed once in a process.
        mode: Its permissions, of which the system takes those away that it does not allow.

    Raises:
        OSError: if no file can be made there.
    """
    if folder not in _seen:
        _seen.add(folder)
        remove_leftovers(folder)
    path, descriptor = _locked_file(folder, mode)
    try:
        yield path, descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextlib.contextmanager
def temporary_folder(place: Path | None = None) -> Iterator[Path]:
    """Give a new folder, which is removed afterwards; leftovers beside it are removed first.

    Args:
        place: Where to make it; None for the system's own folder of temporary files.

    Raises:
        OSError: if none can be made there.
    """
    around = Path(tempfile.gettempdir()) if place is None else place
    remove_leftovers(around)
    while True:
        path = around / f".treelm-folder-{os.urandom(4).hex()}"
        path.mkdir(mode=0o700)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # taken for a leftover before it was opened
            continue
        if _is_locked(path, descriptor):
            break
        os.close(descriptor)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders that killed processes of this user left somewhere."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name)
            if named is not None:
                with contextlib.suppress(OSError):  # in use, or gone already
                    _remove_if_left(Path(entry.path), takes_lock=named[1] is not None)


def synchronize(descriptor: int) -> None:
    """Wait until a file is on the disk, where its file system can say so.

    Raises:
        OSError: if it cannot be written there.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise


def synchronize_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system lets folders do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _locked_file(folder: Path, mode: int) -> tuple[Path, int]:
    while True:
        path = folder / f".treelm-file-{os.urandom(4).hex()}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, mode)
        except FileExistsError:
            continue
        if _is_locked(path, descriptor):
            return path, descriptor
        os.close(descriptor)


def _is_locked(path: Path, descriptor: int) -> bool:
    """Lock something new; return False if it was taken for a leftover before it was locked."""
    with contextlib.suppress(OSError):  # some file systems know no locks
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.path.lexists(path)


def _remove_if_left(path: Path, *, takes_lock: bool) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid():
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:
            takes_lock = False
        if not takes_lock and time.time() - facts.st_mtime < _OLD:
            return
        if stat.S_ISDIR(facts.st_mode):
            shutil.rmtree(path, ignore_errors=True)
        elif stat.S_ISREG(facts.st_mode):
            path.unlink()
    finally:
        os.close(descriptor)
