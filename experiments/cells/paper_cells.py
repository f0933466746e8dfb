"""Every table, figure and claim of the four papers, with what was measured here.

The catalogue is one TOML file per paper; figures are never written there, but looked up in the
results.json of the run that they name.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

HERE = Path(__file__).resolve().parent
EXPERIMENTS = HERE.parent
PAPERS = ("treelet", "hhmm", "composite", "lsvm")
VERDICTS = ("confirmed", "refuted", "open", "not testable here")
#: States of a cell.
MEASURED, SHOWN, NOT_RUN = "measured", "shown", "not run"
STATES = (MEASURED, SHOWN, NOT_RUN)

_KEYS = ("table", "model", "metric", "data")


@dataclass(frozen=True)
class Measurement:
    """A figure of a results.json, as it is shown.

    Args:
        place: The run: a folder under ``experiments``.
        label: What it was measured on.
        value: The figure.
        interval: Its 95 % interval; None where none was kept.
        digits: Decimal places shown.
        source: Table, model, metric and data of the result.
        scale: What the result is multiplied by.
    """

    place: str
    label: str
    value: float
    interval: tuple[float, float] | None
    digits: int
    source: tuple[str, ...]
    scale: float

    @property
    def text(self) -> str:
        """The figure and its interval."""
        if self.interval is None:
            return shown(self.value, self.digits)
        low, high = (shown(end, self.digits) for end in self.interval)
        return f"{shown(self.value, self.digits)} ({low} to {high})"


@dataclass(frozen=True)
class Reason:
    """Why cells were not run, and what it would take."""

    name: str
    why: str
    needs: str


@dataclass(frozen=True)
class Cell:
    """One cell of a paper.

    Args:
        row: Name of its row.
        column: Name of its column.
        published: The published figure as it is shown; empty for drawings and texts.
        state: One of `STATES`.
        ours: Our figures for it.
        places: Where a text or drawing is, relative to ``experiments``.
        reason: Why it was not run.
    """

    row: str
    column: str
    published: str
    state: str
    ours: tuple[Measurement, ...] = ()
    places: tuple[str, ...] = ()
    reason: Reason | None = None


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of a paper."""

    name: str
    title: str
    published_on: str
    conditions: str
    columns: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    rows: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]

    @property
    def has_unchecked(self) -> bool:
        """Whether a published figure could not be compared with the paper."""
        return any("†" in cell.published for cell in self.cells.values())


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what was found here."""

    text: str
    where: str
    verdict: str
    finding: str
    figures: tuple[Measurement, ...]


@dataclass(frozen=True)
class Paper:
    """All of a paper that can be measured."""

    name: str
    title: str
    folder: str
    tables: tuple[PaperTable, ...]
    claims: tuple[Claim, ...]
    reasons: tuple[Reason, ...]

    @property
    def cells(self) -> Iterator[Cell]:
        """All cells of all tables."""
        for table in self.tables:
            yield from table.cells.values()


@dataclass(frozen=True)
class Run:
    """A run whose figures are used, and its cost."""

    results: str
    what: str
    cost: str
    data: str


@dataclass(frozen=True)
class Counts:
    """How many cells and claims there are, by state.

    Args:
        cells: By state.
        without_interval: Measured cells without an interval.
        claims: By verdict.
    """

    cells: Mapping[str, int]
    without_interval: int
    claims: Mapping[str, int] = field(default_factory=dict)


def shown(value: float, digits: int) -> str:
    """Return a number as it is shown, with commas from ten thousand on.

    Examples:
        >>> shown(5444727, 0), shown(1402, 0), shown(-18.7, 1)
        ('5,444,727', '1402', '-18.7')
    """
    return f"{value:,.{digits}f}" if abs(value) >= 10_000 else f"{value:.{digits}f}"


@cache
def results_of(place: str) -> tuple[dict[str, Any], ...]:
    """Return the results of a run.

    Args:
        place: Its folder under ``experiments``.
    """
    path = EXPERIMENTS / place / "results.json"
    return tuple(json.loads(path.read_text(encoding="utf-8"))["results"])


def look_up(wanted: Mapping[str, Any], label: str = "", digits: int = 2) -> Measurement | None:
    """Return the one figure that a reference names, or None.

    Args:
        wanted: ``results``, ``table``, ``model``, ``metric`` and ``data``; perhaps ``digits`` and
            ``scale``.
        label: What it was measured on, in words.
        digits: Decimal places, unless the reference says.

    Raises:
        ValueError: if the reference is ambiguous or incomplete.
    """
    if missing := [key for key in ("results", *_KEYS) if key not in wanted]:
        raise ValueError(f"{wanted}: {', '.join(missing)} missing")
    place = wanted["results"]
    found = [row for row in results_of(place) if all(row[key] == wanted[key] for key in _KEYS)]
    if len(found) > 1:
        raise ValueError(f"{wanted}: {len(found)} results with these names")
    if not found:
        return None
    scale = wanted.get("scale", 1)
    interval = found[0]["interval"]
    return Measurement(
        place,
        label,
        scale * found[0]["value"],
        None if interval is None else (scale * interval[0], scale * interval[1]),
        wanted.get("digits", digits),
        tuple(wanted[key] for key in _KEYS),
        scale,
    )


def read_paper(name: str) -> Paper:
    """Return the catalogue of one paper, with all figures looked up.

    Raises:
        ValueError: for a cell that is neither measured, nor shown, nor given a reason; for one
            that is both; for a figure that is not in the results.
    """
    content = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    reasons = {
        key: Reason(key, own["why"], own["needs"])
        for key, own in content.get("reasons", {}).items()
    }
    tables = tuple(_table(each, reasons) for each in content["table"])
    used = {cell.reason.name for table in tables for cell in table.cells.values() if cell.reason}
    if unused := set(reasons) - used:
        raise ValueError(f"{name}: no cell has the reason {', '.join(sorted(unused))}")
    paper = content["paper"]
    return Paper(
        paper["name"],
        paper["title"],
        paper["folder"],
        tables,
        tuple(_claim(each) for each in content["claim"]),
        tuple(reasons.values()),
    )


def read_papers() -> tuple[Paper, ...]:
    """Return the catalogue of all papers."""
    return tuple(map(read_paper, PAPERS))


def read_runs() -> tuple[Run, ...]:
    """Return all runs with their costs."""
    content = tomllib.loads((HERE / "runs.toml").read_text(encoding="utf-8"))
    return tuple(Run(**each) for each in content["run"])


def counts(papers: Sequence[Paper]) -> Counts:
    """Return how many cells and claims are in which state."""
    cells = [cell for paper in papers for cell in paper.cells]
    found = Counter(cell.state for cell in cells)
    verdicts = Counter(claim.verdict for paper in papers for claim in paper.claims)
    return Counts(
        {state: found[state] for state in STATES},
        sum(
            cell.state == MEASURED and not any(own.interval for own in cell.ours) for cell in cells
        ),
        {verdict: verdicts[verdict] for verdict in VERDICTS},
    )


def _table(content: Mapping[str, Any], reasons: Mapping[str, Reason]) -> PaperTable:
    columns = tuple(content["columns"])
    labels = {
        column: tuple(own["label"] for own in content.get("ours", ()) if own["column"] == column)
        for column in columns
    }
    cells = {}
    for row in content["row"]:
        for place, column in enumerate(columns):
            cell = _cell(content, row, place, reasons)
            if cell is not None:
                cells[row["name"], column] = cell
    return PaperTable(
        content["name"],
        content["title"],
        content.get("published_on", ""),
        content.get("conditions", ""),
        columns,
        labels,
        tuple(row["name"] for row in content["row"]),
        cells,
    )


def _cell(
    table: Mapping[str, Any], row: Mapping[str, Any], place: int, reasons: Mapping[str, Reason]
) -> Cell | None:
    """Return a cell; None where the paper has none."""
    column, name = table["columns"][place], row["name"]
    published = row["published"][place] if "published" in row else ""
    if published == "-":
        return None
    ours = tuple(_measurements(table, row, column))
    places = tuple(row.get("shown", ()))
    missing = row.get("missing")
    if isinstance(missing, Mapping):
        missing = missing.get(column)
    where = f"{table['name']}, {name}, {column}"
    if bool(ours) + bool(places) + (missing is not None) != 1:
        raise ValueError(f"{where}: a cell is either measured, or shown, or not run for a reason")
    for path in places:
        if not (EXPERIMENTS / path.partition("#")[0]).exists():
            raise ValueError(f"{where}: {path} does not exist")
    text = "" if published == "" else _published(table, row, place)
    if missing is not None:
        return Cell(name, column, text, NOT_RUN, reason=reasons[missing])
    return Cell(name, column, text, MEASURED if ours else SHOWN, ours, places)


def _published(table: Mapping[str, Any], row: Mapping[str, Any], place: int) -> str:
    """Return a published figure with the decimals of its column, marked if it was not checked."""
    own = row["published"][place]
    column = [own] if "digits" in row else [each["published"][place] for each in table["row"]]
    usual = Counter(_decimals(value) for value in column if value != "-").most_common(1)[0][0]
    decimals = max(usual, _decimals(own))
    unchecked = row.get("unchecked", table.get("unchecked", False)) and not row.get("checked")
    return shown(own, decimals) + (" †" if unchecked else "")


def _decimals(value: float) -> int:
    return len(str(value).partition(".")[2]) if isinstance(value, float) else 0


def _measurements(
    table: Mapping[str, Any], row: Mapping[str, Any], column: str
) -> Iterator[Measurement]:
    digits = row.get("digits", table.get("digits", 2))
    own = [each for each in row.get("ours", ()) if each["column"] == column]
    for each in own:
        found = look_up(each, each["label"], digits)
        if found is None:
            raise ValueError(f"{table['name']}, {row['name']}: not in the results: {each}")
        yield found
    if own:
        return
    for number, each in enumerate(table.get("ours", ())):
        if each["column"] != column:
            continue
        model = row["models"][number] if "models" in row else row.get("model", row["name"])
        if not model:
            continue
        found = look_up({**each, "model": model}, each["label"], digits)
        if found is None:
            if "models" in row:
                raise ValueError(f"{table['name']}, {row['name']}: not in the results: {model}")
            continue
        yield found


def _claim(content: Mapping[str, Any]) -> Claim:
    if content["verdict"] not in VERDICTS:
        raise ValueError(f"{content['text']}: {content['verdict']} is no verdict")
    figures = {}
    for name, own in content.get("figures", {}).items():
        found = look_up({**content.get("from", {}), **own})
        if found is None:
            raise ValueError(f"{content['text']}: not in the results: {name}")
        figures[name] = found
    used = {name for _, name, _, _ in Formatter().parse(content["finding"]) if name}
    if used != set(figures):
        raise ValueError(f"{content['text']}: figures and finding differ: {used ^ set(figures)}")
    finding = content["finding"].format(**{name: own.text for name, own in figures.items()})
    return Claim(
        content["text"], content["where"], content["verdict"], finding, tuple(figures.values())
    )
