"""Lattice Jelinek-Mercer smoothing: relative frequencies of contexts that contain one another.

A node of a lattice uses some columns of an event and is smoothed with its parents, which use
fewer; a chain has one parent per node. ``p_v(u) = L_0 f_v(u) + sum_i L_i p_parent_i(u)``; below
the first node is the uniform distribution. Counts are whole multiples of 2^-30 (Tan et al. 2011,
2012; Jelinek and Mercer 1980).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress, kernel_report
from treelm.pickling import PickledFields
from treelm.store.schema import ANY, Tensor, ids, read_tensors

Ids = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A count of 1.
ONE = 1 << 30
#: A count must stay below this, or it does not fit into 64 bits.
LARGEST_COUNT = float(1 << 33)
#: A topic is stored in 16 bits.
MOST_TOPICS = 1 << 16
#: Types of the arrays of a stem; the kernel looks at their values.
_STORED: dict[str, type[np.generic]] = {
    "keys": np.uint32,
    "begin": np.uint64,
    "outcomes": np.uint32,
    "counts": np.int64,
    "topic_begin": np.uint32,
    "topics": np.uint16,
    "topic_counts": np.int64,
}


_PICKLED = "lattice"


def fixed_point(counts: npt.ArrayLike) -> Counts:
    """Return counts as whole multiples of 2^-30, rounded half to even.

    Raises:
        EstimationError: ``E_COUNT`` for a count that is negative, NaN, or at least 2^33.

    Examples:
        >>> fixed_point([0.3, 0.7]).tolist()
        [322122547, 751619277]
    """
    values = np.asarray(counts, dtype=np.float64)
    if not np.all((values >= 0) & (values < LARGEST_COUNT)):
        raise EstimationError(
            "a count is negative, NaN, or too large to be summed exactly (2^33 or more).",
            code="E_COUNT",
        )
    return np.asarray(np.rint(values * ONE), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class LatticeNode:
    """One node.

    Args:
        columns: Columns of the context, the most important first; a topic comes last.
        parents: Numbers of earlier nodes that use some of these columns.
    """

    columns: tuple[int, ...]
    parents: tuple[int, ...]


@dataclass(frozen=True)
class Lattice(PickledFields):
    """The shape of a lattice.

    Args:
        columns: Number of columns of an event, besides its outcome.
        outcomes: Number of outcomes.
        nodes: The first has no columns, the last has all of them.
        topics: Whether the last column is a topic.

    Examples:
        >>> [node.columns for node in Lattice.chain(10, columns=2).nodes]
        [(), (0,), (0, 1)]
        >>> [node.columns for node in Lattice.grid(10, words=1, heads=1, topics=True).nodes]
        [(), (3,), (1, 2), (1, 2, 3), (0,), (0, 3), (0, 1, 2), (0, 1, 2, 3)]
    """

    columns: int
    outcomes: int
    nodes: tuple[LatticeNode, ...]
    topics: bool = False

    @classmethod
    def chain(cls, outcomes: int, *, columns: int) -> Lattice:
        """Return a chain that uses the first column, the first two, and so on."""
        larger = (LatticeNode(tuple(range(width)), (width - 1,)) for width in range(1, columns + 1))
        return cls(columns, outcomes, (LatticeNode((), ()), *larger))

    @classmethod
    def grid(
        cls,
        outcomes: int,
        *,
        words: int,
        heads: int = 0,
        head_columns: int = 2,
        topics: bool = False,
    ) -> Lattice:
        """Return the lattice of a word predictor: last words, last heads, and perhaps a topic.

        Args:
            outcomes: Number of words that can be predicted.
            words: Number of words in the context; columns from 0 on, the latest first.
            heads: Number of heads in the context; the columns after the words, the latest first.
            head_columns: Number of columns of a head.
            topics: Whether there is a topic, in the last column.
        """
        width = words + heads * head_columns
        numbers: dict[tuple[int, int, int], int] = {}
        nodes: list[LatticeNode] = []
        for place in np.ndindex(words + 1, heads + 1, 1 + topics):
            i, j, k = (int(part) for part in place)
            seen = [*range(i), *range(words, words + j * head_columns)]
            if k:
                seen.append(width)
            smaller = ((i - 1, j, k), (i, j - 1, k), (i, j, k - 1))
            parents = tuple(numbers[part] for part in smaller if min(part) >= 0)
            numbers[i, j, k] = len(nodes)
            nodes.append(LatticeNode(tuple(seen), parents))
        return cls(width + topics, outcomes, tuple(nodes), topics)

    @cached_property
    def native(self) -> _native.LatticeShape:
        """The shape as the kernel has it.

        Raises:
            EstimationError: ``E_CHAIN`` if it is not a lattice.
        """
        nodes = [(list(node.columns), list(node.parents)) for node in self.nodes]
        with kernel_errors("making a lattice"):
            return _native.LatticeShape(self.columns, self.outcomes, self.topics, nodes)


class LatticeEvents:
    """Collects events; equal rows are summed.

    Args:
        lattice: Its shape.
        limits: For every column, the number that all its ids are below.
        threads: Number of threads.
    """

    def __init__(self, lattice: Lattice, limits: Sequence[int], *, threads: int = 1) -> None:
        self.lattice = lattice
        with kernel_errors("collecting events"):
            self._native = _native.LatticeEvents(
                lattice.native, np.array(limits, dtype=np.uint32), threads=threads
            )

    @property
    def native(self) -> _native.LatticeEvents:
        """What the kernel has collected."""
        return self._native

    def add(self, columns: Ids, outcomes: Ids, counts: Counts) -> None:
        """Add events.

        Args:
            columns: One row of ids per event.
            outcomes: The outcome of each.
            counts: Counts in fixed point; 0 reserves an entry for a later `LatticeTables.refill`.
        """
        with kernel_errors("collecting events"):
            self._native.add(columns, outcomes, counts)

    def tables(self, *, cutoff: float = 0.0, progress: Progress = SILENT) -> LatticeTables:
        """Return the counts of all nodes, and empty the collection.

        Args:
            cutoff: Types with a smaller count at a node are dropped, as by `LatticeTables.cut`, but
                with less memory.
            progress: Progress callback.

        Raises:
            EstimationError: ``E_NO_DATA`` if the last node keeps nothing.
        """
        stems, least = len(self.lattice.native.stems), int(fixed_point(cutoff))
        with (
            kernel_errors("counting the contexts of a lattice"),
            progress.step("counting contexts", total=stems, unit="kinds") as step,
        ):
            made = self._native.tables(kernel_report(step), least=least)
            return LatticeTables(self.lattice, made)


class LatticeTables:
    """The counts of every node of a lattice.

    Args:
        lattice: Its shape.
        native: The tables of the kernel.
    """

    def __init__(self, lattice: Lattice, native: _native.LatticeTables) -> None:
        self.lattice = lattice
        self.native = native

    @classmethod
    def build(
        cls,
        lattice: Lattice,
        columns: Ids,
        outcomes: Ids,
        counts: Counts,
        *,
        limits: Sequence[int] | None = None,
        threads: int = 1,
    ) -> LatticeTables:
        """Return the tables of events.

        Args:
            lattice: Its shape.
            columns: One row of ids per event.
            outcomes: The outcome of each.
            counts: Counts in fixed point.
            limits: For every column, the number that all its ids are below; found by default.
            threads: Number of threads.
        """
        if limits is None:
            limits = [int(highest) + 1 for highest in columns.max(axis=0, initial=0)]
        events = LatticeEvents(lattice, limits, threads=threads)
        events.add(columns, outcomes, counts)
        return events.tables()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_tensors, (self.lattice, self.to_tensors(_PICKLED), _PICKLED)

    @property
    def bytes(self) -> int:
        """Their size in memory."""
        return self.native.bytes

    def types(self, node: int = -1) -> int:
        """Return the number of distinct events of a node, by default the last."""
        return self.native.types(node % len(self.lattice.nodes))

    def refill(self, counts: Counts) -> None:
        """Replace the counts of the last node; all others are summed from it.

        Models that use these tables change with them.

        Args:
            counts: In the order of the tables: by context, outcome, topic.
        """
        with kernel_errors("filling a lattice with new counts"):
            self.native.refill(counts)

    def top_counts(self) -> Counts:
        """Return the counts of the last node, in the order that `refill` takes them."""
        arrays = self.native.stem_arrays(self._top_stem)
        return arrays["topic_counts" if self.lattice.topics else "counts"]

    @property
    def _top_stem(self) -> int:
        last = self.lattice.nodes[-1].columns
        stem = list(last[:-1] if self.lattice.topics else last)
        return self.lattice.native.stems.index(stem)

    def cut(self, cutoff: float) -> LatticeTables:
        """Return the tables without the types whose count at a node is below `cutoff`.

        Raises:
            EstimationError: ``E_NO_DATA`` if the last node keeps nothing.
        """
        if cutoff <= 0:
            return self
        with kernel_errors("cutting rare events"):
            return LatticeTables(self.lattice, self.native.cut(int(fixed_point(cutoff))))

    def to_tensors(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model folder stores, named after `prefix`."""
        return {
            f"{prefix}.{stem}.{name}": array
            for stem in range(len(self.lattice.native.stems))
            for name, array in self.native.stem_arrays(stem).items()
        }

    @classmethod
    def from_tensors(
        cls,
        lattice: Lattice,
        tensors: Mapping[str, npt.NDArray[Any]],
        prefix: str,
        *,
        topics: int = MOST_TOPICS,
    ) -> LatticeTables:
        """Return the tables that `to_tensors` stored; nothing in them is trusted.

        Args:
            lattice: Its shape.
            tensors: Arrays by name.
            prefix: How the names of its own begin.
            topics: Number of topics, where the lattice has them.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the arrays do not belong to the lattice.
        """
        places = range(len(lattice.native.stems))
        rules = {"topics": (ids(topics),)}  # the kernel looks at everything else
        found = read_tensors(
            tensors,
            [
                Tensor(f"{prefix}.{stem}.{name}", dtype, (ANY,), *rules.get(name, ()))
                for stem in places
                for name, dtype in _STORED.items()
            ],
        )
        stems = [
            {name: np.ascontiguousarray(found[f"{prefix}.{stem}.{name}"]) for name in _STORED}
            for stem in places
        ]
        with kernel_errors(f'opening the lattice "{prefix}"'):
            return cls(lattice, _native.LatticeTables(lattice.native, stems))
