"""Whether a file or folder can be written, asked before the work that makes it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from treelm.characters import visible
from treelm.corpus.files import Source
from treelm.errors import OutputFileError

#: Whatever is written needs more than this.
LEAST_SPACE = 1 << 20
#: Bytes by which the name of the folder in which a model is prepared is longer than the model's.
ADDED_TO_NAME = len("..treelm-save-") + 8
#: Bytes of a path below a model folder: parts inside parts, and the name of a file.
_BELOW_FOLDER = 256

#: Limits of systems that do not tell theirs.
_NAME_BYTES, _PATH_BYTES = 255, 1024


def check_file_target(target: Source) -> None:
    """Refuse a file that could not be written at the end of the work; ``-`` is standard output.

    Raises:
        OutputFileError: saying what stands in the way.
    """
    name = os.fspath(target)
    if name == "-":
        if sys.stdout is None:
            raise OutputFileError("standard output is closed; name a file with -o.")
        return
    path = _real_path(name)
    # These take a name that is too long for one that does not exist.
    if os.path.isdir(path):  # noqa: PTH112
        raise OutputFileError(f"{visible(name)}: this is a folder; name a file.")
    # A pipe or a device is not replaced.
    if os.path.lexists(path) and not os.path.isfile(path):  # noqa: PTH113
        if not os.access(path, os.W_OK):
            raise OutputFileError(f"{visible(name)}: cannot be written (no permission).")
        return
    check_place(name)


def check_place(target: Source, *, added: int = 0) -> None:
    """Refuse a place where neither a file nor a folder of this name could be made.

    The folder around it must exist, be writable and have some space, and the name must not be too
    long.

    Args:
        target: What will be written.
        added: Bytes that are added to the name while it is written.

    Raises:
        OutputFileError: saying what stands in the way.
    """
    shown = visible(os.fspath(target))
    path = _real_path(os.fspath(target))
    folder = path.parent
    if not os.path.isdir(folder):  # noqa: PTH112
        what = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise OutputFileError(
            f"{shown}: cannot be written, because {visible(str(folder))} {what}. "
            "Make that folder first, or choose another name."
        )
    most = _limit(folder, "PC_NAME_MAX", _NAME_BYTES) - added
    length = len(os.fsencode(path.name))
    if length > most:
        raise OutputFileError(
            f"{shown}: cannot be written, because the name has {length} bytes; at most {most} are "
            "possible here. Choose a shorter name."
        )
    if len(os.fsencode(path)) + _BELOW_FOLDER > _limit(folder, "PC_PATH_MAX", _PATH_BYTES):
        raise OutputFileError(
            f"{shown}: cannot be written, because the whole path is too long. Choose a folder that "
            "is nested less deeply."
        )
    from treelm.corpus.temporary import temporary_file

    try:
        with temporary_file(folder):  # one that the next run removes if this one is killed
            system = os.statvfs(folder)
    except OSError as error:
        raise OutputFileError(
            f"{shown}: cannot be written, because nothing can be made in "
            f"{visible(str(folder))} ({error.strerror or error})."
        ) from error
    if system.f_blocks and system.f_bavail * system.f_frsize < LEAST_SPACE:
        raise OutputFileError(
            f"{shown}: cannot be written, because the disk of {visible(str(folder))} is full "
            f"(less than {LEAST_SPACE >> 20} MiB are left)."
        )


def _real_path(name: str) -> Path:
    try:
        return Path(os.path.realpath(name))
    except ValueError as error:  # a zero byte, which no name can hold
        raise OutputFileError(
            f"{visible(name)}: cannot be the name of a file ({error})."
        ) from error


def _limit(folder: Path, name: str, unknown: int) -> int:
    """Return a limit of the file system, or a usual one where it has none or does not tell."""
    try:
        found = os.pathconf(folder, name)
    except (OSError, ValueError):
        return unknown
    return found if found > 0 else unknown
