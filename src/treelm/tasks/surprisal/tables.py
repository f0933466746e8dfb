"""Surprisal tables as bytes, in the formats that other programs read."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Literal

from treelm import _native
from treelm.extras import import_extra
from treelm.tasks.surprisal.rows import COLUMNS, Numbers, SentenceRows, SurprisalRow

TableFormat = Literal["tsv", "csv", "jsonl", "parquet", "itemmeasures", "minicons"]


def table_lines(
    sentences: Iterable[Sequence[SurprisalRow]],
    form: TableFormat = "tsv",
    measures: Sequence[str] = (),
) -> Iterator[bytes]:
    r"""Yield a table as bytes, the rows of one sentence at a time (parquet: all at the end).

    Args:
        sentences: The rows.
        measures: Names of the columns after those that every model has.
        form: ``tsv`` without any quoting, because ``"`` is a word; ``csv`` quoted where needed;
            ``jsonl`` one object per row; ``parquet``; ``itemmeasures``, the space-separated table
            of modelblocks; ``minicons``, one JSON list of words and bits per sentence.

    Examples:
        >>> row = SurprisalRow(1, 1, 1, '"', 1.0, -0.6931, False)
        >>> b"".join(table_lines([[row]])).decode().splitlines()[1]
        '1\t1\t1\t"\t1.0\t-0.6931\t0'
    """
    if form == "parquet":
        yield _parquet(sentences, measures)
        return
    header = ""
    if form in _SEPARATORS:
        columns = _ITEM_COLUMNS if form == "itemmeasures" else COLUMNS
        header = _SEPARATORS[form].join((*columns, *measures)) + "\n"
    for rows in sentences:
        # Not before the first row: what fails before it must not look like an empty result.
        yield (header + _WRITERS[form](SentenceRows.of(rows), measures)).encode()
        header = ""


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def _texts(values: Numbers) -> list[str]:
    """Return numbers as `repr` writes them."""
    return _native.numbers_text(values).split("\n")[:-1]


def _tsv(rows: SentenceRows, measures: Sequence[str]) -> str:
    del measures
    start = f"{rows.doc_id}\t{rows.sent_id}\t"
    numbers = _texts(rows.surprisal), _texts(rows.log_prob), rows.oov.tolist()
    columns = zip(range(1, len(rows) + 1), rows.words, *numbers, strict=True)
    lines = [f"{start}{n}\t{word}\t{bits}\t{log}\t{oov:d}" for n, word, bits, log, oov in columns]
    if rows.measures:
        besides = map("\t".join, zip(*map(_texts, rows.measures), strict=True))
        lines = [f"{line}\t{extra}" for line, extra in zip(lines, besides, strict=True)]
    return "\n".join(lines) + "\n" if lines else ""


def _csv(rows: SentenceRows, measures: Sequence[str]) -> str:
    del measures
    size = len(rows)
    numbers = _texts(rows.surprisal), _texts(rows.log_prob), map(int, rows.oov.tolist())
    places = repeat(rows.doc_id, size), repeat(rows.sent_id, size), range(1, size + 1)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        zip(*places, rows.words, *numbers, *map(_texts, rows.measures), strict=True)
    )
    return text.getvalue()


def _jsonl(rows: SentenceRows, measures: Sequence[str]) -> str:
    lines = []
    for row in rows:
        found = dict(zip((*COLUMNS, *measures), (*row[: len(COLUMNS)], *row.measures), strict=True))
        finite = {
            name: _number(value) if isinstance(value, float) else value
            for name, value in found.items()
        }
        lines.append(json.dumps(finite, ensure_ascii=False) + "\n")
    return "".join(lines)


def _itemmeasures(rows: SentenceRows, measures: Sequence[str]) -> str:
    # modelblocks counts sentences from 0 and positions from 1.
    del measures
    places = (f"{rows.sent_id - 1} {place} {rows.doc_id}" for place in range(1, len(rows) + 1))
    columns = zip(rows.words, places, *map(_texts, (rows.surprisal, *rows.measures)), strict=True)
    return "".join(" ".join(cells) + "\n" for cells in columns)


def _minicons(rows: SentenceRows, measures: Sequence[str]) -> str:
    del measures
    pairs = list(zip(rows.words, map(_number, rows.surprisal.tolist()), strict=True))
    return json.dumps(pairs, ensure_ascii=False) + "\n"


def _parquet(sentences: Iterable[Sequence[SurprisalRow]], measures: Sequence[str]) -> bytes:
    polars = import_extra("polars", "Writing parquet")
    rows = [row for sentence in sentences for row in sentence]
    columns: dict[str, list[object]] = {
        name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)
    }
    for place, name in enumerate(measures):
        columns[name] = [row.measures[place] for row in rows]
    kinds = (polars.Int64,) * 3 + (polars.String, polars.Float64, polars.Float64, polars.Boolean)
    kinds += (polars.Float64,) * len(measures)
    file = io.BytesIO()
    schema = dict(zip((*COLUMNS, *measures), kinds, strict=True))
    polars.DataFrame(columns, schema=schema).write_parquet(file)
    return file.getvalue()


_ITEM_COLUMNS = ("word", "sentid", "sentpos", "docid", "totsurp")
_SEPARATORS = {"tsv": "\t", "csv": ",", "itemmeasures": " "}
_WRITERS = {
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "itemmeasures": _itemmeasures,
    "minicons": _minicons,
}
