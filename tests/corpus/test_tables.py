"""Tables as spreadsheets, data frames and shell tools write them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from treelm.corpus.files import Content
from treelm.corpus.tables import read_table, text_of
from treelm.errors import CorpusFormatError, InputFileError


def test_tables_rows_have_their_lines() -> None:
    table = Content("t.tsv", b'item\tword\n\n1\t"\n \t\n2\tx y\n')
    assert read_table(table, "E_X") == [(1, ("item", "word")), (3, ("1", '"')), (5, ("2", "x y"))]


def test_tables_of_csv_have_quotes_and_cells_of_two_lines() -> None:
    table = Content("t.csv", b'item;word\n1;"a;b"\n2;"c\nd"\n3;e\n')
    assert read_table(table, "E_X") == [
        (1, ("item", "word")),
        (2, ("1", "a;b")),
        (4, ("2", "c\nd")),
        (5, ("3", "e")),
    ]


def test_tables_of_csv_with_an_open_quote_are_refused() -> None:
    table = Content("t.csv", b'item,word\n1,"a\n' + b"1,word\n" * 40_000)
    with pytest.raises(CorpusFormatError, match=r"t.csv:\d+: .* Is a quote missing") as caught:
        read_table(table, "E_X")
    assert caught.value.code == "E_X"


def test_tables_of_parquet_keep_the_types_of_their_cells(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "t.parquet"
    polars.DataFrame({"item": [7], "word": ["a"], "time": [None]}).write_parquet(path)
    digest = hashlib.sha256()
    assert read_table(path, "E_X", digest) == [
        (1, ("item", "word", "time")),
        (2, (7, "a", None)),
    ]
    assert digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(InputFileError, match="no such file"):
        read_table(tmp_path / "none.parquet", "E_X")


def test_tables_missing_cells_are_no_words() -> None:
    pandas = pytest.importorskip("pandas")
    missing = [None, float("nan"), pandas.NA, pandas.NaT]
    assert [text_of(cell) for cell in missing] == [""] * 4
    assert [text_of(cell) for cell in (0, 1.5, "nan", False)] == ["0", "1.5", "nan", "False"]
