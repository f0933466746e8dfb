"""Folders that many machines see: on a shared file system, or where a URL says."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from treelm.corpus.remote_files import file_system, is_url
from treelm.corpus.temporary import temporary_folder
from treelm.errors import ModelFileError, OutputFileError
from treelm.store.tables import Tables, open_tables, write_tables


@dataclass(frozen=True)
class SharedFolder:
    """A folder of tables.

    Args:
        place: Its path, or a URL that fsspec knows.

    Examples:
        >>> str(SharedFolder("s3://bucket/work") / "round")
        's3://bucket/work/round'
    """

    place: str

    def __truediv__(self, name: str) -> SharedFolder:
        return SharedFolder(f"{self.place.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self.place

    @property
    def is_remote(self) -> bool:
        """Whether it is where a URL says."""
        return is_url(self.place)

    @property
    def is_there(self) -> bool:
        """Whether files can be written; stores of objects have no folders to be made."""
        return self.is_remote or Path(self.place).is_dir()

    def make(self) -> None:
        """Make the folder, unless it is there."""
        if not self.is_remote:
            Path(self.place).mkdir(parents=True, exist_ok=True)

    def write(
        self,
        name: str,
        tensors: Mapping[str, npt.NDArray[Any]],
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        """Write tables to a file that appears only when it is complete.

        Raises:
            OutputFileError: if it cannot be written.
        """
        if not self.is_remote:
            write_tables(Path(self.place) / name, tensors, metadata)
            return
        with temporary_folder() as own:
            write_tables(own / name, tensors, metadata)
            self._put(own / name)

    def open(self, name: str) -> Tables:
        """Return the tables of a file; of one elsewhere, a copy that disappears with them.

        Raises:
            ModelFileError: if there is no such file, or it is damaged.
        """
        if not self.is_remote:
            return open_tables(Path(self.place) / name)
        system, path = file_system(self.place)
        with temporary_folder() as own:
            try:
                system.get_file(f"{path}/{name}", str(own / name))
            except Exception as error:  # each kind of server has errors of its own
                raise ModelFileError(
                    f"{self / name}: cannot be read ({error}).", code="E_NO_FILE"
                ) from error
            return open_tables(own / name)

    def remove(self) -> None:
        """Remove the folder and all files in it, if it is there."""
        if not self.is_remote:
            shutil.rmtree(self.place, ignore_errors=True)
            return
        system, path = file_system(self.place)
        with contextlib.suppress(FileNotFoundError):
            system.rm(path, recursive=True)

    def fetch(self, target: Path) -> None:
        """Copy the files of a remote folder, not those of folders in it."""
        system, path = file_system(self.place)
        try:
            found = system.ls(path, detail=True)
        except FileNotFoundError:
            return
        for item in found:
            if item["type"] == "file":
                name = item["name"].rsplit("/", 1)[-1]
                system.get_file(item["name"], str(target / name))

    def send(
        self, source: Path, before: Mapping[str, tuple[int, int]]
    ) -> dict[str, tuple[int, int]]:
        """Copy the files of a local folder that have changed, and remove those that are gone.

        Args:
            source: The local folder.
            before: What this returned last time.

        Returns:
            When each file was changed, and its size.

        Raises:
            OutputFileError: if a file cannot be written.
        """
        system, path = file_system(self.place)
        now: dict[str, tuple[int, int]] = {}
        for file in sorted(source.iterdir()):
            if file.is_file() and not file.name.startswith("."):
                status = file.stat()
                now[file.name] = status.st_mtime_ns, status.st_size
                if before.get(file.name) != now[file.name]:
                    self._put(file)
        for name in before.keys() - now.keys():
            with contextlib.suppress(FileNotFoundError):
                system.rm_file(f"{path}/{name}")
        return now

    def _put(self, file: Path) -> None:
        system, path = file_system(self.place)
        coming = f"{path}/.coming-{secrets.token_hex(4)}"
        try:
            system.makedirs(path, exist_ok=True)
            system.put_file(str(file), coming)
            system.mv(coming, f"{path}/{file.name}")
        except Exception as error:  # each kind of server has errors of its own
            raise OutputFileError(f"{self / file.name}: cannot be written ({error}).") from error


@contextlib.contextmanager
def local_copy(place: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a folder as it is on this machine: itself, or a copy of what a URL names."""
    if not is_url(place):
        yield Path(place)
        return
    with temporary_folder() as own:
        SharedFolder(os.fspath(place)).fetch(own)
        yield own
