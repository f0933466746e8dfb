"""Counts of pieces as files of sorted events, merged by ranges of outcomes: a map and a reduce.

Every piece of a corpus becomes a file of sorted counts. Workers then merge what all files have
about a range of outcomes, and the ranges stand one after the other, as if one process had counted.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.errors import EngineError, option
from treelm.events.counts import EventCounter, EventCounts, Places
from treelm.parallel.executor import Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.tables import Tables, open_tables, write_tables

#: Distinct events of all pieces that are merged at a time, and the largest number of such ranges.
ROWS_A_RANGE = 1 << 20
MOST_RANGES = 256


class OutcomeRange(NamedTuple):
    """Events whose outcome is one of some ids."""

    number: int
    first: int
    last: int
    """The first id after them."""


@dataclass(frozen=True)
class Runs:
    """Files of sorted counts.

    Args:
        files: One for every piece.
        name: What the counts are called in them.
        largest: The largest id of every column.
    """

    files: tuple[Path, ...]
    name: str
    largest: tuple[int, ...]

    def merged_here(
        self,
        *,
        threads: int = 1,
        memory: MemoryLimit | None = None,
        progress: Progress = SILENT,
    ) -> EventCounts:
        """Return the sums of all files, added up by this process."""
        counter = EventCounter(len(self.largest), threads=threads, memory=memory)
        for file in self.files:
            counter.merge(EventCounts.from_tensors(open_run(file), self.name, largest=self.largest))
        return counter.finish(progress)


@dataclass(frozen=True)
class _MergeRange:
    """Merges the counts of all pieces for a range of outcomes.

    Args:
        runs: Counts of the pieces.
        threads: Number of threads.
        folder: Where files of counts are made.
    """

    runs: Runs
    threads: int
    folder: Path

    def __call__(self, shard: OutcomeRange) -> Path:
        name, largest = self.runs.name, self.runs.largest
        counter = EventCounter(len(largest), threads=self.threads)
        bits = np.zeros(len(largest), np.int64)
        for file in self.runs.files:
            tables = open_run(file)
            counter.merge(
                EventCounts.from_tensors(
                    _rows_of(tables, name, shard.first, shard.last), name, largest=largest
                )
            )
            if len(tables[f"{name}.counts"]):
                bits = np.maximum(bits, _bits(tables, name))
        made = _with_bits(counter.finish(), name, bits.tolist())
        file = self.folder / f"{name}-{shard.number}.range"
        write_run(file, made)
        return file


def merge_runs(
    runs: Runs,
    weights: Places,
    rows: int,
    executor: Executor,
    folder: Path,
    *,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
    unit: str = "words",
) -> EventCounts:
    """Return the sums of all files, added up by many workers where there is enough to add up.

    Args:
        runs: The files.
        weights: By outcome, how much work it is about.
        rows: Number of events of all files.
        executor: Merges ranges of outcomes.
        folder: Where files of merged counts are made; all workers must see it.
        threads: Number of threads of every worker, or of this process.
        memory: Memory limit; with one, this process does the merging.
        progress: Progress callback.
        unit: What outcomes are called.
    """
    ranges = min(rows // ROWS_A_RANGE, MOST_RANGES)
    if memory is not None or ranges <= 1 or len(runs.files) == 1:
        return runs.merged_here(threads=threads, memory=memory, progress=progress)
    shards = list(_outcome_ranges(weights, ranges))
    merging = _MergeRange(runs, threads, folder)
    files = []
    with progress.step("merging counts", total=len(weights), unit=unit) as step:
        for file, shard in zip(executor.map(merging, shards), shards, strict=True):
            files.append(file)
            step.advance(shard.last - shard.first)
    tables = [open_run(file) for file in files]
    keys, counts = (
        np.concatenate([each[f"{runs.name}.{kind}"] for each in tables])
        for kind in ("keys", "counts")
    )
    numbers = np.array(tables[0][f"{runs.name}.bits"])
    numbers[-1] = sum(int(each[f"{runs.name}.bits"][-1]) for each in tables)
    tensors = {
        f"{runs.name}.keys": keys,
        f"{runs.name}.counts": counts,
        f"{runs.name}.bits": numbers,
    }
    return EventCounts.from_tensors(tensors, runs.name, largest=runs.largest)


def _bits(tensors: Mapping[str, npt.NDArray[Any]], name: str) -> npt.NDArray[np.int64]:
    """Return how many bits each column of packed events has."""
    return tensors[f"{name}.bits"][:-1].astype(np.int64)


def _rows_of(
    tensors: Mapping[str, npt.NDArray[Any]], name: str, first: int, last: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the counts of events whose outcome is in a range of ids."""
    keys, counts = tensors[f"{name}.keys"], tensors[f"{name}.counts"]
    width = int(_bits(tensors, name)[0])
    # The outcome comes first, in the highest bits.
    ends = [
        bisect_left(keys, number << (64 - width), key=lambda key: int(key[0]))
        if number < 1 << width
        else len(keys)
        for number in (first, last)
    ]
    rows = slice(*ends)
    numbers = np.array(tensors[f"{name}.bits"])
    numbers[-1] = counts[rows].sum(dtype=np.uint64)
    return {
        f"{name}.keys": keys[rows],
        f"{name}.counts": counts[rows],
        f"{name}.bits": numbers,
    }


def _with_bits(events: EventCounts, name: str, bits: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    """Return counts as tensors with so many bits for every column, as all ranges have them."""
    tensors = events.to_tensors(name)
    if _bits(tensors, name).tolist() == list(bits):
        return tensors
    rows = events.rows.astype(np.uint64)
    words = max(1, -(-sum(bits) // 64))
    stored = words if words <= 2 else 4 if words <= 4 else 8
    keys = np.zeros((len(rows), stored), np.uint64)
    end = 0
    for column, width in enumerate(bits):
        begin, end = end, end + width
        if not width:
            continue
        word = (end - 1) // 64
        shift = 64 * (word + 1) - end
        keys[:, word] |= rows[:, column] << np.uint64(shift)
        if begin // 64 != word:
            keys[:, word - 1] |= rows[:, column] >> np.uint64(64 - shift)
    return {
        f"{name}.keys": keys,
        f"{name}.counts": tensors[f"{name}.counts"],
        f"{name}.bits": np.array([*bits, events.total], np.uint64),
    }


def _outcome_ranges(weights: Places, ranges: int) -> Iterator[OutcomeRange]:
    """Yield ranges of ids, with about as much work in each."""
    sums = np.cumsum(weights)
    wanted = np.linspace(0, int(sums[-1]), ranges + 1)[1:-1]
    cuts = np.unique([0, *(np.searchsorted(sums, wanted) + 1).tolist(), len(weights)])
    for number, (first, last) in enumerate(itertools.pairwise(cuts.tolist()), 1):
        yield OutcomeRange(number, first, last)


def write_run(file: Path, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write what a worker has counted; whoever does a piece a second time leaves the same file.

    Raises:
        EngineError: if the folder is not to be seen from here.
    """
    if not file.parent.is_dir():
        raise not_shared(file.parent)
    write_tables(file, tensors)


def open_run(file: Path) -> Tables:
    """Return what a worker has written, mapped from its file.

    Raises:
        EngineError: if the file is not to be seen from here.
    """
    if not file.is_file():
        raise not_shared(file.parent)
    return open_tables(file)


def not_shared(folder: Path) -> EngineError:
    """Return the error for a folder that only some machines see."""
    return EngineError(
        f"{folder.parent}: workers keep their counts here, but not all machines see the same "
        f"folder. Write the output, or what {option('temporary')} names, to a file system that "
        "they share."
    )
