"""Counting events: rows of ids in, distinct rows with their counts out.

A row is an outcome and its context, the columns of the context in order of retention: what a
back-off chain drops last comes first. Counts depend on the set of events and on nothing else, so
shards can be counted anywhere and merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError
from treelm.kernel_errors import kernel_errors
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress, kernel_report
from treelm.store.schema import ANY, Tensor, read_tensors

Ids = npt.NDArray[np.uint32]
Places = npt.NDArray[np.uint64]

_LARGEST_ID = 0xFFFFFFFF

#: Words that `count_sequences` takes.
MOST_WORDS = _LARGEST_ID

#: Number of rows sorted at a time.
RUN_ROWS = 1 << 24


class EventCounts:
    """Distinct events in ascending order, with their counts.

    Examples:
        >>> counter = EventCounter(columns=2)
        >>> counter.add([(7, 1), (7, 1), (5, 2)])
        >>> counts = counter.finish()
        >>> counts.rows.tolist(), counts.counts.tolist()
        ([[5, 2], [7, 1]], [1, 2])
    """

    def __init__(self, native: _native.EventCounts) -> None:
        self.native = native

    def __len__(self) -> int:
        """Return the number of distinct events."""
        return self.native.rows

    @property
    def columns(self) -> int:
        """Columns of a row: the outcome and its context."""
        return self.native.columns

    @property
    def total(self) -> int:
        """Number of events."""
        return self.native.total

    @property
    def bytes(self) -> int:
        """Their size in bytes, in memory or in files."""
        return self.native.bytes

    @property
    def spilled(self) -> bool:
        """Whether they are in temporary files."""
        return self.native.spilled

    @property
    def rows(self) -> Ids:
        """The distinct rows."""
        return self.native.unpacked(0, len(self))

    @property
    def counts(self) -> Ids:
        """The count of each row."""
        return self.native.counts

    def blocks(self, rows: int = 1 << 20) -> Iterator[tuple[Ids, Ids]]:
        """Yield rows and counts in blocks of the given size."""
        for first in range(0, len(self), rows):
            last = min(first + rows, len(self))
            yield self.native.unpacked(first, last), self.native.counts[first:last]

    def summed(self, columns: int) -> tuple[Ids, Places]:
        """Return the distinct rows of the first columns, with the number of events of each.

        Args:
            columns: How many columns to keep; the others are summed over.

        Examples:
            >>> counter = EventCounter(columns=2)
            >>> counter.add([(7, 1), (7, 2), (5, 2)])
            >>> rows, counts = counter.finish().summed(1)
            >>> rows.tolist(), counts.tolist()
            ([[5], [7]], [1, 2])
        """
        rows: list[Ids] = []
        counts: list[Places] = []
        for block, numbers in self.blocks():
            prefix = block[:, :columns]
            first = np.flatnonzero(np.r_[True, (prefix[1:] != prefix[:-1]).any(axis=1)])
            own, sums = prefix[first], np.add.reduceat(numbers.astype(np.uint64), first)
            # Rows are sorted, so only the last one of a block can continue in the next.
            if rows and (rows[-1][-1] == own[0]).all():
                counts[-1][-1] += sums[0]
                own, sums = own[1:], sums[1:]
            if len(own):
                rows.append(own)
                counts.append(sums)
        if not rows:
            return np.zeros((0, columns), dtype=np.uint32), np.zeros(0, dtype=np.uint64)
        return np.concatenate(rows), np.concatenate(counts)

    def to_tensors(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a folder stores, named after `prefix`."""
        bits = np.array([*self.native.bits, self.total], dtype=np.uint64)
        return {
            f"{prefix}.keys": self.native.keys,
            f"{prefix}.counts": self.native.counts,
            f"{prefix}.bits": bits,
        }

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, npt.NDArray[Any]], prefix: str, *, largest: Sequence[int]
    ) -> EventCounts:
        """Return the counts that `to_tensors` stored, after checking every row.

        Args:
            tensors: Arrays by name.
            prefix: What their names begin with.
            largest: The largest id of each column.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the arrays are not valid counts.
        """
        names = [f"{prefix}.{name}" for name in ("keys", "counts", "bits")]
        found = read_tensors(
            tensors,
            (
                Tensor(names[0], np.uint64, (ANY, ANY)),
                Tensor(names[1], np.uint32, (ANY,)),
                Tensor(names[2], np.uint64, (ANY,)),
            ),
        )
        keys, counts, numbers = (np.ascontiguousarray(found[name]) for name in names)
        *bits, total = numbers[:1000].tolist() or [0]
        with kernel_errors(f'opening the counts "{prefix}"'):
            native = _native.event_counts(
                [min(width, _LARGEST_ID) for width in bits],
                keys,
                counts,
                total=total,
                largest=list(largest),
            )
        return cls(native)


