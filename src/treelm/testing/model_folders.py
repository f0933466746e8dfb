"""What is compared of two model folders: everything but the day on which they were written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def folder_contents(folder: Path) -> dict[str, object]:
    """Return the content of a model folder by file: bytes, and manifests as what they say.

    The README repeats the manifest with its date, so it is left out.
    """
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.name == "README.md":
            continue
        found[name] = _said(path) if path.name == "manifest.json" else path.read_bytes()
    assert any(name.endswith("manifest.json") for name in found)
    return found


def different_files(first: Mapping[str, object], second: Mapping[str, object]) -> list[str]:
    """Return the files of two folders that only one has, or that say different things.

    Examples:
        >>> different_files({"a": b"1", "b": b"2"}, {"a": b"1", "b": b"3", "c": b""})
        ['b', 'c']
    """
    return [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]


def _said(manifest: Path) -> dict[str, object]:
    said: dict[str, object] = json.loads(manifest.read_text())
    del said["date"]
    return said
