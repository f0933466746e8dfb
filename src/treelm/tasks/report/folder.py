"""The folder of a report: it appears complete or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from treelm.characters import visible
from treelm.errors import OutputFileError
from treelm.store.staging import staged
from treelm.tasks.report.results import json_number

FORMAT = "treelm-report"
VERSION = 1
RUN = "run.json"
SCORES = "scores"

_LARGEST_RUN_BYTES = 64 << 20
#: What file managers leave behind.
_IGNORED = frozenset({".DS_Store", "Thumbs.db"})


def check_replaceable(folder: Path) -> None:
    """Refuse to replace anything but an empty folder or a report.

    Raises:
        OutputFileError: if something would be lost that is not part of a report.
    """
    shown = visible(str(folder))
    try:
        if not os.path.lexists(folder):
            return
        if not folder.is_dir():
            raise OutputFileError(f"{shown}: this is a file; a report is a folder.")
        found = sorted(
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if path != folder / SCORES or path.is_symlink() or not path.is_dir()
        )
        own = _listed(folder)
        foreign = [n for n in found if n not in own and Path(n).name not in _IGNORED]
    except OSError as error:
        raise OutputFileError(f"{shown}: cannot be replaced ({error.strerror}).") from error
    if foreign:
        raise OutputFileError(
            f"{shown}: this folder contains {visible(foreign[0])}, which is not part of a report, "
            "so it is not replaced. Give the report another name, or remove the folder first."
        )


def _listed(folder: Path) -> set[str]:
    """Return the files that an older report lists as its own, if there is one."""
    run = folder / RUN
    if run.is_symlink() or not run.is_file() or run.stat().st_size > _LARGEST_RUN_BYTES:
        return set()
    try:
        value = json.loads(run.read_bytes())
    except (ValueError, RecursionError):
        return set()
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict) or value.get("format") != FORMAT:
        return set()
    return {RUN, *files}


def write_folder(
    folder: Path, fill: Callable[[Path], None], run: Callable[[dict[str, str]], str]
) -> None:
    """Write a report; if anything goes wrong, what was there before is unchanged.

    Args:
        folder: Its name; the folder around it must exist.
        fill: Writes the files, given the folder to write to.
        run: Returns the content of ``run.json``, given the SHA-256 of all other files.

    Raises:
        OutputFileError: if it cannot be written, or contains something else.
    """
    target = Path(os.path.realpath(folder))
    try:
        with staged(target) as staging:
            fill(staging.folder)
            files = {
                path.relative_to(staging.folder).as_posix(): hashlib.sha256(
                    path.read_bytes()
                ).hexdigest()
                for path in sorted(staging.folder.rglob("*"))
                if path.is_file()
            }
            write_text(staging.folder / RUN, run(files))
            staging.commit(check_replaceable)
    except OSError as error:
        raise OutputFileError(
            f"{visible(os.fspath(folder))}: the report cannot be written "
            f"({error.strerror or error}); nothing was changed. Does the folder around it exist, "
            "and is there space?"
        ) from error


def file_name(name: str, taken: Collection[str]) -> str:
    """Return a name that every file system accepts, for a model of any name.

    Examples:
        >>> file_name("5-gram/PLSA", ()), file_name("A", {"a"})
        ('5-gram_PLSA', 'A-2')
    """
    stem = re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:80].strip(".") or "model"
    lower = {each.lower() for each in taken}
    found, number = stem, 1
    while found.lower() in lower:
        number += 1
        found = f"{stem}-{number}"
    return found


def json_text(record: Mapping[str, object]) -> str:
    """Return a record as readable JSON; infinities become strings."""
    return json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def write_text(path: Path, content: str) -> None:
    """Write a text file in UTF-8; invalid Unicode becomes a question mark."""
    path.write_bytes(content.encode("utf-8", errors="replace"))
