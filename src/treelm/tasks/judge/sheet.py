"""The sheet that raters fill in: CSV, which everybody can open.

Columns are ``item``, ``source`` (where there is one), ``left``, ``right``, ``preference``,
``rater`` and ``comment``. A rater writes ``left``, ``right`` or ``none`` under ``preference``; an
empty cell is a missing rating.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, TypeVar

from treelm.characters import visible
from treelm.corpus.files import Source, read_lines, source_name
from treelm.errors import CorpusFormatError

Choice = Literal["left", "right", "none"]

REQUIRED = ("item", "preference")
ALLOWED = ("item", "source", "left", "right", "preference", "rater", "comment")
#: With a byte order mark spreadsheets recognize UTF-8.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Spreadsheets run a cell that starts with one of these, so it gets an apostrophe first.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SHOWN = 40
_CHOICES: dict[str, Choice] = {"left": "left", "right": "right", "none": "none"}
T = TypeVar("T")


class Row(NamedTuple):
    """What raters see of a pair."""

    item: str
    source: str | None
    left: str
    right: str


class Rating(NamedTuple):
    """What one rater said about one row, and where it was read."""

    item: str
    rater: str
    choice: Choice
    place: str


def sheet_bytes(rows: Iterable[Row], *, with_source: bool) -> bytes:
    """Return a sheet to be filled in."""
    shown = [name for name in ALLOWED if name != "source" or with_source]
    return table_bytes(
        shown,
        (
            [row.item, *([row.source or ""] if with_source else []), row.left, row.right]
            for row in rows
        ),
    )


def table_bytes(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """Return a table in which the cells that rows do not have are to be filled in."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for item, *shown in rows:
        empty = [""] * (len(columns) - 1 - len(shown))
        writer.writerow([item, *map(_harmless, shown), *empty])
    return _BYTE_ORDER_MARK + text.getvalue().encode()


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def read_ratings(source: Source) -> Iterator[Rating]:
    """Yield the ratings in a sheet that was filled in; fields may be split by comma, ; or tab.

    A row without a rater belongs to a rater with the name of the file.

    Raises:
        CorpusFormatError: ``E_JUDGEMENTS`` with file and line for anything malformed.
    """
    reading = SheetReader(source, required=REQUIRED, allowed=ALLOWED)
    for row in reading.rows():
        choice = reading.answer(row, "preference", _CHOICES)
        if choice is not None:
            yield Rating(row["item"], reading.rater(row), choice, reading.place)


class SheetReader:
    """Reads one sheet that was filled in and keeps track of the line.

    Args:
        source: The file; fields may be split by comma, ; or tab.
        required: Columns that must be there.
        allowed: All columns that may be there.
    """

    def __init__(self, source: Source, *, required: Sequence[str], allowed: Sequence[str]) -> None:
        self._source = source
        self._name = source_name(source)
        self._required, self._allowed = required, allowed
        self._line = 1

    @property
    def place(self) -> str:
        """File and line of the row that was read last."""
        return f"{self._name}:{self._line}"

    def fail(self, message: str) -> NoReturn:
        """Refuse the row that was read last.

        Raises:
            CorpusFormatError: ``E_JUDGEMENTS`` with file and line.
        """
        raise CorpusFormatError(
            f"{self.place}: {message}", code="E_JUDGEMENTS", path=self._name, line=self._line
        )

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield the cells of each row by column.

        Raises:
            CorpusFormatError: ``E_JUDGEMENTS`` with file and line for anything malformed.
        """
        lines = read_lines(self._source)
        first = next(lines, None)
        if first is None:
            self.fail("the file is empty. Is it the right one?")
        separator = max(",;\t", key=first.count)
        reader = csv.reader(
            _with_ends(first, lines), delimiter=separator, strict=True, skipinitialspace=False
        )
        columns = self._columns([name.strip() for name in next(self._rows(reader))])
        for fields in self._rows(reader):
            if not any(map(str.strip, fields)):
                continue  # spreadsheets add empty rows
            if len(fields) != len(columns):
                self.fail(
                    f"the row has {len(fields)} fields, but there are {len(columns)} columns. A "
                    "text with commas or quotes must be in quotes."
                )
            row = dict(zip(columns, map(str.strip, fields), strict=True))
            if not row["item"]:
                self.fail("the row has no item. Leave that column as it was exported.")
            yield row

    def rater(self, row: Mapping[str, str]) -> str:
        """Return who rated a row; without a name that of the file."""
        return row.get("rater") or Path(self._name).name.split(".")[0]

    def answer(self, row: Mapping[str, str], column: str, known: Mapping[str, T]) -> T | None:
        """Return what a cell says, None if it is empty.

        Raises:
            CorpusFormatError: ``E_JUDGEMENTS`` for anything that is not one of the known answers.
        """
        cell = row[column]
        if cell and cell.lower() not in known:
            *others, last = known
            self.fail(
                f'the {column} is "{visible(cell[:_SHOWN])}"; it must be {", ".join(others)} or '
                f"{last}, or empty where nothing was rated."
            )
        return known.get(cell.lower())

    def _rows(self, reader: Iterator[list[str]]) -> Iterator[list[str]]:
        while True:
            self._line = reader.line_num + 1  # type: ignore[attr-defined]
            try:
                fields = next(reader, None)
            except csv.Error as error:
                self._line = max(self._line, reader.line_num)  # type: ignore[attr-defined]
                self.fail(f"this is not CSV ({error}).")
            if fields is None:
                return
            yield fields

    def _columns(self, found: Sequence[str]) -> Sequence[str]:
        for name in self._required:
            if name not in found:
                self.fail(f"there is no column {name}. Is this a sheet of `treelm judge export`?")
        for name in found:
            if name not in self._allowed:
                self.fail(
                    f'there is a column "{visible(name[:_SHOWN])}", but a sheet has only '
                    f"{', '.join(self._allowed)}. Notes belong under comment."
                )
            if found.count(name) > 1:
                self.fail(f"there are two columns {name}.")
        return found


def _with_ends(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield f"{first}\n"
    for line in rest:
        yield f"{line}\n"
