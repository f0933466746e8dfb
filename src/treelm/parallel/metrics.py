"""What many workers took: one line of JSON for every phase of the work."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from treelm.errors import OutputFileError

if TYPE_CHECKING:
    from treelm.parallel.executor import Executor

#: Name of the file in the folder of a training.
METRICS = "metrics.jsonl"
#: A shard that takes so many times as long as the median is a straggler.
STRAGGLER = 2.0


class ShardUse(NamedTuple):
    """What a worker took for a shard."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    """The most memory that the worker has had so far."""
    worker: str


def peak_bytes() -> int:
    """Return the most memory that this process has had, or 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


@dataclass
class Metrics:
    """Writes what phases took to a file; an executor tells it.

    Args:
        path: The file; lines are added to what it has.
        engine: What does the work.
        workers: Number of workers; None for as many as there is room for.
        threads: Number of threads of each.
    """

    path: Path
    engine: str
    workers: int | None
    threads: int
    _phase: tuple[str, str] = ("", "")
    _amount: float = 0.0
    _uses: list[ShardUse] = field(default_factory=list)
    _deaths: int = 0
    _sent_bytes: int = 0
    _began: float = 0.0

    def phase(self, description: str, unit: str) -> None:
        """Name what is done next."""
        self._phase = description, unit

    def advance(self, amount: float) -> None:
        """Count what is done of a phase."""
        self._amount += amount

    def begin(self, function_bytes: int) -> None:
        """Begin a map of a function that goes to every worker."""
        self._sent_bytes = function_bytes
        self._uses, self._deaths, self._amount = [], 0, 0.0
        self._began = time.monotonic()

    def done(self, use: ShardUse) -> None:
        """Count a shard."""
        self._uses.append(use)

    def died(self) -> None:
        """Count the death of a worker."""
        self._deaths += 1

    def end(self) -> None:
        """Write the map that was begun."""
        seconds = [use.seconds for use in self._uses]
        median = statistics.median(seconds) if seconds else 0.0
        wall = time.monotonic() - self._began
        description, unit = self._phase
        self.write(
            {
                "phase": description,
                "engine": self.engine,
                "workers": self.workers,
                "threads": self.threads,
                "seconds": wall,
                "shards": len(seconds),
                "amount": self._amount,
                "unit": unit,
                "amount_per_second": self._amount / wall if wall > 0 else 0.0,
                "shard_seconds": {
                    "min": min(seconds, default=0.0),
                    "median": median,
                    "max": max(seconds, default=0.0),
                },
                "processor_seconds": sum(use.processor_seconds for use in self._uses),
                "stragglers": sum(each > STRAGGLER * median for each in seconds),
                "workers_seen": len({use.worker for use in self._uses}),
                "deaths": self._deaths,
                "function_bytes": self._sent_bytes,
                "worker_peak_bytes": max((use.peak_bytes for use in self._uses), default=0),
                "peak_bytes": peak_bytes(),
            }
        )
        self._phase = "", ""

    def write(self, record: Mapping[str, object]) -> None:
        """Add a line.

        Raises:
            OutputFileError: if it cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            self.path.parent.mkdir(exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"time": now, **record}) + "\n")
        except OSError as error:
            raise OutputFileError(
                f"{self.path}: what the work takes cannot be written ({error.strerror})."
            ) from error


def read_metrics(folder: Path) -> list[dict[str, object]]:
    """Return the lines of a training's metrics, of which the last may be cut off."""
    found: list[dict[str, object]] = []
    try:
        lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return found
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


@contextmanager
def measured(executor: Executor, folder: Path | None) -> Iterator[Metrics | None]:
    """Let an executor write what its work takes to a file in a folder, while it is used.

    Args:
        executor: Does the work.
        folder: Where the file is; None for none.
    """
    if folder is None:
        yield None
        return
    workers = getattr(executor, "workers", 1)
    threads = executor.threads or 1
    metrics = Metrics(folder / METRICS, executor.name, workers, threads)
    if executor.threads is None:  # it works for all of this process
        yield metrics
        return
    before, executor.observer = executor.observer, metrics
    try:
        yield metrics
    finally:
        executor.observer = before


def own_name() -> str:
    """Return what tells this process from those of all machines."""
    return f"{os.uname().nodename}:{os.getpid()}"
