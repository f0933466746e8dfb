"""Checkpoints: a file of tables beside a model, from which an interrupted training goes on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.temporary import remove_leftovers
from treelm.errors import ModelFileError, OutputFileError, UsageError, flag
from treelm.parallel.metrics import METRICS
from treelm.store.schema import Tensor, Tensors, read_tensors
from treelm.store.tables import Tables, open_tables, write_tables

#: What a checkpoint says of the tables in it.
DIGEST = "tables_sha256"
#: Folder of what is done of a round, in the folder of a training.
ROUND_FOLDER = "round"


def tables_digest(tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a hash of tables: of their names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}\n{array.dtype.str}\n{array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def training_folder(model: str | os.PathLike[str]) -> Path:
    """Return the folder in which the training of a model keeps its checkpoints."""
    path = Path(os.path.realpath(model))
    return path.with_name(f"{path.name}.training")


def remove_round(folder: Path) -> None:
    """Remove the files of a round that is over, from the folder of a training."""
    shutil.rmtree(folder / ROUND_FOLDER, ignore_errors=True)


def remove_training_files(folder: Path) -> None:
    """Remove checkpoints, and their folder if nothing else is in it."""
    remove_round(folder)
    with contextlib.suppress(OSError):
        for path in (*folder.glob("*.safetensors"), *folder.glob("*.forest"), folder / METRICS):
            path.unlink(missing_ok=True)
        remove_leftovers(folder)
        folder.rmdir()


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """A folder beside the model that holds what the last complete step of a training left.

    Args:
        folder: The folder.
    """

    #: Name of the file in it.
    file_name: ClassVar[str]
    #: What a training is told apart by, for messages.
    told_by: ClassVar[str]

    folder: Path

    @classmethod
    def beside(cls, model: str | os.PathLike[str]) -> Self:
        """Return the checkpoint of a model folder."""
        return cls(training_folder(model))

    @property
    def path(self) -> Path:
        """The file with the state."""
        return self.folder / self.file_name

    def write(self, tensors: Mapping[str, npt.NDArray[Any]], key: str, **notes: str) -> None:
        """Write the state of a training; the file appears only when it is complete.

        Args:
            tensors: The state.
            key: What tells the training from all others.
            notes: What else the file says.

        Raises:
            OutputFileError: if it cannot be written.
        """
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputFileError(
                f"{visible(str(self.folder))}: no checkpoint can be written there "
                f"({error.strerror}). Is the folder around it writable?"
            ) from error
        digest = tables_digest(tensors)
        write_tables(self.path, tensors, {"training": key, DIGEST: digest, **notes})

    def open(self, key: str) -> Tables | None:
        """Return the state of a training, or None if there is no checkpoint.

        Raises:
            UsageError: ``E_CHECKPOINT`` if it is that of another training.
            ModelFileError: ``E_MODEL_TABLES`` if it is damaged.
        """
        if not os.path.lexists(self.path):
            return None
        tables = open_tables(self.path)
        if tables.metadata.get("training") != key:
            raise UsageError(
                f"{visible(str(self.folder))}: this is the checkpoint of another training: other "
                f"{self.told_by}. Give the same ones, or train without {flag('resume')}.",
                code="E_CHECKPOINT",
            )
        return tables

    def read(
        self, tables: Tables, schema: Sequence[Tensor], *, only: bool = False, **sizes: int
    ) -> Tensors:
        """Return the tensors of an opened checkpoint after checking them; see `read_tensors`.

        Raises:
            ModelFileError: ``E_CHECKPOINT`` if they are others.
        """
        try:
            return read_tensors(tables, schema, only=only, **sizes)
        except ModelFileError as error:
            raise self.damaged(str(error)) from error

    def damaged(self, what: str) -> ModelFileError:
        """Return the error for a checkpoint that is not what it should be."""
        return ModelFileError(
            f"{visible(str(self.folder))}: the checkpoint cannot be used, {what}. Train without "
            f"{flag('resume')}.",
            code="E_CHECKPOINT",
        )

    def remove(self) -> None:
        """Remove the file, and the folder if nothing else is in it."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
            remove_leftovers(self.folder)
            self.folder.rmdir()
