"""The model folder: saved whole or not at all, opened without trusting anything in it.

A folder holds::

    manifest.json         what the model is, and size and SHA-256 of every file
    README.md             a few lines for people; may be edited or removed
    tables.safetensors    numbers, mapped and used in place
    words.txt ...         other files of the system
    parts/parser/ ...     model folders that this one needs

In a package of models, parts that are models of the package too are not stored twice: the manifest
names the folder beside this one, and the SHA-256 of its manifest (see `share_parts`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from numpy.typing import NDArray

from treelm.characters import visible
from treelm.corpus.files import read_lines
from treelm.errors import InputFileError, ModelFileError, OutputFileError
from treelm.store.contents import check_entries, check_file, incomplete
from treelm.store.manifest import (
    MANIFEST,
    PARTS,
    README,
    RESERVED,
    Description,
    FileRecord,
    Manifest,
    SharedPart,
    is_entry_name,
    make_manifest,
    manifest_bytes,
    read_manifest,
)
from treelm.store.replacement import MAX_LEVELS, check_replaceable
from treelm.store.tables import Tables, open_tables, write_tables
from treelm.store.untrusted import (
    excerpt,
    open_regular,
    own_file,
    unreadable,
)

TABLES = "tables.safetensors"

_BLOCK_BYTES = 1 << 20
#: So many folders may share a part one after the other: a mixture, its treelet model, its parser.
MAX_SHARING = 3
#: So often is opening tried anew when the folder is replaced meanwhile.
_ATTEMPTS = 10

Result = TypeVar("Result")

_Identity = tuple[int, int, int, int]


class FolderWriter:
    """Takes the files of a model that is being saved; made by `save_folder`.

    Names are one component of a path, made of letters, digits, ``.``, ``_`` and ``-``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[str] = []
        self._parts: list[str] = []

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files announced so far."""
        return tuple(self._files)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts announced so far."""
        return tuple(self._parts)

    def tables(self, name: str, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Write arrays, to be opened by `ModelFolder.tables`."""
        write_tables(self.file(name), tensors)

    def text(self, name: str, content: str) -> None:
        """Write a text file in UTF-8, line ends as they are."""
        self.file(name).write_bytes(content.encode())

    def lines(self, name: str, values: Iterable[object]) -> None:
        """Write a text file with one value per line, to be read by `ModelFolder.lines`."""
        self.text(name, "".join(f"{value}\n" for value in values))

    def file(self, name: str) -> Path:
        """Return where to write a file of the model; it must exist when the writing ends."""
        _check_name(name, self._files, RESERVED)
        self._files.append(name)
        return self._folder / name

    def part(self, name: str) -> Path:
        """Return where to save a model that this one needs; its own `save_folder` fills it."""
        _check_name(name, self._parts, frozenset())
        self._parts.append(name)
        (self._folder / PARTS).mkdir(exist_ok=True)
        return self._folder / PARTS / name


def _check_name(name: str, taken: Iterable[str], reserved: frozenset[str]) -> None:
    if not is_entry_name(name):
        raise ValueError(f"{name!r} cannot be a name in a model folder")
    if name.lower() in reserved or name.lower() in map(str.lower, taken):
        raise ValueError(f"the name {name!r} is reserved or taken")


def save_folder(
    folder: Path, description: Description, write: Callable[[FolderWriter], None]
) -> None:
    """Save a model as a folder that appears under its name only when it is complete.

    An empty folder or a model is replaced; anything else that stands there is left alone. Whatever
    goes wrong, what stood there before stands there afterwards. Arrays mapped from a replaced model
    stay valid.

    Args:
        folder: Name of the model folder; the folder around it must exist.
        description: What the model is.
        write: Writes the files, given a `FolderWriter`.

    Raises:
        OutputFileError: if the folder cannot be written or holds something else.
        ValueError: if the description or a name is impossible, or a file is missing.
    """
    from treelm.store.staging import staged

    target = Path(os.path.realpath(folder))
    make_manifest(description, {}, ())  # before hours of writing
    check_replaceable(target)
    try:
        with staged(target) as staging:
            try:
                _fill(staging.folder, description, write)
                staging.commit(check_replaceable)
            except OutputFileError as error:  # names a place that the user never sees
                message = str(error).replace(visible(str(staging.folder)), visible(str(target)))
                raise OutputFileError(message, code=error.code) from error
    except OSError as error:
        raise OutputFileError(
            f"{visible(os.fspath(folder))}: saving failed ({error.strerror or error}); nothing was "
            "changed. Does the folder around it exist, and is there space?"
        ) from error


def _fill(folder: Path, description: Description, write: Callable[[FolderWriter], None]) -> None:
    """Write everything into a folder, the manifest last."""
    writer = FolderWriter(folder)
    write(writer)
    files = {name: _record(folder / name) for name in sorted(writer.files)}
    manifest = make_manifest(description, files, writer.parts)
    try:
        check_entries(folder, manifest)
        for name in writer.parts:
            _open(folder / PARTS / name, 1)
    except ModelFileError as error:
        raise ValueError(f"what was written is no model: {error}") from error
    (folder / README).write_bytes(manifest.to_readme().encode())
    (folder / MANIFEST).write_bytes(manifest.to_bytes())


def _record(path: Path) -> FileRecord:
    try:
        with open_regular(path, "E_MODEL_FILE") as descriptor:
            return FileRecord(size=os.fstat(descriptor).st_size, sha256=_sha256(descriptor))
    except ModelFileError as error:
        raise ValueError(f"{path.name} was announced but not written: {error}") from error


def _sha256(descriptor: int, limit: int | None = None) -> str:
    """Return the checksum of a file, of no more than `limit` bytes."""
    digest = hashlib.sha256()
    place = 0
    while limit is None or place < limit:
        wanted = _BLOCK_BYTES if limit is None else min(_BLOCK_BYTES, limit - place)
        block = os.pread(descriptor, wanted, place)
        if not block:
            break
        digest.update(block)
        place += len(block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model folder whose manifest and set of files were checked; made by `open_folder`.

    Args:
        path: The folder.
        manifest: What its manifest says.
        fingerprint: SHA-256 of the manifest, and so of the checksums of all files.
    """

    path: Path
    manifest: Manifest
    fingerprint: str
    _parts: Mapping[str, ModelFolder]
    _identity: _Identity

    def tables(self, name: str = TABLES) -> Tables:
        """Return the tables of a file, mapped.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the file is damaged or forged.
        """
        tables = open_tables(self.file(name))
        self.check_unchanged()  # what was opened is what the manifest speaks of
        return tables

    def lines(self, name: str) -> tuple[str, ...]:
        """Return the lines of a text file.

        Raises:
            ModelFileError: if the manifest lists none of that name, or the folder was changed.
        """
        try:
            lines = tuple(read_lines(self.file(name)))
        except InputFileError:  # gone since it was looked at
            self.check_unchanged()
            raise
        self.check_unchanged()
        return lines

    def file(self, name: str) -> Path:
        """Return the path of a file that the manifest lists, links followed.

        Raises:
            ModelFileError: if it lists none of that name, or the folder was changed meanwhile.
        """
        if name not in self.manifest.files:
            raise incomplete(self.path, f'the manifest lists no file "{excerpt(name)}"')
        self.check_unchanged()
        check_file(self.path / name, self.manifest.files[name])
        return own_file(self.path / name)

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of the models that this one needs, in it or beside it."""
        return tuple(self._parts)

    def part(self, name: str) -> ModelFolder:
        """Return a model that this one needs.

        Raises:
            ModelFileError: if the manifest lists no part of that name.
        """
        if name not in self._parts:
            raise incomplete(self.path, f'the manifest lists no part "{excerpt(name)}"')
        return self._parts[name]

    def verify(self) -> None:
        """Compare the SHA-256 of every file, those of the parts too, with the manifest.

        Raises:
            ModelFileError: ``E_CHECKSUM`` for the first file that differs.
        """
        self.check_unchanged()
        check_entries(self.path, self.manifest)
        for name, record in self.manifest.files.items():
            path = self.path / name
            with open_regular(own_file(path), "E_MODEL_FILE") as descriptor:
                if _sha256(descriptor, record.size + 1) == record.sha256:
                    continue
            self.check_unchanged()
            raise ModelFileError(
                f"{visible(str(path))}: the content is not what was saved, because its SHA-256 is "
                f"not that in {MANIFEST}. Copy the model again.",
                code="E_CHECKSUM",
            )
        for part in self._parts.values():
            part.verify()

    def check_unchanged(self) -> None:
        """Check that no other model was put in the place of this one since it was opened.

        What was read from a path that `file` gave belongs to this model if this holds afterwards.

        Raises:
            ModelFileError: ``E_MODEL_FILE`` if there was.
        """
        if not self.is_unchanged:
            raise incomplete(self.path, "it was removed or replaced since it was opened")

    @property
    def is_unchanged(self) -> bool:
        """Whether the folder that was opened is still in its place."""
        try:
            return _identity(self.path) == self._identity
        except ModelFileError:
            return False


def open_folder(path: Path, *, verify: bool = False) -> ModelFolder:
    """Open a model folder after checking its manifest and the set and sizes of its files.

    The time does not depend on the size of the files, unless they are verified. Nothing outside the
    folder is opened, but for the files of a model hub's cache, and no code from it runs.

    Args:
        path: The folder.
        verify: Whether to compare the checksums of all files as well.

    Raises:
        ModelFileError: ``E_NO_MODEL`` if there is no model, ``E_MANIFEST`` or ``E_MODEL_VERSION``
            if its manifest cannot be used, ``E_MODEL_FILE`` if its files are not those listed,
            ``E_CHECKSUM`` if one was changed.
    """
    path = Path(path)
    if not os.path.lexists(path / MANIFEST):
        raise _no_model(path)
    path = path.absolute()
    for _ in range(_ATTEMPTS):
        before = _identity(path)
        try:
            folder = _open(path, 0)
            if verify:
                folder.verify()
        except ModelFileError:
            if _identity(path) == before:
                raise
            continue  # half of what was read belongs to a model that was replaced just now
        if _identity(path) == before:
            return folder
    raise incomplete(path, "it is replaced again and again while it is opened")


def read_folder(
    path: Path, read: Callable[[ModelFolder], Result], *, verify: bool = False
) -> Result:
    """Return what is read from a model folder, all of it from the same model.

    A model that is replaced while it is read is read anew.

    Args:
        path: The folder.
        read: Reads the opened folder.
        verify: Whether to compare the checksums of all files first.

    Raises:
        ModelFileError: as `open_folder`, and ``E_MODEL_FILE`` if the model is replaced again and
            again.
    """
    for _ in range(_ATTEMPTS):
        folder = open_folder(path, verify=verify)
        try:
            found = read(folder)
        except Exception:
            if folder.is_unchanged:
                raise
            continue  # half of it was read from another model
        if folder.is_unchanged:
            return found
    raise incomplete(path, "it is replaced again and again while it is read")


def _open(path: Path, level: int, sharing: int = 0) -> ModelFolder:
    """Open a folder at some level of parts inside parts, and of folders that share others."""
    if level > MAX_LEVELS:
        raise incomplete(path, f"parts are nested deeper than {MAX_LEVELS}")
    identity = _identity(path)
    data = manifest_bytes(path)
    manifest = read_manifest(data, visible(str(path / MANIFEST)))
    check_entries(path, manifest)
    parts = {name: _open(path / PARTS / name, level + 1, sharing) for name in manifest.parts}
    for name, shared in manifest.shared.items():
        parts[name] = _open_beside(path, shared, level + 1, sharing + 1)
    fingerprint = hashlib.sha256(data).hexdigest()
    return ModelFolder(path, manifest, fingerprint, MappingProxyType(parts), identity)


def _open_beside(path: Path, shared: SharedPart, level: int, sharing: int) -> ModelFolder:
    """Open a part that lies beside a folder, if it is still the one that was meant."""
    beside = path.parent / shared.folder
    if sharing > MAX_SHARING:  # a chain of folders that share many others would take forever
        raise incomplete(path, f"more than {MAX_SHARING} models share parts one after the other")
    if not os.path.lexists(beside / MANIFEST):
        raise ModelFileError(
            f"{visible(str(path))}: a part of this model is the model folder "
            f'"{shared.folder}" beside it, which is missing. Put both into one folder, or install '
            "the package that they came with again.",
            code="E_SHARED_PART",
        )
    found = _open(beside, level, sharing)
    if found.fingerprint != shared.fingerprint:
        raise ModelFileError(
            f"{visible(str(beside))}: this is not the model that {visible(path.name)} was saved "
            "with and shares as a part. Install the package that they came with again.",
            code="E_SHARED_PART",
        )
    return found


def _identity(path: Path) -> _Identity:
    """Return what tells a folder from another one that takes its place."""
    try:
        folder, manifest = path.stat(), (path / MANIFEST).lstat()
    except OSError as error:
        raise unreadable(visible(str(path / MANIFEST)), error, "E_MODEL_FILE") from error
    # The number of a removed folder is given to new ones, so the manifest's time is needed too.
    return folder.st_dev, folder.st_ino, manifest.st_ino, manifest.st_mtime_ns


def _no_model(path: Path) -> ModelFileError:
    shown = visible(os.fspath(path))
    if not os.path.lexists(path):
        from treelm.store.staging import leftovers

        what = "there is no such folder"
        for leftover in leftovers(path):
            if (leftover / "old" / MANIFEST).exists():
                what = f"it was being replaced and stands in {visible(str(leftover / 'old'))}"
    elif path.is_dir():
        what = f"this folder contains no {MANIFEST}, so it is not a model"
    else:
        what = "this is a file, and a model is a folder"
        if any(suffix == ".arpa" for suffix in path.suffixes):
            name = path.name.partition(".arpa")[0] or "model"
            return ModelFileError(
                f"{shown}: this is an ARPA file, and a model is a folder. Make one of it with "
                f"`treelm convert {shown} {visible(name)}`, and use that.",
                code="E_NO_MODEL",
            )
    return ModelFileError(
        f"{shown}: {what}. Name the folder that a model was saved in.", code="E_NO_MODEL"
    )
