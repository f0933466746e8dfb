"""Files in and out."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from treelm.corpus.files import read_blocks, read_lines, write_atomically
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
