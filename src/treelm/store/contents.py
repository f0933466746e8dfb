"""Whether a folder holds exactly what its manifest lists; no file is opened to find out."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from treelm.characters import visible
from treelm.errors import ModelFileError
from treelm.store.manifest import MANIFEST, PARTS, README, FileRecord, Manifest
from treelm.store.replacement import IGNORED
from treelm.store.untrusted import excerpt, not_regular, own_file, unreadable

#: What model hubs and version control keep in a model folder; neither read nor refused. A folder
#: with one of these is not replaced when a model is saved, so that no history is lost.
_OF_HUBS = frozenset({".cache", ".git", ".gitattributes"})


def check_entries(folder: Path, manifest: Manifest) -> None:
    """Check that a folder holds what its manifest lists and nothing else.

    Raises:
        ModelFileError: ``E_MODEL_FILE`` for what is missing, unlisted, of another size, or neither
            a regular file nor a folder of parts.
    """
    shown = visible(str(folder))
    expected = {MANIFEST, README, *manifest.files, *([PARTS] if manifest.parts else [])}
    try:
        _check_unlisted(folder, expected | _OF_HUBS)
        for name, record in manifest.files.items():
            check_file(folder / name, record)
        if os.path.lexists(folder / README):  # for people, who may have removed or edited it
            check_file(folder / README, None)
        if manifest.parts:
            _check_is_folder(folder / PARTS)
            _check_unlisted(folder / PARTS, set(manifest.parts))
            for name in manifest.parts:
                _check_is_folder(folder / PARTS / name)
    except OSError as error:
        raise unreadable(shown, error, "E_MODEL_FILE") from error


def _check_unlisted(folder: Path, expected: set[str]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name not in expected and entry.name not in IGNORED:
                raise incomplete(
                    folder, f'it holds "{excerpt(entry.name)}", which the manifest does not list'
                )


def check_file(path: Path, record: FileRecord | None) -> None:
    """Check that a regular file stands there, of the size on record where there is one."""
    try:
        found = own_file(path).lstat()
    except OSError as error:
        raise unreadable(visible(str(path)), error, "E_MODEL_FILE") from error
    if not stat.S_ISREG(found.st_mode):
        raise not_regular(path, found.st_mode, "E_MODEL_FILE")
    if record is not None and found.st_size != record.size:
        raise ModelFileError(
            f"{visible(str(path))}: the file has {found.st_size} bytes, and had {record.size} when "
            "the model was saved. Was it copied completely? Copy the model again.",
            code="E_MODEL_FILE",
        )


def _check_is_folder(path: Path) -> None:
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise incomplete(path, "this is no folder, where a model has one")


def incomplete(path: Path, what: str) -> ModelFileError:
    """Return the error for a folder that is not what its manifest says."""
    return ModelFileError(
        f"{visible(str(path))}: {what}. Copy or train the model again.", code="E_MODEL_FILE"
    )
