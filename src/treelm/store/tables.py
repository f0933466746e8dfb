"""Tables of numbers in a file, used in place: the safetensors format, mapped and never copied.

A file is the length of the header (8 bytes, little-endian), the header (JSON: name -> dtype, shape
and offsets), and the data. We write it ourselves so that arrays stream to disk without a copy and
the data begins at a multiple of 64 bytes; the `safetensors` library reads the result. Nothing a
file says is believed before it is checked.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from treelm.characters import visible
from treelm.corpus.files import COMPRESSION, write_atomically
from treelm.errors import ModelFileError
from treelm.store.untrusted import excerpt, open_regular, parse_json, read_exactly

#: The data begins at a multiple of this: a cache line, and enough for any vector instruction.
ALIGNMENT = 64
#: A header of thousands of tables is smaller; what is larger is no table of ours.
MAX_HEADER_BYTES = 1 << 20
MAX_DIMENSIONS = 32

#: Types by their name in a file.
DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

_METADATA = "__metadata__"
_LENGTH_BYTES = 8
_LARGEST = (1 << 63) - 1
_WRITE_BYTES = 16 << 20


def write_tables(
    path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays to a file that appears under its name only when it is complete.

    Tables are stored by falling item size, otherwise in the order given. Arrays that lie in memory
    as they will lie in the file are written without a copy, others piece by piece.

    Args:
        path: The file; its name must not end as that of a compressed file does.
        tensors: Arrays of booleans, integers, or floats of 16, 32 or 64 bits.
        metadata: Strings kept in the header, for people.

    Raises:
        OutputFileError: if the file cannot be written; what stood there is unchanged.
        ValueError: for names, types or sizes that the format cannot hold.
    """
    path = Path(path).absolute()  # a file called "-" is a file
    if path.suffix in COMPRESSION:
        raise ValueError(f"{path.name}: tables are mapped, so they cannot be compressed")
    arrays = {name: np.asanyarray(array) for name, array in tensors.items()}
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    header = _header({name: arrays[name] for name in names}, metadata)
    with write_atomically(path) as file:
        file.write(len(header).to_bytes(_LENGTH_BYTES, "little"))
        file.write(header)
        place = _LENGTH_BYTES + len(header)
        for name in names:
            _write_array(file, arrays[name], place)
            place += arrays[name].nbytes


def _header(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None) -> bytes:
    entries: dict[str, object] = {}
    if metadata:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ValueError("metadata must map strings to strings")
        entries[_METADATA] = dict(metadata)
    place = 0
    for name, array in arrays.items():
        if not isinstance(name, str) or not name or name == _METADATA:
            raise ValueError(f"{name!r} cannot be the name of a table")
        dtype = _NAMES.get(array.dtype.newbyteorder("<"))
        if dtype is None or array.ndim > MAX_DIMENSIONS:
            raise ValueError(f"{name}: cannot store {array.ndim} dimensions of {array.dtype}")
        offsets = [place, place + array.nbytes]
        entries[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": offsets}
        place += array.nbytes
    header = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + _LENGTH_BYTES) % ALIGNMENT)
    if len(header) > MAX_HEADER_BYTES:
        raise ValueError(f"a header of {len(header)} bytes: too many tables or too much metadata")
    parse_json(header)  # what is written can be read
    return header


