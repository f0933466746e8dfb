"""The memory of the tables of a lattice, and of building them.

This follows native/core/lattice/events.cpp and tables.cpp array by array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import Ids

#: One type in this many is sampled.
SAMPLE = 16
#: Number of rows sorted at a time.
RUN_ROWS = 1 << 24
#: How much of its topics another document of an n-gram brings that those before did not have by
#: chance: documents with the same n-grams have the same topics more often than others. Measured.
NEW_TOPICS = 0.75


@dataclass(frozen=True)
class Sampled:
    """Types of one kind: how many, and the number of documents of each sampled one."""

    types: int
    documents: npt.NDArray[np.int64]
    scale: int

    def topics(self, topics: int, kept: int) -> int:
        """Return the expected number of pairs of a type and a topic.

        Args:
            topics: Number of topics.
            kept: Number of topics that each document keeps.
        """
        if not topics:
            return 0
        more = 1 + NEW_TOPICS * (self.documents - 1)
        distinct = topics * (1 - (1 - kept / topics) ** more)
        return int(distinct.sum() * self.scale)


def sample_types(
    columns: Iterable[Ids], width: int, document: npt.NDArray[np.int32], documents: int
) -> Sampled:
    """Sample the distinct rows of some columns; one in `SAMPLE` if there are two or more columns.

    Args:
        columns: One array per column.
        width: Number of columns.
        document: The document of every row.
        documents: Number of documents.
    """
    if not width:  # the row without columns is one, and occurs everywhere
        return Sampled(1, np.array([documents]), 1)
    if width == 1:  # all single words are used: the frequent ones meet most topics
        (only,) = columns
        return _count(only.astype(np.int64), document, documents, 1)
    hashes = row_hashes(columns, len(document))
    chosen = hashes % np.uint64(SAMPLE) == 0
    numbers = np.unique(hashes[chosen], return_inverse=True)[1].astype(np.int64)
    return _count(numbers, document[chosen], documents, SAMPLE)


def row_hashes(columns: Iterable[Ids], rows: int) -> npt.NDArray[np.uint64]:
    """Return a hash of every row."""
    hashes = np.zeros(rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            hashes ^= column
            hashes += np.uint64(0x9E3779B97F4A7C15)
            hashes ^= hashes >> np.uint64(30)
            hashes *= np.uint64(0xBF58476D1CE4E5B9)
            hashes ^= hashes >> np.uint64(27)
    return hashes


def _count(
    numbers: npt.NDArray[np.int64], document: npt.NDArray[np.int32], documents: int, scale: int
) -> Sampled:
    pairs = np.unique(numbers * documents + document)
    found = np.bincount(pairs // max(1, documents)).astype(np.int64)
    found = found[found > 0]
    return Sampled(len(found) * scale, found, scale)


@dataclass(frozen=True)
class StemSize:
    """One table of a lattice: contexts of some columns, their outcomes, and the topics of both.

    Args:
        columns: Columns of a context, without the topic.
        entries: Number of pairs of a context and an outcome.
        contexts: Number of contexts.
        topics: Number of pairs of an entry and a topic.
        context_topics: Number of pairs of a context and a topic.
    """

    columns: tuple[int, ...]
    entries: int
    contexts: int
    topics: int = 0
    context_topics: int = 0

    @property
    def rows(self) -> int:
        """Number of types of the table."""
        return self.topics or self.entries

    @property
    def stored(self) -> int:
        """Bytes while smaller tables are summed from it."""
        size = self.entries * (4 + 8) + self.contexts * (4 * len(self.columns) + 8) + 8
        return size + (4 * self.entries + 4 + (2 + 8) * self.topics if self.topics else 0)

    @property
    def bytes(self) -> int:
        """Bytes of the table, with its totals and its index."""
        slots = 1 << int(self.contexts + self.contexts // 2).bit_length()
        size = self.stored + 8 * self.contexts + 4 * slots
        return size + (4 * self.contexts + 4 + (2 + 8) * self.context_topics if self.topics else 0)

    def scaled(self, entries: float, contexts: float, topics: float = 1.0) -> StemSize:
        """Return the size with entries, contexts, and topics of both multiplied by factors."""
        return StemSize(
            self.columns,
            int(self.entries * entries),
            max(1, int(self.contexts * contexts)),
            int(self.topics * entries * topics),
            int(self.context_topics * contexts * topics),
        )


def record_bytes(limits: Sequence[int], outcomes: int) -> int:
    """Return the bytes of a packed row with its count.

    Args:
        limits: For every column, the number that all its ids are below.
        outcomes: Number of outcomes.
    """
    bits = sum(max(0, limit - 1).bit_length() for limit in (*limits, outcomes))
    words = max(1, -(-bits // 64))
    return 8 + 8 * (words if words <= 2 else 4 if words <= 4 else 8)


def collecting_peak(rows: int, types: int, record: int) -> int:
    """Return the peak bytes while rows arrive: a run being sorted, and runs being merged.

    Args:
        rows: Number of rows.
        types: Number of distinct rows.
        record: Bytes of one row.
    """
    run = min(rows, RUN_ROWS)
    if rows <= RUN_ROWS:  # one run: it grows by doubling, then it is copied
        return record * max(3 * run // 2, run + types)
    return record * (run + 2 * types)


def building_peak(whole: Sequence[StemSize], kept: Sequence[StemSize], record: int) -> int:
    """Return the peak bytes while tables are built, the largest first.

    A table is cut as soon as no more smaller ones are summed from it.

    Args:
        whole: The tables before anything is cut.
        kept: The tables after cutting.
        record: Bytes of a packed row with its count.
    """
    order = sorted(range(len(whole)), key=lambda stem: -len(whole[stem].columns))
    source = {stem: _source(whole, stem, order[0]) for stem in order[1:]}
    held = dict.fromkeys(order, 0)
    top = order[0]
    peak = record * whole[top].rows + whole[top].stored
    for place, stem in enumerate(order):
        held[stem] = whole[stem].stored
        if stem != top:
            rows = record * whole[source[stem]].rows
            peak = max(peak, sum(held.values()) - held[stem] + rows)
            if not any(source[other] == source[stem] for other in order[place + 1 :]):
                held[source[stem]] = kept[source[stem]].bytes
            peak = max(peak, sum(held.values()) + rows)
        if stem not in {source[other] for other in order[place + 1 :]}:
            peak = max(peak, sum(held.values()) + kept[stem].stored)
            held[stem] = kept[stem].bytes
    return max(peak, sum(held.values()))


def _source(whole: Sequence[StemSize], stem: int, top: int) -> int:
    """Return the smallest table that has all columns of another and more."""
    best, wanted = top, set(whole[stem].columns)
    for number, other in enumerate(whole):
        larger = len(other.columns) > len(wanted) and wanted <= set(other.columns)
        if larger and len(other.columns) < len(whole[best].columns):
            best = number
    return best
