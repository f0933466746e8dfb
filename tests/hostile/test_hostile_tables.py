"""Files of tables that are cut, forged or something else: refused, quickly and politely."""

from __future__ import annotations

import json
import os
import pickle
import resource
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.command_line import SANITIZED, processor_time_below
from tests.hostile.inputs import refused_at_once

from treelm.errors import ModelFileError
from treelm.store.tables import MAX_HEADER_BYTES, open_tables, write_tables


def refused(path: Path, code: str, *parts: str) -> None:
    """Check that tables are refused at once with a message fit for a terminal."""
    with refused_at_once(code, *parts):
        open_tables(path)


# -- the file as a whole -------------------------------------------------------------------------


def forge(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    """Write a file of tables with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    claimed = len(text) if length is None else length
    path.write_bytes(claimed.to_bytes(8, "little") + text + data)
    return path


def entry(dtype: object = "U8", shape: object = (4,), offsets: object = (0, 4)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_hostile_tables_truncated_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_tables(path, {"x": np.arange(9), "y": np.ones(7, np.uint8)})
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ModelFileError) as caught:
            open_tables(path)
        assert caught.value.code == "E_MODEL_TABLES"


@pytest.mark.parametrize("extra", [b"\0", b"\0" * 64, b"PK\x03\x04", b"{}"])
def test_hostile_tables_trailing_bytes(tmp_path: Path, extra: bytes) -> None:
    path = tmp_path / "t"
    write_tables(path, {"x": np.arange(9)})
    path.write_bytes(path.read_bytes() + extra)
    refused(path, "E_MODEL_TABLES", "the file at byte")


def test_hostile_tables_every_flipped_byte_of_the_header(tmp_path: Path) -> None:
    """Whatever a damaged header says, it is refused or describes arrays inside the file."""
    path = tmp_path / "t"
    write_tables(path, {"x": np.arange(3), "y": np.ones((2, 2), np.float32)})
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for place in range(start):
        for flip in (1, 0x10, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            try:
                tables = open_tables(path)
            except ModelFileError as error:
                assert error.code == "E_MODEL_TABLES"  # noqa: PT017
                continue
            assert sum(array.nbytes for array in tables.values()) == len(data) - start


@pytest.mark.parametrize(
    "length",
    [0, 1, MAX_HEADER_BYTES + 1, 1 << 31, 1 << 32, 1 << 62, 1 << 63, (1 << 64) - 1, (1 << 64) - 8],
)
def test_hostile_tables_forged_header_length(tmp_path: Path, length: int) -> None:
    refused(forge(tmp_path / "t", {"x": entry()}, b"1234", length), "E_MODEL_TABLES")


def test_hostile_tables_header_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with path.open("wb") as file:  # a hole of a terabyte needs no space
        file.write((1 << 39).to_bytes(8, "little") + b"{")
        file.truncate(1 << 40)
    refused(path, "E_MODEL_TABLES", "claimed")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"null",
        b'"x"',
        b" {}",
        b"\xef\xbb\xbf{}",
        b"{}\0",
        b"{} x",
        b"{",
        b'{"x": NaN}',
        b'{"x":' * 10_000,
        b'{"x":' + b"[" * 1_000_000,
        b'{"x": ' + b"9" * 100_000 + b"}",
        b'{"\xff": 1}',
        b'{"x": {"dtype":"U8","shape":[0],"data_offsets":[0,0]},' * 2,
        b'{"__metadata__": {"a": "b", "a": "c"}}',
        b'{"__metadata__": {"a": 1}}',
        b'{"__metadata__": ["a"]}',
        b'{"__metadata__": null}',
    ],
    ids=lambda header: repr(header)[:30],
)
def test_hostile_tables_header_is_no_header(tmp_path: Path, header: bytes) -> None:
    refused(forge(tmp_path / "t", header), "E_MODEL_TABLES")


def test_hostile_tables_duplicate_names(tmp_path: Path) -> None:
    one = json.dumps(entry()).encode()
    for name in (b'"x"', b'"\\u0078"'):
        header = b'{"x":' + one + b"," + name + b":" + one + b"}"
        refused(forge(tmp_path / "t", header, b"1234"), "E_MODEL_TABLES", "twice")
    header = b'{"x":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    refused(forge(tmp_path / "t", header, b"1234"), "E_MODEL_TABLES", "twice")


# -- what the header claims ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "claim",
    [
        3,
        None,
        [],
        {},
        {"dtype": "U8", "shape": [4]},
        entry() | {"extra": 1},
        entry(dtype="BF16"),
        entry(dtype="F8_E4M3"),
        entry(dtype="u8"),
        entry(dtype="O"),
        entry(dtype="|V4"),
        entry(dtype=""),
        entry(dtype=None),
        entry(dtype=["U8"]),
        entry(dtype={"U8": 1}),
        entry(dtype="\x1b[31m" * 1000),
        entry(dtype="U16"),
        entry(dtype="F64"),
        entry(shape=None),
        entry(shape=4),
        entry(shape="4"),
        entry(shape=[5]),
        entry(shape=[3]),
        entry(shape=[-4]),
        entry(shape=[-2, -2]),
        entry(shape=[4.0]),
        entry(shape=[True, 4]),
        entry(shape=["4"]),
        entry(shape=[None]),
        entry(shape=[[4]]),
        entry(shape=[4] + [1] * 40),
        entry(shape=[1] * 100_000),
        entry(shape=[1 << 62]),
        entry(shape=[1 << 63]),
        entry(shape=[1 << 64, 4]),
        entry(shape=[(1 << 64) + 4]),
        entry(shape=[1 << 32, 1 << 32]),  # a product that is 0 in 64 bits
        entry(shape=[(1 << 63) + 2, 2]),  # a product that is 4 in 64 bits
        entry(shape=[10**4000]),
        entry(shape=[0], offsets=[0, 4]),
        entry(shape=[0, 1 << 62, 1 << 62], offsets=[0, 0]),
        entry(offsets=None),
        entry(offsets=[0]),
        entry(offsets=[0, 4, 4]),
        entry(offsets=[4, 0]),
        entry(offsets=[-4, 0]),
        entry(offsets=[0, 4.0]),
        entry(offsets=["0", "4"]),
        entry(offsets=[False, 4]),
        entry(offsets=[1, 5]),
        entry(offsets=[0, 1 << 40]),
        entry(offsets=[1 << 63, (1 << 63) + 4]),
        entry(offsets=[(1 << 64) - 4, 1 << 64]),
        entry(offsets={"0": 0, "1": 4}),
    ],
    ids=lambda claim: str(claim)[:50],
)
def test_hostile_tables_forged_claims(tmp_path: Path, claim: object) -> None:
    refused(forge(tmp_path / "t", {"x": claim}, b"1234"), "E_MODEL_TABLES")


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ([(0, 4), (0, 4)], "overlaps"),
        ([(0, 4), (2, 8)], "overlaps"),
        ([(0, 8), (2, 4)], "overlaps"),
        ([(0, 2), (4, 8)], "hole"),
        ([(4, 8)], "hole"),
        ([(0, 4)], "end at byte"),
        ([(0, 4), (4, 12)], "end at byte"),
        ([(0, 4), (4, 8), (5, 5)], "overlaps"),
        ([(0, 4), (4, 8), (9, 9)], "hole"),
        ([], "end at byte"),
    ],
)
def test_hostile_tables_overlaps_and_holes(
    tmp_path: Path, claims: list[tuple[int, int]], reason: str
) -> None:
    header = {
        f"t{number}": entry(shape=[end - begin], offsets=[begin, end])
        for number, (begin, end) in enumerate(claims)
    }
    refused(forge(tmp_path / "t", header, b"12345678"), "E_MODEL_TABLES", reason)


def test_hostile_tables_misaligned(tmp_path: Path) -> None:
    header = {"a": entry(shape=[1], offsets=[0, 1]), "b": entry("F64", [1], [1, 9])}
    refused(forge(tmp_path / "t", header, b"123456789"), "E_MODEL_TABLES", "aligned")
    text = json.dumps({"b": entry("F64", [1], [0, 8])}).encode()
    for padding in range(8):
        path = forge(tmp_path / "t", text + b" " * padding, b"12345678")
        if (len(text) + padding) % 8:
            refused(path, "E_MODEL_TABLES", "aligned")
        else:
            assert open_tables(path)["b"].flags.aligned


def test_hostile_tables_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    for name in ("\x1b[2J\n\r", "\u202e", "\ud800", "x" * 100_000, "", "../../etc/passwd"):
        refused(forge(tmp_path / "t", {name: entry(shape=[5])}, b"1234"), "E_MODEL_TABLES")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more memory than the limit")
def test_hostile_tables_huge_sparse_file_opens_in_little_memory(tmp_path: Path) -> None:
    """A file of 64 GiB is mapped, not read."""
    path = forge(tmp_path / "t", {"x": entry("U8", [1 << 36], [0, 1 << 36])})
    os.truncate(path, path.stat().st_size + (1 << 36))
    with processor_time_below(1):
        assert open_tables(path)["x"].nbytes == 1 << 36


def test_hostile_tables_too_large_to_map(tmp_path: Path) -> None:
    path = forge(tmp_path / "t", {"x": entry("U8", [1 << 36], [0, 1 << 36])})
    os.truncate(path, path.stat().st_size + (1 << 36))
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 35, before[1]))
    try:
        refused(path, "E_MODEL_TABLES", "cannot be read")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("kind", ["folder", "link", "dangling", "fifo", "socket", "device", "nul"])
def test_hostile_tables_no_regular_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    write_tables(tmp_path / "good", {"x": np.arange(3)})
    bound = socket.socket(socket.AF_UNIX)
    if kind == "folder":
        path.mkdir()
    elif kind in ("link", "dangling"):
        path.symlink_to("good" if kind == "link" else "missing")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = Path.cwd()
        os.chdir(tmp_path)  # names of sockets are short
        bound.bind("t")
        os.chdir(here)
    else:
        path = Path("/dev/zero") if kind == "device" else tmp_path / "a\0b"
    with pytest.raises(ModelFileError) as caught:
        open_tables(path)
    assert caught.value.code == "E_MODEL_TABLES"
    bound.close()


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


def test_hostile_tables_pickle_in_disguise(tmp_path: Path) -> None:
    target, path = tmp_path / "executed", tmp_path / "t"
    payload = pickle.dumps(Payload(target))
    path.write_bytes(payload)
    refused(path, "E_MODEL_TABLES")
    with path.open("wb") as file:
        np.save(file, np.array([Payload(target)], dtype=object), allow_pickle=True)
    refused(path, "E_MODEL_TABLES")
    with path.open("wb") as file:
        np.savez(file, x=np.arange(3))
    refused(path, "E_MODEL_TABLES")
    forge(path, {"x": entry("U8", [len(payload)], [0, len(payload)])}, payload)
    assert open_tables(path)["x"].tobytes() == payload  # bytes, and nothing but bytes
    assert not target.exists()
