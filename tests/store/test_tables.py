"""Tables are written as safetensors files and come back in place, unchanged and unwritable."""

from __future__ import annotations

import gc
import io
import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors import safe_open

from treelm.errors import ModelFileError, OutputFileError
from treelm.store import tables as tables_module
from treelm.store.tables import ALIGNMENT, DTYPES, MAX_HEADER_BYTES, open_tables, write_tables

Arrays = dict[str, NDArray[Any]]
NAMES = st.text(min_size=1, max_size=12).filter(
    lambda name: name != "__metadata__" and name.isprintable()
)


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Draw an array of any type that can be stored, in any memory layout and byte order."""
    dtype = draw(st.sampled_from(list(DTYPES.values())))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    data = draw(st.binary(min_size=256 * 8, max_size=256 * 8))
    count = int(np.prod(shape, dtype=int))
    array = np.frombuffer(data, np.uint8 if dtype.kind == "b" else dtype)[:count].reshape(shape)
    if dtype.kind == "b":
        array = array > 127
    layout = draw(st.sampled_from(["plain", "transposed", "strided", "swapped", "reversed"]))
    if layout == "transposed":
        return array.T
    if layout == "strided":
        return np.repeat(array[None], 2, axis=0)[::2][0] if array.ndim else array
    if layout == "swapped":
        return array.astype(array.dtype.newbyteorder(">"))
    return array[::-1] if layout == "reversed" and array.ndim else array


def assert_same(found: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        assert found[name].dtype == stored.dtype
        assert found[name].shape == stored.shape
        assert found[name].tobytes() == stored.tobytes()  # NaN equals itself only as bytes


def split(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a file and where its data begins."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), 8 + length


@given(tensors=st.dictionaries(NAMES, arrays(), max_size=6))
def test_tables_round_trip_and_the_library_agrees(
    tmp_path_factory: pytest.TempPathFactory, tensors: Arrays
) -> None:
    path = tmp_path_factory.mktemp("tables") / "tables.safetensors"
    write_tables(path, tensors)
    assert_same(open_tables(path), tensors)
    assert_same(safetensors.numpy.load_file(path), tensors)


@given(tensors=st.dictionaries(NAMES, arrays(), max_size=6))
def test_tables_reads_what_the_library_writes(
    tmp_path_factory: pytest.TempPathFactory, tensors: Arrays
) -> None:
    path = tmp_path_factory.mktemp("tables") / "library.safetensors"
    plain = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        for name, array in tensors.items()
    }
    safetensors.numpy.save_file(plain, path, metadata={"by": "the library"})
    tables = open_tables(path)
    assert_same(tables, plain)
    assert tables.metadata == {"by": "the library"}


@pytest.mark.parametrize("name", DTYPES)
def test_tables_every_type(tmp_path: Path, name: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(DTYPES[name])
    write_tables(tmp_path / "t", {"x": array})
    assert split(tmp_path / "t")[0]["x"]["dtype"] == name
    assert_same(open_tables(tmp_path / "t"), {"x": array})
    assert_same(safetensors.numpy.load_file(tmp_path / "t"), {"x": array})


@pytest.mark.parametrize("dtype", ["c8", "O", "U3", "M8[s]", "i4,f8", "S1"])
def test_tables_other_types_are_refused(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(ValueError, match="cannot store"):
        write_tables(tmp_path / "t", {"x": np.zeros(2, dtype)})
    assert not list(tmp_path.iterdir())


def test_tables_layout_data_is_aligned_sorted_and_without_gaps(tmp_path: Path) -> None:
    tensors: Arrays = {
        "bytes": np.arange(3, dtype=np.uint8),
        "halves": np.arange(5, dtype=np.float16),
        "first": np.arange(7, dtype=np.float64),
        "words": np.arange(3, dtype=np.uint32),
        "second": np.arange(2, dtype=np.int64),
    }
    for count in range(70):  # whatever the length of the header
        write_tables(tmp_path / "t", tensors, {"pad": "x" * count})
        header, start = split(tmp_path / "t")
        assert start % ALIGNMENT == 0
        del header["__metadata__"]
        assert list(header) == ["first", "second", "words", "halves", "bytes"]
        offsets = [entry["data_offsets"] for entry in header.values()]
        assert [begin for begin, _ in offsets] == [0, *(end for _, end in offsets)][:-1]
        assert start + offsets[-1][1] == (tmp_path / "t").stat().st_size


def test_tables_are_mapped_and_read_only(tmp_path: Path) -> None:
    write_tables(tmp_path / "t", {"x": np.arange(10), "empty": np.zeros((0, 3)), "one": np.int8(3)})
    tables = open_tables(tmp_path / "t")
    for array in tables.values():
        assert not array.flags.writeable
        assert array.flags.aligned
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert not tables["x"].flags.owndata
    assert np.shares_memory(tables["x"], tables["x"])
    assert tables["empty"].shape == (0, 3)
    assert tables["one"].shape == ()


def test_tables_arrays_outlive_tables_and_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_tables(path, {"x": np.arange(100_000)})
    array = open_tables(path)["x"]
    gc.collect()
    write_tables(path, {"x": np.zeros(100_000, int)})
    assert array[-1] == 99_999
    path.unlink()
    assert array.sum() == 99_999 * 50_000


def test_tables_is_a_mapping(tmp_path: Path) -> None:
    write_tables(tmp_path / "t", {"x": np.arange(2), "y": np.arange(3)}, {"who": "ferry"})
    tables = open_tables(tmp_path / "t")
    assert (len(tables), list(tables), "x" in tables, "z" in tables) == (2, ["x", "y"], True, False)
    assert tables.metadata == {"who": "ferry"}
    assert "2 tables" in repr(tables)
    with pytest.raises(KeyError):
        tables["z"]
    with safe_open(tmp_path / "t", "np") as file:
        assert file.metadata() == {"who": "ferry"}


def test_tables_without_any_table(tmp_path: Path) -> None:
    write_tables(tmp_path / "t", {})
    assert dict(open_tables(tmp_path / "t")) == {}
    assert safetensors.numpy.load_file(tmp_path / "t") == {}


def test_tables_larger_than_a_piece(tmp_path: Path) -> None:
    """Arrays are written piece by piece, whether or not they lie as they will be stored."""
    plain = np.arange(5_000_000, dtype=np.uint64).reshape(1000, 5000)
    tensors = {"plain": plain, "transposed": plain.T, "swapped": plain.astype(">u8")}
    write_tables(tmp_path / "t", tensors)
    tables = open_tables(tmp_path / "t")
    for name, array in tensors.items():
        assert np.array_equal(tables[name], array)


def test_tables_pieces_end_where_large_pages_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of a file end at multiples of their size, so that systems can keep large pages."""
    sizes: list[int] = []

    class Recorder(io.BytesIO):
        def write(self, data: Any) -> int:
            sizes.append(memoryview(data).nbytes)
            return super().write(data)

    recorder = Recorder()
    monkeypatch.setattr(tables_module, "write_atomically", lambda path: nullcontext(recorder))
    large, small = np.arange(6_000_000, dtype=np.uint64), np.arange(9, dtype=np.uint8)
    write_tables(tmp_path / "t", {"large": large, "small": small})
    ends = np.cumsum(sizes)
    assert ends[-1] == len(recorder.getvalue())
    assert np.count_nonzero(ends % (1 << 21) == 0) == large.nbytes // (16 << 20)
    (tmp_path / "t").write_bytes(recorder.getvalue())
    assert np.array_equal(open_tables(tmp_path / "t")["large"], large)


