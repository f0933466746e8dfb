"""Models of one package share their parts: a parser is stored once, not in every model with it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from treelm.characters import visible
from treelm.errors import ModelFileError, OutputFileError
from treelm.store.folder import ModelFolder, open_folder
from treelm.store.manifest import MANIFEST, PARTS, README, Manifest, SharedPart
from treelm.store.replacement import check_replaceable
from treelm.store.staging import staged


def share_parts(source: Path, target: Path) -> tuple[str, ...]:
    """Save a model without the parts that lie beside the target as model folders.

    A part is shared if a folder beside the target contains the same model: the same system, options
    and bytes of all files. From then on the two belong together, and the model opens only beside
    that very folder.

    Args:
        source: Model folder.
        target: Model folder to write, perhaps the same.

    Returns:
        The names of the folders that are shared, in the order of their parts.

    Raises:
        ModelFileError: if there is no model, or it is damaged.
        OutputFileError: if the target cannot be written.
    """
    target = Path(os.path.realpath(target))
    model = open_folder(source)
    beside = {path.name: path for path in _folders_beside(target)}
    known = {_content(folder): name for name, folder in _opened(beside).items()}
    shared = dict(model.manifest.shared) if target.parent == model.path.parent else {}
    for name in model.manifest.parts:
        found = known.get(_content(model.part(name)))
        if found is not None:
            fingerprint = open_folder(beside[found]).fingerprint
            shared[name] = SharedPart(folder=found, fingerprint=fingerprint)
    missing = set(model.manifest.shared) - set(shared)
    if missing:
        raise ModelFileError(
            f"{visible(str(source))}: this model shares parts with folders beside it, so it stays "
            f"there; {visible(str(target.parent))} is another place.",
            code="E_SHARED_PART",
        )
    manifest = model.manifest.model_copy(
        update={
            "parts": tuple(name for name in model.manifest.parts if name not in shared),
            "shared": dict(sorted(shared.items())),
        }
    )
    _write(model, manifest, target)
    return tuple(shared[name].folder for name in sorted(shared))


def _folders_beside(target: Path) -> list[Path]:
    found = sorted(path for path in target.parent.iterdir() if (path / MANIFEST).is_file())
    return [path for path in found if path.name != target.name and not path.name.startswith(".")]


def _opened(folders: Mapping[str, Path]) -> dict[str, ModelFolder]:
    """Return the folders that are whole models; what else lies there is nobody's part."""
    opened = {}
    for name, path in folders.items():
        try:
            opened[name] = open_folder(path)
        except ModelFileError:
            continue
    return opened


def _content(folder: ModelFolder) -> str:
    """Return what makes a model the same as another one, whenever and by whom it was saved."""
    manifest = folder.manifest.model_dump(
        mode="json", exclude={"date", "treelm", "native", "parts", "shared"}
    )
    return repr(
        (manifest, sorted((name, _content(folder.part(name))) for name in folder.part_names))
    )


def _write(model: ModelFolder, manifest: Manifest, target: Path) -> None:
    check_replaceable(target)
    try:
        with staged(target) as staging:
            for name in manifest.files:
                shutil.copyfile(model.file(name), staging.folder / name)
            for name in manifest.parts:
                shutil.copytree(model.path / PARTS / name, staging.folder / PARTS / name)
            if (model.path / README).is_file():
                shutil.copyfile(model.path / README, staging.folder / README)
            (staging.folder / MANIFEST).write_bytes(manifest.to_bytes())
            model.check_unchanged()
            staging.commit(check_replaceable)
    except OSError as error:
        raise OutputFileError(
            f"{visible(str(target))}: saving failed ({error.strerror or error}); nothing was "
            "changed. Does the folder around it exist, and is there space?"
        ) from error
