"""What the E-step finds, piece by piece: added up here, or kept in files and added up in shards.

With files, a round that was interrupted goes on with the pieces that are missing, and nobody holds
more than the distinct events of a shard, until all shards are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from treelm.errors import EngineError, ModelFileError
from treelm.estimation.lattice import Counts, Ids
from treelm.models.composite.parts import CompositeShape, Rows
from treelm.models.run import Run
from treelm.parallel.key_shards import KeyShards
from treelm.parallel.progress import SILENT, shared_step
from treelm.store.checkpoint import DIGEST, tables_digest
from treelm.store.shared_folder import SharedFolder
from treelm.store.tables import Tables

#: The arrays of rows, by their names in a file.
_ROWS = ("columns", "outcomes", "counts")
Arrays = dict[str, npt.NDArray[Any]]


class Found(NamedTuple):
    """What the E-step has found in some sentences."""

    rows: dict[str, Rows]
    """Events of each part."""
    others: Arrays
    """What belongs to the sentences themselves."""


Work = Callable[[Any], Found]


class Collector(Protocol):
    """Something that takes events."""

    def add(self, columns: Ids, outcomes: Ids, counts: Counts) -> None:
        """Add events."""
        ...


@dataclass(frozen=True, eq=False)
class RoundFiles:
    """The files of one round of EM, in a folder that all workers see.

    Args:
        folder: The folder.
        key: What tells the round from all others, of this training and of others.
        shape: The sizes of everything.
        shards: Where events are added up.
    """

    folder: SharedFolder
    key: str
    shape: CompositeShape
    shards: KeyShards

    def piece(self, number: int) -> str:
        """Return the name of the file of a piece."""
        return f"piece-{number}.safetensors"

    def shard(self, number: int) -> str:
        """Return the name of the file of a shard."""
        return f"shard-{number}.safetensors"

    def has(self, number: int, sentences: tuple[int, int]) -> bool:
        """Return whether the file of a piece is there and whole."""
        try:
            tables = self.folder.open(self.piece(number))
        except ModelFileError:
            return False
        return tables.metadata.get("round") == self._name(sentences) and tables.metadata.get(
            DIGEST
        ) == tables_digest({name: tables[name] for name in tables})

    def _name(self, sentences: tuple[int, int]) -> str:
        return f"{self.key}: {sentences[0]} to {sentences[1]} in {self.shards}"

    def write_piece(self, number: int, sentences: tuple[int, int], found: Found) -> None:
        """Write what was found; whoever does a piece a second time leaves the same file.

        Raises:
            EngineError: if the folder is not to be seen from here.
        """
        tensors: Arrays = {f"others.{name}": array for name, array in found.others.items()}
        for part, (columns, outcomes, counts) in found.rows.items():
            places = self.shards.places(_keys(self.shape, part, columns), outcomes)
            for shard in range(self.shards.count):
                own = np.flatnonzero(places == shard)
                tensors |= _tensors(f"{part}.{shard}", (columns[own], outcomes[own], counts[own]))
        self._write(self.piece(number), tensors, round=self._name(sentences))

    def _write(self, name: str, tensors: Arrays, **notes: str) -> None:
        if not self.folder.is_there:
            raise EngineError(
                f"{self.folder}: workers keep what they count here, but not all machines see the "
                "same folder. Put it on a file system that they share."
            )
        self.folder.write(name, tensors, {DIGEST: tables_digest(tensors), **notes})

    def merge_shard(self, shard: int, pieces: int, parts: Sequence[str]) -> None:
        """Add up the events of one shard from all pieces."""
        collectors = self.shape.collectors(1)
        for number in range(pieces):
            tables = self.folder.open(self.piece(number))
            for part in parts:
                collectors[part].add(*_rows(tables, f"{part}.{shard}"))
        tensors: Arrays = {}
        for part in parts:
            tensors |= _tensors(part, collectors[part].native.take())
        self._write(self.shard(shard), tensors)

    def rows_of_shard(self, shard: int, parts: Sequence[str]) -> Iterator[tuple[str, Rows]]:
        """Yield the distinct events of a shard, part by part."""
        tables = self.folder.open(self.shard(shard))
        for part in parts:
            yield part, _rows(tables, part)

    def others(self, number: int) -> Arrays:
        """Return what belongs to the sentences of a piece."""
        tables = self.folder.open(self.piece(number))
        prefix = "others."
        return {
            name.removeprefix(prefix): np.array(tables[name])
            for name in tables
            if name.startswith(prefix)
        }


def _tensors(prefix: str, rows: Rows) -> Arrays:
    columns, outcomes, counts = (f"{prefix}.{name}" for name in _ROWS)
    return {columns: rows[0], outcomes: rows[1], counts: rows[2]}


def _rows(tables: Tables, prefix: str) -> Rows:
    columns, outcomes, counts = (np.ascontiguousarray(tables[f"{prefix}.{n}"]) for n in _ROWS)
    return columns, outcomes, counts


def _keys(shape: CompositeShape, part: str, columns: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
    """Return the word by which events are divided: the last one, or that of the last head."""
    config = shape.config
    if part == "constructor":
        return columns[:, config.heads]
    if part == "tagger" or config.order > 1:
        return columns[:, 0]
    if config.heads:
        return columns[:, 0] // (shape.native.labels if config.head_labels else 1)
    return columns[:, 0] if columns.shape[1] else np.zeros(len(columns), np.uint32)


@dataclass(frozen=True, eq=False)
class _Keep:
    """Does a piece, and keeps what it finds in a file."""

    work: Work
    files: RoundFiles

    def __call__(self, shard: tuple[int, tuple[int, int], Any]) -> int:
        number, sentences, piece = shard
        self.files.write_piece(number, sentences, self.work(piece))
        return number


@dataclass(frozen=True, eq=False)
class _Merge:
    """Adds up the events of a shard."""

    files: RoundFiles
    pieces: int
    parts: tuple[str, ...]

    def __call__(self, shard: int) -> int:
        self.files.merge_shard(shard, self.pieces, self.parts)
        return shard


def collect(
    work: Work,
    cut: Callable[[int, int], Any],
    places: Sequence[tuple[int, int]],
    collectors: Mapping[str, Collector],
    *,
    run: Run,
    files: RoundFiles | None,
    finished: Callable[[float], None],
) -> Iterator[Arrays]:
    """Do the E-step, collect its events, and yield in order what belongs to sentences.

    All events are collected when the last piece has been yielded.

    Args:
        work: The E-step of a piece.
        cut: Returns a piece, given its first sentence and the first one after it.
        places: These, for every piece.
        collectors: What collects the events of each part.
        run: Who does it.
        files: Where pieces are kept; None to send them here.
        finished: Called with the number of sentences that are done.
    """
    if files is None:
        pieces = (cut(first, last) for first, last in places)
        for found, (first, last) in zip(run.executor.map(work, pieces), places, strict=True):
            finished(last - first)
            for part, collector in collectors.items():
                collector.add(*found.rows[part])
            yield found.others
        return
    files.folder.make()
    kept = [files.has(number, place) for number, place in enumerate(places)]
    finished(sum(last - first for number, (first, last) in enumerate(places) if kept[number]))
    missing = (
        (number, place, cut(*place)) for number, place in enumerate(places) if not kept[number]
    )
    for number in run.executor.map(_Keep(work, files), missing):
        finished(places[number][1] - places[number][0])
    parts = tuple(collectors)
    merge = _Merge(files, len(places), parts)
    with shared_step(run.executor, SILENT, "adding up counts", unit="shards") as (_, added):
        for shard in run.executor.map(merge, range(files.shards.count)):
            added(1)
            for part, rows in files.rows_of_shard(shard, parts):
                collectors[part].add(*rows)
    for number in range(len(places)):
        yield files.others(number)
