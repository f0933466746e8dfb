"""What is compared of two model folders: everything but the day on which they were written."""

from __future__ import annotations

import json
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


def _said(manifest: Path) -> dict[str, object]:
    said: dict[str, object] = json.loads(manifest.read_text())
    del said["date"]
    return said