class EventCounter:
    """Counts rows of ids.

    Args:
        columns: Outcome and context columns.
        threads: Number of threads.
        run_rows: Number of rows sorted at a time; more need more memory.
        memory: Memory limit; sorted runs that do not fit go to temporary files.
    """

    def __init__(
        self,
        columns: int,
        *,
        threads: int = 1,
        run_rows: int = RUN_ROWS,
        memory: MemoryLimit | None = None,
    ) -> None:
        with kernel_errors("counting events"):
            self._native = _native.EventCounter(
                columns,
                threads=threads,
                run_rows=run_rows,
                memory=memory.share if memory else 0,
                folder=str(memory.folder) if memory else "",
            )
        self.columns = columns

    def add(
        self,
        rows: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Add rows, each counted once or with its weight.

        Raises:
            EstimationError: ``E_ARITY`` if rows have the wrong number of columns, ``E_COUNT`` for
                weights that are not counts.
        """
        matrix = as_rows(rows, self.columns)
        counted = None if weights is None else _as_counts(weights)
        with kernel_errors("counting events"):
            self._native.add(matrix, counted)

    def add_sequences(self, ids: Ids, starts: Places, *, end: int, pad: int) -> None:
        """Add the n-grams of word sequences, n being the number of columns.

        Args:
            ids: The words of all sequences.
            starts: Where each sequence begins in `ids`, and where the last one ends.
            end: Id of the end of a sequence, which is an event too.
            pad: Id of the padding before the first word.
        """
        with kernel_errors("counting n-grams"):
            self._native.add_sequences(ids, starts, end=end, pad=pad)

    @property
    def native(self) -> _native.EventCounter:
        """The kernel that counts."""
        return self._native

    def merge(self, counts: EventCounts) -> None:
        """Add the counts of another counter."""
        with kernel_errors("merging counts"):
            self._native.merge(counts.native)

    def finish(self, progress: Progress = SILENT) -> EventCounts:
        """Return everything counted, sorted runs merged, and empty the counter."""
        with (
            progress.step("merging counts", total=self._native.total, unit="events") as step,
            kernel_errors("counting events"),
        ):
            return EventCounts(self._native.finish(kernel_report(step)))


def count_sequences(
    ids: Ids,
    starts: Places,
    columns: int,
    *,
    end: int,
    pad: int,
    threads: int = 1,
    progress: Progress = SILENT,
) -> EventCounts:
    """Return what `EventCounter.add_sequences` counts, in less time and memory.

    Args:
        ids: The words of all sequences, at most `MOST_WORDS`.
        starts: Where each sequence begins in `ids`, and where the last one ends.
        columns: Outcome and context columns.
        end: Id of the end of a sequence, which is an event too.
        pad: Id of the padding before the first word.
        threads: Number of threads.
        progress: Called with the number of events counted.

    Examples:
        >>> ids, starts = np.array([5, 5], np.uint32), np.array([0, 2], np.uint64)
        >>> counts = count_sequences(ids, starts, 2, end=6, pad=7)
        >>> counts.rows.tolist(), counts.counts.tolist()
        ([[5, 5], [5, 7], [6, 5]], [1, 1, 1])
    """
    events = len(ids) + len(starts) - 1
    with (
        progress.step("counting n-grams", total=events, unit="events") as step,
        kernel_errors("counting n-grams"),
    ):
        return EventCounts(
            _native.count_sequences(
                ids,
                starts,
                columns=columns,
                end=end,
                pad=pad,
                threads=threads,
                progress=kernel_report(step),
            )
        )


def memory_to_count(
    words: int, sequences: int, columns: int, *, largest: int, threads: int = 1
) -> int:
    """Return the bytes that `count_sequences` needs at most.

    Args:
        words: Words of all sequences.
        sequences: Number of sequences.
        columns: Outcome and context columns.
        largest: The largest id.
        threads: Number of threads.
    """
    with kernel_errors("counting n-grams"):
        return _native.memory_to_count(
            words=words, sequences=sequences, columns=columns, largest=largest, threads=threads
        )


def as_rows(rows: npt.ArrayLike, columns: int) -> Ids:
    """Return rows as a matrix of ids with the given number of columns.

    Raises:
        EstimationError: ``E_ARITY`` if they have a different number of columns.
    """
    given = np.asarray(rows)
    if given.size and given.dtype != np.uint32 and (given.min() < 0 or given.max() > _LARGEST_ID):
        raise EstimationError("ids must be between 0 and 2**32 - 1.", code="E_ARGUMENT")
    matrix = np.ascontiguousarray(given, dtype=np.uint32)
    if matrix.size == 0:
        matrix = matrix.reshape(-1, columns) if matrix.ndim != 2 else matrix
    if matrix.ndim != 2 or matrix.shape[1] != columns:
        shown = "x".join(map(str, matrix.shape))
        raise EstimationError(
            f"rows of {columns} columns were expected, but an array of {shown} was given.",
            code="E_ARITY",
        )
    return matrix


def merge_counts(parts: Iterable[EventCounts], *, threads: int = 1) -> EventCounts:
    """Return the counts of several shards as if they had been counted together.

    Raises:
        EstimationError: ``E_NO_DATA`` if there are no shards.
    """
    parts = list(parts)
    if not parts:
        raise EstimationError("there are no counts to merge.", code="E_NO_DATA")
    counter = EventCounter(parts[0].columns, threads=threads)
    for part in parts:
        counter.merge(part)
    return counter.finish()


def _as_counts(weights: npt.ArrayLike) -> Places:
    array = np.asarray(weights)
    if array.size and (
        array.dtype.kind not in "iuf"
        or not np.isfinite(array).all()
        or (array < 0).any()
        or (array.dtype.kind == "f" and (array >= 2.0**64).any())
    ):
        raise EstimationError("counts must be whole numbers, 0 or more.", code="E_COUNT")
    counted = array.astype(np.uint64)
    if array.dtype.kind == "f" and (counted != array).any():
        raise EstimationError("counts must be whole numbers, 0 or more.", code="E_COUNT")
    return np.ascontiguousarray(counted)
