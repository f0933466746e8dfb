"""Processor seconds of programs and of calls, in turns, so that other work troubles all alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Use:
    """What a program took: processor seconds (user and system), seconds, and its largest memory."""

    seconds: float
    wall: float
    megabytes: float


@dataclass(frozen=True)
class Spread:
    """The median of several rounds, and the smallest and the largest of them."""

    median: float
    smallest: float
    largest: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Return the spread of some measurements."""
        return Spread(statistics.median(values), min(values), max(values))

    def rate(self, events: float) -> Spread:
        """Return events per second, for a spread of seconds."""
        return Spread(events / self.median, events / self.largest, events / self.smallest)


def run_program(
    command: Sequence[str | Path],
    *,
    cores: str | None = None,
    stdin: Path | None = None,
    log: Path | None = None,
) -> Use:
    """Run a program on the given cores, or where this process may run; return what it took.

    Raises:
        CalledProcessError: if it fails.
    """
    pinned = [] if cores is None else ["taskset", "-c", cores]
    line = [*pinned, *map(str, command)]
    with (
        Path(stdin or os.devnull).open("rb") as source,
        Path(log or os.devnull).open("ab") as written,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(line, stdin=source, stdout=written, stderr=written)
        # Not resource.getrusage: its memory is that of the largest program so far.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, line)
    return Use(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)


def call_seconds(work: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turns(works: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Spread]:
    """Call all of some works, one after the other, in several rounds; each returns its seconds."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(work())
    return {name: Spread.of(seconds) for name, seconds in found.items()}
