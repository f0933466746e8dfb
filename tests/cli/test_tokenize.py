"""`treelm tokenize`: raw text to Penn tokens."""

from __future__ import annotations

import bz2
from pathlib import Path

from tests.command_line import (
    assert_fine,
    assert_refused,
    finish,
    read_answer,
    start_treelm,
    treelm,
)

TEXT = b"""\
Mr. Smith (a doctor) didn't come. "No," he
said.

It was 5 p.m. already.
"""
TOKENS = b"""\
Mr. Smith -LRB- a doctor -RRB- did n't come .
`` No , '' he said .

It was 5 p.m. already .
"""


def test_tokenize_splits_sentences_and_keeps_documents_apart() -> None:
    assert assert_fine(treelm("tokenize", stdin=TEXT)) == TOKENS
    assert assert_fine(treelm("tokenize", "-", stdin=TEXT)) == TOKENS


def test_tokenize_no_split_keeps_lines() -> None:
    done = treelm("tokenize", "--no-split", stdin=b"Yes. No.\nWhy\nnot?\n\nx\n")
    assert assert_fine(done) == b"Yes . No .\nWhy\nnot ?\n\nx\n"


def test_tokenize_several_files_and_output(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"One.\n")
    (tmp_path / "b.txt.bz2").write_bytes(bz2.compress(b"Two.\n"))
    done = treelm("tokenize", "a.txt", "b.txt.bz2", "-o", "out.txt", cwd=tmp_path)
    assert assert_fine(done) == b""
    lines = (tmp_path / "out.txt").read_bytes().split(b"\n")
    assert [line for line in lines if line] == [b"One .", b"Two ."]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt.bz2", "out.txt"]


def test_tokenize_line_ends_and_byte_order_mark() -> None:
    done = treelm("tokenize", "--no-split", stdin=b"\xef\xbb\xbfA dog.\r\nA cat.\r\n")
    assert assert_fine(done) == b"A dog .\nA cat .\n"


def test_tokenize_nothing_gives_nothing() -> None:
    note = b"treelm: warning: no sentence was read.\n"
    assert assert_fine(treelm("tokenize"), note) == b""


def test_tokenize_invalid_text_has_a_place(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"fine\nna\xefve\n")
    done = treelm("tokenize", "x.txt", "-o", "out.txt", cwd=tmp_path)
    assert_refused(done, 3, "x.txt:2:3", "UTF-8", "iconv")
    assert not (tmp_path / "out.txt").exists()


def test_tokenize_line_buffered_answers_before_the_input_ends() -> None:
    process = start_treelm("tokenize", "--no-split", "--line-buffered")
    assert process.stdin is not None
    try:
        process.stdin.write(b"A dog.\n")
        process.stdin.flush()
        assert read_answer(process) == b"A dog .\n"
    finally:
        done = finish(process)
    assert_fine(done)
