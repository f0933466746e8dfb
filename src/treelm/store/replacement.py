"""Which folders a save may replace: those that hold a model and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from treelm.characters import visible
from treelm.errors import ModelFileError, OutputFileError
from treelm.store.manifest import FORMAT, MANIFEST, PARTS, README, manifest_bytes
from treelm.store.untrusted import parse_json

#: Models inside models: a mixture of parsers of ... never goes deeper than this.
MAX_LEVELS = 8

#: What file managers leave behind; neither read nor refused.
IGNORED = frozenset({".DS_Store", "Thumbs.db"})


def check_replaceable(target: Path) -> None:
    """Refuse to replace anything but an empty folder or a model, whatever its version.

    Raises:
        OutputFileError: if something would be lost that treelm did not write.
    """
    shown = visible(str(target))
    try:
        if not os.path.lexists(target):
            return
        if not target.is_dir():
            raise OutputFileError(f"{shown}: this is a file; a model is saved as a folder.")
        foreign = _foreign_entry(target, 0)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputFileError(f"{shown}: cannot be replaced ({reason}).") from error
    if foreign is not None:
        raise OutputFileError(
            f"{shown}: this folder holds {visible(foreign)}, which is no part of a model, so it is "
            "not replaced. Give the model another name, or remove the folder first."
        )


def model_at(target: Path) -> str | None:
    """Return the model that a save would replace, in words; None if there is none.

    Examples:
        >>> model_at(Path("no such folder")) is None
        True
    """
    try:
        value = parse_json(manifest_bytes(target))
    except (OSError, ModelFileError, ValueError):
        return None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return None
    return f"the {visible(str(value.get('system')))} model of {visible(str(value.get('date')))}"


def _foreign_entry(folder: Path, level: int) -> str | None:
    """Return the name of something that a model folder would not hold, or None."""
    found = sorted(path.name for path in folder.iterdir() if path.name not in IGNORED)
    if not found:
        return None
    known, parts = _listed(folder)
    if level > MAX_LEVELS:
        return found[0]
    for name in found:
        path = folder / name
        if name == PARTS and parts and path.is_dir() and not path.is_symlink():
            for inner in sorted(path.iterdir()):
                if inner.name not in parts or not inner.is_dir() or inner.is_symlink():
                    return f"{PARTS}/{inner.name}"
                foreign = _foreign_entry(inner, level + 1)
                if foreign is not None:
                    return f"{PARTS}/{inner.name}/{foreign}"
        elif name not in known or path.is_dir():
            return name
    return None


def _listed(folder: Path) -> tuple[set[str], set[str]]:
    """Return the names of files and parts that a manifest of any version lists, if there is one."""
    try:
        value = parse_json(manifest_bytes(folder))
    except (ModelFileError, ValueError):
        return set(), set()
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return set(), set()
    files, parts = value.get("files"), value.get("parts")
    return (
        {MANIFEST, README, *(files if isinstance(files, dict) else ())},
        {part for part in parts if isinstance(part, str)} if isinstance(parts, list) else set(),
    )