@pytest.mark.parametrize("name", ["", "__metadata__", 3, None])
def test_tables_impossible_names(tmp_path: Path, name: Any) -> None:
    with pytest.raises(ValueError, match="name of a table"):
        write_tables(tmp_path / "t", {name: np.arange(2)})


def test_tables_impossible_metadata_and_too_many_tables(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="strings"):
        write_tables(tmp_path / "t", {}, {"n": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="too many"):
        write_tables(tmp_path / "t", {"x" * MAX_HEADER_BYTES: np.arange(2)})
    with pytest.raises(ValueError, match="lists and objects"):
        write_tables(tmp_path / "t", {f"{i:x}": np.zeros((), np.uint8) for i in range(17_000)})
    with pytest.raises(ValueError, match="compressed"):
        write_tables(tmp_path / "t.gz", {})
    assert not list(tmp_path.iterdir())


def test_tables_failed_write_leaves_what_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_tables(path, {"x": np.arange(2)})
    before = path.read_bytes()
    with pytest.raises(OutputFileError):
        write_tables(tmp_path / "missing" / "t", {"x": np.arange(2)})
    with pytest.raises(ValueError, match="cannot store"):
        write_tables(path, {"x": np.arange(2), "y": np.array([object()])})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_tables_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no such file") as caught:
        open_tables(tmp_path / "t")
    assert (caught.value.code, caught.value.exit_code) == ("E_MODEL_TABLES", 3)