def _write_array(file: BinaryIO, array: NDArray[Any], place: int) -> None:
    """Write an array that begins at a place of the file.

    Pieces end where a page of any size may end, so that systems that keep files in large pages, if
    these are written at once, do so: look-ups in a mapped table are faster then.
    """
    if not array.size:
        return
    stored = array.dtype.newbyteorder("<")
    in_place = array.flags.c_contiguous and array.dtype == stored
    items = array.reshape(-1) if in_place else array.flat
    first = (_WRITE_BYTES - place % _WRITE_BYTES) // stored.itemsize
    ends = range(first, array.size, _WRITE_BYTES // stored.itemsize)
    forget = getattr(array, "forget", None)  # of arrays that lie in a temporary file
    for start, end in pairwise([0, *ends, array.size]):  # between pieces signals are answered
        piece = items[start:end].astype(stored, copy=False)
        file.write(piece.view(np.uint8).data)
        if forget is not None:
            forget()


class _Place(NamedTuple):
    """Where a table lies: its type, its shape, and its first byte in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


class Tables(Mapping[str, NDArray[Any]]):
    """Arrays by name, read-only, mapped from a file; made by `open_tables`.

    An array keeps the file mapped for as long as it lives, also when the file is replaced or
    removed meanwhile. Values are whatever the file holds: only their place was checked.

    Args:
        path: The file they come from.
        metadata: The strings of its header.
        places: Where each table lies.
        data: The mapped file.
    """

    __slots__ = ("_data", "_places", "metadata", "path")

    def __init__(
        self, path: Path, metadata: dict[str, str], places: dict[str, _Place], data: mmap.mmap
    ) -> None:
        self.path = path
        self.metadata = metadata
        self._places = places
        self._data = data

    def __getitem__(self, name: str) -> NDArray[Any]:
        dtype, shape, start = self._places[name]
        return np.ndarray(shape, dtype, buffer=self._data, offset=start)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"Tables({str(self.path)!r}, {len(self)} tables)"


def open_tables(path: Path) -> Tables:
    """Map a file of tables after checking every claim of its header.

    The time does not depend on the size of the data, which is not looked at.

    Raises:
        ModelFileError: ``E_MODEL_TABLES`` if the file is missing, or not exactly what its header
            says: cut, overlapping, with holes, misaligned, or no tables at all.
    """
    path = Path(path)
    try:
        with open_regular(path, "E_MODEL_TABLES") as descriptor:
            size = os.fstat(descriptor).st_size
            header, start = _read_header(descriptor, size)
            metadata = _read_metadata(header.pop(_METADATA, {}))
            places = _check_places(header, start, size)
            data = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
            return Tables(path, metadata, places, data)
    except (ValueError, OverflowError) as error:
        raise ModelFileError(
            f"{visible(str(path))}: {error}. The file is damaged or holds no tables of treelm; "
            "copy or train the model again.",
            code="E_MODEL_TABLES",
        ) from error


def _read_header(descriptor: int, size: int) -> tuple[dict[str, object], int]:
    """Return the header as it stands and the place of the first byte of data."""
    if size < _LENGTH_BYTES:
        raise ValueError(f"{size} bytes are too few for a header")
    length = int.from_bytes(read_exactly(descriptor, _LENGTH_BYTES), "little")
    start = _LENGTH_BYTES + length
    if length > MAX_HEADER_BYTES or start > size:
        raise ValueError(f"a header of {length} bytes is claimed in a file of {size} bytes")
    text = read_exactly(descriptor, start)[_LENGTH_BYTES:]
    if text[:1] != b"{":
        raise ValueError("the header does not start with a brace")
    try:
        header = parse_json(text)
    except ValueError as error:
        raise ValueError(f"the header is malformed: {error}") from error
    return cast("dict[str, object]", header), start  # what starts with a brace is an object


def _read_metadata(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("the metadata is not made of strings")
    return value


def _check_places(header: dict[str, object], start: int, size: int) -> dict[str, _Place]:
    """Return where the tables lie, in that order; together they fill the file exactly."""
    claims = sorted(
        (_claim(excerpt(name), entry, name) for name, entry in header.items()),
        key=lambda claim: claim[1:3],
    )
    places = {}
    expected = 0
    for name, begin, end, dtype, shape in claims:
        if begin != expected:
            what = "overlaps the one before it" if begin < expected else "leaves a hole before it"
            raise ValueError(f'the table "{excerpt(name)}" {what}')
        if (start + begin) % dtype.itemsize:
            raise ValueError(f'the table "{excerpt(name)}" is not aligned to its item size')
        places[name] = _Place(dtype, shape, start + begin)
        expected = end
    if start + expected != size:
        raise ValueError(f"the tables end at byte {start + expected}, the file at byte {size}")
    return places


def _claim(
    shown: str, entry: object, name: str
) -> tuple[str, int, int, np.dtype[Any], tuple[int, ...]]:
    """Return name, offsets, type and shape of a table, which agree with each other."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f'the table "{shown}" has not exactly dtype, shape and data_offsets')
    dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise ValueError(f'the table "{shown}" has the unknown type {excerpt(entry["dtype"])}')
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS:
        raise ValueError(f'the table "{shown}" has an impossible shape')
    # Beside a zero other sizes may still be larger than any array can be.
    if math.prod(filter(None, shape)) * dtype.itemsize > _LARGEST:
        raise ValueError(f'the table "{shown}" has an impossible shape')
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f'the table "{shown}" has impossible offsets')
    begin, end = offsets
    needed = math.prod(shape) * dtype.itemsize
    if end - begin != needed:
        raise ValueError(
            f'the table "{shown}" needs {needed} bytes and claims those from {begin} to {end}'
        )
    return name, begin, end, dtype, tuple(shape)


def _are_sizes(value: object) -> bool:
    """Return whether this is a list of integers (booleans are none) from 0 to 2^63 - 1."""
    return isinstance(value, list) and all(
        type(item) is int and 0 <= item <= _LARGEST for item in value
    )
