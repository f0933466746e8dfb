"""A folder that appears complete or not at all.

Everything is written to ``.NAME.treelm-save-XXXXXXXX/new`` beside the folder NAME and put in its
place at the end. Systems that can exchange two folders do that in one step; with the others what
stood there is for an instant ``.NAME.treelm-save-XXXXXXXX/old``, from where the next save brings it
back if this one was killed. The folder of a running save is locked, so that leftovers of a killed
one can be told from it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from treelm.corpus.temporary import synchronize_folder

_OLD = "old"
_MARK = ".treelm-save-"
_AT_CURRENT_FOLDER = -100
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS


class Staging:
    """The place where a folder is prepared; made by `staged`."""

    def __init__(self, target: Path, container: Path) -> None:
        self.target = target
        self._container = container
        #: What is written here becomes the folder.
        self.folder = container / "new"
        self.folder.mkdir()

    def commit(self, check: Callable[[Path], None]) -> None:
        """Put the folder in its place.

        Args:
            check: Called with what stands there, unless that is nothing or an empty folder; raises
                if it must not be replaced.
        """
        synchronize(self.folder)
        try:
            self.folder.rename(self.target)  # onto nothing or onto an empty folder
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            check(self.target)
            if not exchange(self.folder, self.target):
                self._replace()
        synchronize_folder(self.target.parent)

    def _replace(self) -> None:
        """Do it in two steps; if the second fails, `clear` undoes the first."""
        self.target.rename(self._container / _OLD)
        self.folder.rename(self.target)


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Staging]:
    """Yield a place beside `target` to prepare a folder; it is gone afterwards.

    Leftovers of saves that were killed are removed first. SIGTERM, where nobody else handles it,
    ends the process only after the place was cleared away.
    """
    with _orderly_termination():
        remove_leftovers(target)
        container, lock = _locked_container(target)
        try:
            yield Staging(target, container)
        finally:
            clear(container, target)
            os.close(lock)


def _locked_container(target: Path) -> tuple[Path, int]:
    while True:
        path = tempfile.mkdtemp(prefix=f".{target.name}{_MARK}", dir=target.parent)
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # taken for a leftover before it was opened
            continue
        with contextlib.suppress(OSError):  # some file systems know no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return Path(path), lock
        os.close(lock)  # or before it was locked


def leftovers(target: Path) -> list[Path]:
    """Return the places of saves of `target` that are running or were killed."""
    pattern = re.compile(rf"\.{re.escape(target.name)}{re.escape(_MARK)}[a-z0-9_]{{8}}")
    try:
        return [path for path in target.parent.iterdir() if pattern.fullmatch(path.name)]
    except OSError:
        return []


def clear(container: Path, target: Path) -> None:
    """Remove the place of a save; bring back what it had moved away if nothing stands there."""
    old = container / _OLD
    if old.exists() and not os.path.lexists(target):
        old.rename(target)
    shutil.rmtree(container, ignore_errors=True)


def remove_leftovers(target: Path) -> None:
    """Remove what killed saves of `target` left; bring back the folder one of them moved away."""
    for container in leftovers(target):
        with contextlib.suppress(OSError):
            lock = os.open(container, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                clear(container, target)
            finally:
                os.close(lock)


def exchange(first: Path, second: Path) -> bool:
    """Let two folders change places in one step; return False where the system cannot."""
    names = (os.fsencode(first), os.fsencode(second))
    try:
        library = ctypes.CDLL(None)
        if sys.platform == "darwin":
            failed = library.renamex_np(*names, ctypes.c_uint(_EXCHANGE))
        else:
            here = ctypes.c_int(_AT_CURRENT_FOLDER)
            flags = ctypes.c_uint(_EXCHANGE)
            failed = library.renameat2(here, names[0], here, names[1], flags)
    except (OSError, AttributeError):
        return False
    return not failed


def synchronize(folder: Path) -> None:
    """Wait until a folder and everything in it is on the disk."""
    for path, _, files in os.walk(folder):
        for name in files:
            descriptor = os.open(Path(path, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        synchronize_folder(Path(path))


class _Terminated(BaseException):
    """Raised by SIGTERM, so that what is half-written is removed on the way out."""


@contextlib.contextmanager
def _orderly_termination() -> Iterator[None]:
    """Make SIGTERM clear up before it ends the process, where it would end it at once."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    owner = os.getpid()

    def terminate(_number: int, _frame: object) -> None:
        if os.getpid() == owner:
            raise _Terminated
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a child has nothing to clear up
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(owner, signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
