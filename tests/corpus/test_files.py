"""Files in and out."""

from __future__ import annotations

import bz2
import gzip
import lzma
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.files import lines_of, read_blocks, read_lines, write_atomically
from treelm.errors import CorpusFormatError, InputFileError, TreelmError

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_are_read_by_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix]("eins\nzwei drei\r\nfünf".encode()))
    assert list(read_lines(path)) == ["eins", "zwei drei", "fünf"]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_are_written_by_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    with write_atomically(path) as file:
        file.write(b"one\ntwo\n")
    assert list(read_lines(path)) == ["one", "two"]
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_lines_cut_across_blocks_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "text"
    text = "é" * 5000 + "\n" + "ß" * 7000 + "\n\n" + "x"
    path.write_text(text, encoding="utf-8")
    assert b"".join(read_blocks(path, block_bytes=7)).decode() == text
    assert list(read_lines(path)) == text.split("\n")


_PIECES = ("one", "\u00e9t\u00e9", " ", "\n", "\n\n", "\r\n", "\r", "\ufeff", "\u2028", "\x85")


@given(
    st.lists(st.sampled_from([piece.encode() for piece in _PIECES] + [b"\xff"]), max_size=20),
    st.lists(st.integers(0, 60), max_size=5),
)
def test_lines_do_not_depend_on_blocks(pieces: list[bytes], cuts: list[int]) -> None:
    """However a text is cut, its lines and the first invalid one are those of one line at a time."""
    text = b"".join(pieces)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    blocks = [text[first:last] for first, last in pairwise(places)]
    assert b"".join(blocks) == text
    whole = text.split(b"\n")
    expected: list[str] = []
    bad = None
    for number, line in enumerate(whole[:-1] if not whole[-1] else whole, 1):
        plain = line.removeprefix("\ufeff".encode()) if number == 1 else line
        try:
            expected.append(plain.removesuffix(b"\r").decode())
        except UnicodeDecodeError as error:
            bad = (number, error.start + 1)
            break
    lines = lines_of(blocks, "text")
    found = [next(lines) for _ in expected]
    assert found == expected
    if bad is None:
        assert next(lines, None) is None
        return
    with pytest.raises(CorpusFormatError) as caught:
        next(lines)
    assert (caught.value.line, caught.value.column) == bad


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfword\n")
    assert list(read_lines(path)) == ["word"]


def test_invalid_utf8_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"good\nna\xefve\n")
    with pytest.raises(CorpusFormatError) as caught:
        list(read_lines(path))
    error = caught.value
    assert (error.code, error.line, error.column) == ("E_ENCODING", 2, 3)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_damaged_compression_is_an_input_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](bytes(range(256)) * 1000)[:-20])
    with pytest.raises(InputFileError) as caught:
        list(read_blocks(path))
    assert caught.value.code == "E_COMPRESSION"
    assert path.name in str(caught.value)


def test_missing_files_and_folders_are_input_errors(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none", "E_NO_FILE"), (tmp_path, "E_FOLDER")):
        with pytest.raises(InputFileError) as caught:
            list(read_blocks(path))
        assert caught.value.code == code


def test_failed_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), write_atomically(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(TreelmError, match="folder exist") as caught,
        write_atomically(tmp_path / "missing" / "out"),
    ):
        pass
    assert caught.value.code == "E_OUTPUT"
