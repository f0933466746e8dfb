"""Figures of earlier runs, from the tables of a README to a results.json.

    python experiments/cells/copied_tables.py [--check]

The reports of the first runs were not kept; the READMEs have their tables, copied from the reports.
This script reads the tables that ``copied.toml`` names and writes their figures as results.json
beside each README, with the keys that a report has. A recipe that is run again may replace the file
by that of its own report.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXPERIMENTS = HERE.parent
FORMAT = "treelm-copied-results"

_NUMBER = r"[+-]?[\d,]*\.?\d+"
_CELL = re.compile(
    rf"(?P<value>{_NUMBER})(?P<unit>M| %|)"
    rf"(?: [(\[](?P<low>{_NUMBER})(?: to |, )(?P<high>{_NUMBER})[)\]])?"
)
_INTERVAL = re.compile(rf"(?P<low>{_NUMBER})(?: to |, )(?P<high>{_NUMBER})")
_UNITS = {"": 1.0, " %": 1.0, "M": 1e6}

Record = dict[str, Any]


def number(text: str) -> float:
    """Return a number as tables write it.

    Examples:
        >>> number("1,794"), number("-0.5")
        (1794.0, -0.5)
    """
    return float(text.replace(",", ""))


def read_cell(text: str) -> tuple[float, list[float] | None] | None:
    """Return the value and the interval of a cell; None for a cell without a figure.

    Examples:
        >>> read_cell("0.646 (0.634 to 0.658)")
        (0.646, [0.634, 0.658])
        >>> read_cell("-18.7 % [-20.2, -17.1]"), read_cell("5.0M")
        ((-18.7, [-20.2, -17.1]), (5000000.0, None))
        >>> read_cell("not run") is None
        True
    """
    found = _CELL.fullmatch(text.replace("**", "").strip())
    if found is None:
        return None
    scale = _UNITS[found["unit"]]
    interval = None
    if found["low"] is not None:
        interval = [scale * number(found["low"]), scale * number(found["high"])]
    return scale * number(found["value"]), interval


def tables_of(text: str) -> list[list[list[str]]]:
    """Return the tables of a Markdown text as rows of cells, the line under the head left out."""
    tables: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            tables.append([])
        inside = True
        cells = [cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")]
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            tables[-1].append([cell.replace("¦", "|").replace("\\_", "_") for cell in cells])
    return tables


def records_of(rows: Sequence[Sequence[str]], wanted: Mapping[str, Any]) -> list[Record]:
    """Return the figures of one table.

    Args:
        rows: The table, its head first.
        wanted: What the columns hold: an entry of ``copied.toml``.

    Raises:
        ValueError: for a column without any figure, which tells that the table has changed.
    """
    found: list[Record] = []
    for place, column in wanted["columns"].items():
        own = [
            record
            for row in rows[1:]
            if (record := _record(row, int(place), wanted, column)) is not None
        ]
        if not own:
            raise ValueError(f"{wanted['head']}: no figure in column {place}")
        found += own
    return found


def _record(
    row: Sequence[str], place: int, wanted: Mapping[str, Any], column: Mapping[str, Any]
) -> Record | None:
    text = row[place] if place < len(row) else ""
    if "first" in column:
        text = text.split(", ")[0]
    cell = read_cell(text)
    if cell is None:
        return None
    value, interval = cell
    if "interval" in column:
        ends = _INTERVAL.fullmatch(row[column["interval"]])
        interval = None if ends is None else [number(ends["low"]), number(ends["high"])]
    names = {**{key: wanted[key] for key in ("table", "metric", "data", "model") if key in wanted}}
    names |= {key: column[key] for key in ("table", "metric", "data", "model") if key in column}
    names[wanted.get("rows", "model")] = row[0]
    if "second" in wanted:
        names[wanted["second"]] = row[1]
    return {
        "table": names["table"],
        "model": names["model"],
        "metric": names["metric"],
        "data": names["data"],
        "value": value,
        "n": column.get("n", wanted.get("n")),
        "interval": interval,
        "p": None,
        "baseline": None,
        "significant": None,
    }


def copied_results() -> dict[Path, str]:
    """Return the text of every results.json that is made from a README.

    Raises:
        ValueError: if a table is missing or there twice.
    """
    files: dict[Path, Record] = {}
    entries = tomllib.loads((HERE / "copied.toml").read_text(encoding="utf-8"))["table"]
    for wanted in entries:
        page = EXPERIMENTS / wanted["page"]
        matching = [
            rows
            for rows in tables_of(page.read_text(encoding="utf-8"))
            if " | ".join(rows[0]).startswith(wanted["head"])
        ]
        if len(matching) <= wanted.get("which", 0):
            raise ValueError(f"{page.name}: no table begins with {wanted['head']}")
        path = page.parent / wanted.get("file", "results.json")
        content = files.setdefault(
            path,
            {
                "format": FORMAT,
                "version": 1,
                "recipe": page.parent.name,
                "copied": "from the tables of the pages in this folder, which were copied from the "
                "reports of the last runs; figures have the digits of the tables",
                "results": [],
            },
        )
        content["results"] += records_of(matching[wanted.get("which", 0)], wanted)
    return {path: json_lines(content) for path, content in files.items()}


def json_lines(content: Record) -> str:
    """Return JSON with one result per line, so that changes can be read."""
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in content["results"])
    head = json.dumps({k: v for k, v in content.items() if k != "results"}, ensure_ascii=False)
    return f'{head[:-1]}, "results": [\n{rows}\n]}}\n'


def main() -> int:
    """Write the files, or say which ones are out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    check = parser.parse_args().check
    stale = 0
    for path, text in copied_results().items():
        if check:
            stale += path.read_text(encoding="utf-8") != text
        else:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(EXPERIMENTS), text.count('"table"'))
    return min(stale, 1)


if __name__ == "__main__":
    sys.exit(main())
