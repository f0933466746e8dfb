"""What is in a model folder."""

from __future__ import annotations

from pathlib import Path

from treelm.corpus.files import Source
from treelm.models.registry import from_folder
from treelm.store.folder import ModelFolder, read_folder
from treelm.store.manifest import MANIFEST


def is_model_folder(path: Source) -> bool:
    """Return whether a path is a folder with a manifest in it."""
    try:
        return (Path(path) / MANIFEST).is_file()
    except OSError:
        return False


def inspect_model(path: Source, *, verify: bool = False) -> dict[str, object]:
    """Return what a model is, what it was made from, and how large it is.

    Args:
        path: A model folder; it is opened and loaded, so anything inconsistent is found.
        verify: Also read everything and compare checksums.

    Raises:
        ModelFileError: if it is damaged.
    """
    checked = "manifest, sizes, tables" + (", checksums" if verify else "")
    return {**read_folder(Path(path), _describe, verify=verify), "checked": checked}


def _describe(folder: ModelFolder) -> dict[str, object]:
    manifest = folder.manifest
    model = from_folder(folder)
    info = model.info
    counts = model.unigram_counts
    record: dict[str, object] = {
        "system": manifest.system,
        "config": dict(manifest.config),
        "exactness": info.exactness,
        "normalized": info.normalized,
        "abilities": list(map(str, model.abilities)),
        "order": info.order,
        "beam": info.beam,
        "words": len(model.vocabulary) - 1,
        "vocabulary": info.vocabulary,
        "trained_tokens": None if counts is None else int(counts.sum()) or None,
        "corpora": [record.model_dump() for record in manifest.corpora],
        "transforms": list(manifest.transforms),
        "seed": manifest.seed,
        "treelm": manifest.treelm,
        "native": manifest.native,
        "date": manifest.date,
        "files": {name: record.size for name, record in manifest.files.items()},
        "tables": {
            f"{file}:{name}": list(array.shape)
            for file in manifest.files
            if file.endswith(".safetensors")
            for name, array in folder.tables(file).items()
        },
    }
    if folder.part_names:
        record["parts"] = {name: folder.part(name).manifest.system for name in folder.part_names}
    return record
