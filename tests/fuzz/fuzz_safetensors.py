"""Fuzz target: files of tables. Whatever is accepted lies inside the file, every byte of it once."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.campaign import Target, run_program
from tests.fuzz.mutation import EDGES, Random, length_prefix, mutate_json

from treelm.store.tables import DTYPES, open_tables

HEADERS: tuple[dict[str, object], ...] = (
    {},
    {"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}},
    {
        "__metadata__": {"made": "by hand"},
        "slots": {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]},
        "index": {"dtype": "U32", "shape": [5], "data_offsets": [48, 68]},
        "none": {"dtype": "I16", "shape": [0, 7], "data_offsets": [68, 68]},
        "flags": {"dtype": "BOOL", "shape": [], "data_offsets": [68, 69]},
    },
)
TOKENS = [f'"{name}"'.encode() for name in DTYPES] + [
    b'"dtype":', b'"shape":', b'"data_offsets":', b'"__metadata__":', b'"x":', b'"F128"', b"[]", b"{}",
    b"[0,0]", b"[0]", b"0", b"true", b"null", b"1e3", b"NaN", b"\\ud800", b"\xff", b",", b":", b'"', b" ",
    length_prefix(0), length_prefix(1 << 20), length_prefix(-1), length_prefix(1 << 63),
]  # fmt: skip

_folder = tempfile.TemporaryDirectory(
    prefix="fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
)
_PATH = Path(_folder.name) / "tables"
_DESCRIPTOR = os.open(_PATH, os.O_RDWR | os.O_CREAT)


def file_of(header: object, data: int, random: Random | None = None) -> bytes:
    """Return a file with a header and so many bytes of data."""
    text = json.dumps(header, separators=(",", ":")).encode()
    if random is None or not random.chance(4):
        text += b" " * (-(len(text) + 8) % 64)
    length = len(text)
    if random is not None and random.chance(30):
        length = random.pick((length + 1, length - 1, random.pick(EDGES)))
    return length_prefix(length) + text + bytes(data)


def forge(random: Random) -> bytes:
    """Return a file with a few changed values in its header, and mostly as much data as it had."""
    header: object = tight(random) if random.chance(2) else random.pick(HEADERS)
    needed = bytes_of(header)
    for _ in range(random.below(3)):
        header = mutate_json(header, random)
    return file_of(header, needed if random.below(6) else random.below(200), random)


def tight(random: Random) -> dict[str, object]:
    """Return tables that fit each other, in any order and of any shape."""
    made: dict[str, object] = {}
    place = 0
    for number in range(1 + random.below(5)):
        dtype = random.pick(list(DTYPES))
        shape = [random.below(4) for _ in range(random.pick((0, 1, 1, 2, 3, 32, 33)))]
        size = DTYPES[dtype].itemsize
        for length in shape:
            size *= length
        if size > 2000:
            shape, size = [0, random.pick(EDGES)], 0
        made[f"t{number}"] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    return dict(sorted(made.items(), key=lambda item: random.below(100)))


def bytes_of(header: object) -> int:
    """Return how much data a header speaks of, as far as it says anything sensible."""
    ends = [0]
    for entry in header.values() if isinstance(header, dict) else ():
        offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
        if isinstance(offsets, list) and offsets and type(offsets[-1]) is int:
            ends.append(offsets[-1])
    return min(max(ends), 4096)


def read(data: bytes) -> None:
    """Open the tables and read every byte of them."""
    os.ftruncate(_DESCRIPTOR, len(data))
    os.pwrite(_DESCRIPTOR, data, 0)
    tables = open_tables(_PATH)
    seen = 0
    for name in tables:
        array = tables[name]
        assert not array.flags.writeable
        assert array.flags.aligned
        seen += len(array.tobytes())
    for value in tables.metadata.values():
        assert isinstance(value, str)
    header = int.from_bytes(data[:8], "little")
    assert 8 + header + seen == len(data)


SEEDS = [file_of(header, bytes_of(header)) for header in HEADERS]
TARGET = Target("safetensors", read, SEEDS, TOKENS, forge)

if __name__ == "__main__":
    sys.exit(run_program(TARGET))
