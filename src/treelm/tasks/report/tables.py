"""The tables of a report, and how they are written as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treelm.characters import visible
from treelm.tasks.report.results import Published, Result

COLUMNS = (
    "model",
    "metric",
    "data",
    "value",
    "n",
    "95 % interval",
    "p",
    "published",
    "published on",
    "source",
)
#: Columns of numbers, which are right-aligned.
NUMBERS = frozenset({"value", "n", "95 % interval", "published"})

UNCHECKED = "† not checked against the publication"
STAND_IN = (
    "The column data names what our numbers were measured on. Published numbers were measured on "
    "other data and are shown for orientation only."
)

_MARKDOWN = str.maketrans(
    {character: f"\\{character}" for character in "\\`*_[]|#"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)


@dataclass(frozen=True)
class TextTable:
    """A table of text, ready to be shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"{self.title}: every row needs {len(self.columns)} cells")


def result_tables(results: Iterable[Result], published: Iterable[Published]) -> list[TextTable]:
    """Return our numbers beside the published ones, in the order in which they were reported.

    A published number without one of ours is shown beside ``not run``.
    """
    ours: dict[str, dict[tuple[str, str], list[Result]]] = {}
    theirs: dict[str, dict[tuple[str, str], list[Published]]] = {}
    for result in results:
        key = (result.model, result.metric)
        ours.setdefault(result.table, {}).setdefault(key, []).append(result)
    for number in published:
        key = (number.model, number.metric)
        theirs.setdefault(number.table, {}).setdefault(key, []).append(number)
    return [
        TextTable(title, COLUMNS, tuple(_rows(ours.get(title, {}), theirs.get(title, {}))))
        for title in dict.fromkeys([*ours, *theirs])
    ]


def _rows(
    ours: dict[tuple[str, str], list[Result]], theirs: dict[tuple[str, str], list[Published]]
) -> Iterable[tuple[str, ...]]:
    for model, metric in dict.fromkeys([*ours, *theirs]):
        numbers = theirs.get((model, metric), [])
        beside = (
            "; ".join(number.shown_value for number in numbers) or "-",
            "; ".join(number.data for number in numbers) or "-",
            "; ".join(number.source for number in numbers) or "-",
        )
        for result in ours.get((model, metric), []):
            yield (
                model,
                metric,
                result.data,
                result.shown_value,
                str(result.n),
                result.shown_interval,
                result.shown_p,
                *beside,
            )
        if (model, metric) not in ours:
            yield (model, metric, "-", "not run", "-", "-", "-", *beside)


def notes(published: Sequence[Published]) -> list[str]:
    """Return the notes below tables with published numbers."""
    if not published:
        return []
    return [STAND_IN, *([] if all(number.checked for number in published) else [UNCHECKED])]


def markdown_table(table: TextTable) -> str:
    """Return a table as Markdown; cells stay cells, whatever they contain."""
    rule = ["---:" if column in NUMBERS else "---" for column in table.columns]
    lines = [_line(map(markdown_text, table.columns)), _line(rule)]
    lines += [_line(map(markdown_text, row)) for row in table.rows]
    return "\n".join([f"## {markdown_text(table.title)}", "", *lines, ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Examples:
        >>> print(markdown_text("<b>|*"))
        &lt;b&gt;\|\*
    """
    return visible(text).translate(_MARKDOWN)
