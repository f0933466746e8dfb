"""What a terminal shows: progress bars on standard error, tables, widths."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from treelm.characters import visible
from treelm.parallel.progress import SILENT, Progress, Step

#: Numbers below this would be shown as 0.
_SMALLEST_SHOWN = 0.00005

if TYPE_CHECKING:
    from rich.progress import Progress as RichBar
    from rich.progress import TaskID


class _RichStep:
    def __init__(self, bar: RichBar, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def advance(self, amount: float, *, note: str | None = None) -> None:
        if note is not None:
            self._bar.update(self._task, description=note)
        self._bar.advance(self._task, amount)


class RichProgress:
    """A bar with rate and remaining time, on standard error."""

    @contextmanager
    def step(
        self, description: str, *, total: float | None = None, unit: str = ""
    ) -> Iterator[Step]:
        """Open a bar for one piece of work; units of ``B`` are shown as bytes."""
        from rich import progress as rich_progress
        from rich.console import Console

        counts = (
            [rich_progress.DownloadColumn(), rich_progress.TransferSpeedColumn()]
            if unit == "B"
            else [rich_progress.MofNCompleteColumn(), rich_progress.TextColumn(unit)]
        )
        bar = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.BarColumn(),
            *counts,
            rich_progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with bar:
            yield _RichStep(bar, bar.add_task(description, total=total))


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is there and shown to a person."""
    return stream is not None and stream.isatty()


def terminal_progress() -> Progress:
    """Return a bar if standard error is a terminal, else the silent one."""
    return RichProgress() if is_terminal(sys.stderr) else SILENT


def picture_width() -> int | None:
    """Return the columns a picture may take: those of the terminal, unlimited in a file or pipe."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def write_record(record: Mapping[str, object], *, as_json: bool) -> None:
    """Write one summary to standard output: one JSON object, or a name and a value per line."""
    if as_json:
        # JSON knows no infinity.
        known = {name: None if _is_infinite(value) else value for name, value in record.items()}
        sys.stdout.write(json.dumps(known) + "\n")
        return
    width = max(map(len, record), default=0)
    for name, value in record.items():
        sys.stdout.write(f"{name.replace('_', ' '):<{width}}  {shown(value)}\n")


def write_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to standard output: the first column flush left, the others flush right."""
    lines = [tuple(columns), *(tuple(map(shown, row)) for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        sys.stdout.write("  ".join([f"{first:<{widths[0]}}", *cells]) + "\n")


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def shown(value: object) -> str:
    """Return a value as summaries show it: numbers with four digits after the point.

    Examples:
        >>> shown(0.25), shown(0.0), shown(3.2e-9), shown(None)
        ('0.2500', '0.0000', '3.2e-09', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        # A p-value that is very small is not 0.
        return f"{value:.1e}" if 0 < abs(value) < _SMALLEST_SHOWN else f"{value:.4f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(key)} {shown(item)}" for key, item in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return " ".join(shown(item) for item in value) or "-"
    return visible(str(value))
