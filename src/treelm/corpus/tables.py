"""Tables that people have: separated by tabs, ``.csv`` as spreadsheets write it, ``.parquet``."""

from __future__ import annotations

import csv
import hashlib
import math
from typing import Any

from treelm.corpus.corpus import hashed_blocks
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, lines_of, read_blocks, source_name
from treelm.errors import CorpusFormatError
from treelm.extras import import_extra

#: A row: its line in the file, or its number where there are no lines, and its cells.
NumberedRow = tuple[int, tuple[object, ...]]


def read_table(source: Source, code: str, digest: hashlib._Hash | None = None) -> list[NumberedRow]:
    r"""Return the rows of a table, the header first; rows without anything are left out.

    Cells are text, in parquet what the column has.

    Args:
        source: Tab-separated and never quoted, unless its name ends in ``.csv`` (commas, semicolons
            or tabs, quoted where needed) or ``.parquet``.
        code: Of the error for a damaged table.
        digest: Hashes what is read.

    Raises:
        CorpusFormatError: for what is not such a table.

    Examples:
        >>> from treelm.corpus.files import Content
        >>> read_table(Content("t.csv", b'item;word\n\n1;"a;b"\n'), "E_STIMULI")
        [(1, ('item', 'word')), (3, ('1', 'a;b'))]
    """
    name = source_name(source)
    if name.endswith(".parquet"):
        frame = _parquet(source, name, code, digest)
        return list(enumerate([tuple(frame.columns), *frame.rows()], 1))
    is_csv = name.removesuffix(".gz").endswith(".csv")
    wanted = Wanted.CSV if is_csv else Wanted.TABLE
    lines = list(lines_of(hashed_blocks(source, digest, wanted), source))
    rows: list[NumberedRow]
    if is_csv:
        # Where numbers have commas, programs write semicolons, or tabs, and still call it .csv.
        separator = max(",;\t", key=lines[0].count) if lines else ","
        # With their ends, so that a cell of two lines does not join their words.
        reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
        try:
            rows = [(reader.line_num, tuple(row)) for row in reader]
        except csv.Error as error:
            number = reader.line_num
            raise CorpusFormatError(
                f"{name}:{number}: not a comma-separated table ({error}). Is a quote missing?",
                code=code,
                path=name,
                line=number,
            ) from error
    else:
        rows = [(number, tuple(line.split("\t"))) for number, line in enumerate(lines, 1)]
    return [(number, row) for number, row in rows if any(str(cell).strip() for cell in row)]


def text_of(cell: object) -> str:
    """Return a cell as text; nothing where there is none, as data frames say it.

    Examples:
        >>> text_of(3), text_of(None), text_of(float("nan"))
        ('3', '', '')
    """
    is_missing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    return "" if is_missing or (isinstance(cell, float) and math.isnan(cell)) else str(cell)


def _parquet(source: Source, name: str, code: str, digest: hashlib._Hash | None) -> Any:
    polars = import_extra("polars", "Reading parquet")
    content = b"".join(read_blocks(source))
    if digest is not None:
        digest.update(content)
    try:
        return polars.read_parquet(content)
    except Exception as error:  # of many kinds, none of which is public
        raise CorpusFormatError(
            f"{name}: not a parquet file ({error}).", code=code, path=name
        ) from error
