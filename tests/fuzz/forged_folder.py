"""A model folder in memory: read, changed by whoever wants to, and written with right checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from treelm.store.folder import TABLES
from treelm.store.manifest import MANIFEST, PARTS
from treelm.store.tables import DTYPES, open_tables

Array = np.ndarray[Any, Any]
Tensors = dict[str, Array]

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: Where a checkpoint lies beside its model, and what tells which training it is of.
MODEL, TRAINING = "model", "training.txt"


@dataclass
class Folder:
    """A model folder in memory.

    Args:
        manifest: What its manifest says, but for the files and parts, which are listed when it is
            written.
        tables: Tensors by name, those of the only file of tables.
        texts: The other files.
        parts: The model folders inside.
    """

    manifest: dict[str, Any]
    tables: Tensors | None
    texts: dict[str, bytes]
    parts: dict[str, Folder] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Folder:
        """Return what is in a model folder."""
        manifest = json.loads((path / MANIFEST).read_bytes())
        names = set(manifest.pop("files"))
        tables: Tensors | None = None
        if TABLES in names:
            found = open_tables(path / TABLES)
            tables = {name: np.array(found[name]) for name in found}
        texts = {name: (path / name).read_bytes() for name in sorted(names - {TABLES})}
        parts = {name: cls.read(path / PARTS / name) for name in manifest.pop("parts")}
        return cls(manifest, tables, texts, parts)

    def copy(self) -> Folder:
        """Return a copy whose entries can be exchanged; arrays and values are not to be changed."""
        tables = None if self.tables is None else dict(self.tables)
        parts = {name: part.copy() for name, part in self.parts.items()}
        return Folder(dict(self.manifest), tables, dict(self.texts), parts)

    def every(self) -> Iterator[Folder]:
        """Yield this folder and all inside it."""
        yield self
        for part in self.parts.values():
            yield from part.every()

    def write(self, path: Path) -> None:
        """Write the folder, with sizes and checksums of what is written."""
        path.mkdir()
        files = dict(self.texts)
        if self.tables is not None:
            files[TABLES] = tables_bytes(self.tables)
        records = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        }
        manifest = {**self.manifest, "files": records, "parts": list(self.parts)}
        for name, data in files.items():
            (path / name).write_bytes(data)
        if self.parts:
            (path / PARTS).mkdir()
            for name, part in self.parts.items():
                part.write(path / PARTS / name)
        (path / MANIFEST).write_bytes(json.dumps(manifest).encode())


@dataclass
class Checkpoint(Folder):
    """The checkpoint of a training in memory: a folder with nothing but tables.

    Args:
        training: Name of the training.
        file: Name of the file of tables.
        notes: What the file says besides.
    """

    training: str = ""
    file: str = ""
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_training(cls, training: str, path: Path) -> Checkpoint:
        """Return what is in a file of tables."""
        found = open_tables(path)
        tables = {name: np.array(found[name]) for name in found}
        return cls({}, tables, {}, {}, training, path.name, dict(found.metadata))

    def copy(self) -> Checkpoint:
        """Return a copy whose entries can be exchanged."""
        return replace(self, tables=dict(self.tables or {}), notes=dict(self.notes))

    def write(self, path: Path) -> None:
        """Write a folder with the checkpoint where the training of a model in it looks for one."""
        folder = path / f"{MODEL}.training"
        folder.mkdir(parents=True)
        (folder / self.file).write_bytes(tables_bytes(self.tables or {}, self.notes))
        (path / TRAINING).write_text(self.training)


def tables_bytes(tables: Tensors, notes: dict[str, str] | None = None) -> bytes:
    """Return the file of tables that `write_tables` would write, without a way to the disk."""
    arrays = {name: np.ascontiguousarray(array) for name, array in tables.items()}
    header: dict[str, object] = {"__metadata__": notes} if notes else {}
    place = 0
    for name in sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize):
        array, shape = arrays[name], tables[name].shape
        offsets = [place, place + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": shape, "data_offsets": offsets}
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    data = b"".join(arrays[name].tobytes() for name in header if name in arrays)
    return len(text).to_bytes(8, "little") + text + data
