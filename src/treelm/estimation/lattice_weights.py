"""Probabilities of a lattice, and its weights, found by EM on held-out events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.estimation.lattice import (
    LARGEST_COUNT,
    MOST_TOPICS,
    Floats,
    Ids,
    Lattice,
    LatticeTables,
    fixed_point,
)
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress
from treelm.store.schema import ANY, Tensor, Tensors, read_tensors

#: Counts up to 0.5, 1, 2, 4, ... 2^20 share a bucket; so do those above the last, and 0 has its
#: own.
BUCKET_EDGES: tuple[float, ...] = tuple(2.0**power for power in range(-1, 21))
#: A class of buckets with less held-out weight than this is merged with its neighbour.
LEAST_WEIGHT = 10.0
#: Share of equal weights mixed into those that EM found, so that nothing is impossible.
SOFTENING = 1e-6


@dataclass(frozen=True)
class LatticeWeights:
    """The weights of every node, by bucket of the count of its context.

    Args:
        lattice: Its shape.
        values: Flat; by node, bucket, and (own frequency, then parents).
        edges: Upper edges of the buckets of positive counts, except the last, which has none.
        history: Log likelihood of the held-out events before each round of EM, and after the last.
    """

    lattice: Lattice
    values: Floats
    edges: tuple[float, ...] = BUCKET_EDGES
    history: tuple[float, ...] = ()

    @classmethod
    def equal(cls, lattice: Lattice, edges: tuple[float, ...] = BUCKET_EDGES) -> LatticeWeights:
        """Return equal weights, with which EM begins; 0 for a frequency that does not exist."""
        with kernel_errors("weighting a lattice"):
            values = _native.lattice_weights(lattice.native, fixed_point(edges))
        return cls(lattice, values, edges)

    @property
    def array(self) -> Floats:
        """The weights by node, bucket, and (own, parents)."""
        return self.values.reshape(len(self.lattice.nodes), len(self.edges) + 2, -1)

    def to_tensors(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model folder stores, named after `prefix`."""
        edges = np.array(self.edges, dtype=np.float64)
        return {f"{prefix}.weights": self.values, f"{prefix}.bucket_edges": edges}

    @classmethod
    def from_tensors(
        cls, lattice: Lattice, tensors: Mapping[str, npt.NDArray[Any]], prefix: str
    ) -> LatticeWeights:
        """Return the weights that `to_tensors` stored; the model they make checks them.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if they are not numbers.
        """
        weights, edges = f"{prefix}.weights", f"{prefix}.bucket_edges"
        found = read_tensors(
            tensors,
            (
                Tensor(weights, np.float64, (ANY,)),
                Tensor(edges, np.float64, (ANY,), _possible_counts),
            ),
        )
        return cls(lattice, np.ascontiguousarray(found[weights]), tuple(found[edges].tolist()))


@dataclass(frozen=True)
class CheckEvents:
    """Held-out events, which the counts of a lattice do not include.

    Args:
        columns: One row of ids per event.
        outcomes: The outcome of each.
        weights: How often each occurs; a posterior where something is hidden.
    """

    columns: Ids
    outcomes: Ids
    weights: Floats


def fit_weights(
    tables: LatticeTables,
    events: CheckEvents,
    *,
    edges: tuple[float, ...] = BUCKET_EDGES,
    rounds: int = 50,
    tolerance: float = 1e-4,
    least: float = LEAST_WEIGHT,
    softening: float = SOFTENING,
    threads: int = 1,
    progress: Progress = SILENT,
) -> LatticeWeights:
    """Return the weights under which the held-out events are most likely.

    Args:
        tables: The counts.
        events: Held-out events.
        edges: Upper edges of the buckets.
        rounds: Maximum number of rounds of EM.
        tolerance: A smaller relative gain of the log likelihood ends it.
        least: Neighbouring buckets share weights until they have this much held-out weight.
        softening: Share of equal weights mixed in at the end.
        threads: Number of threads.
        progress: Called with the perplexity after each round.
    """
    lattice = tables.lattice
    start = LatticeWeights.equal(lattice, edges)
    values, history = start.values, []
    size = float(events.weights.sum())
    with (
        kernel_errors("finding the weights of a lattice"),
        progress.step("interpolation weights", total=rounds, unit="rounds") as step,
    ):
        check = _native.LatticeCheck(
            tables.native,
            fixed_point(edges),
            events.columns,
            events.outcomes,
            events.weights,
            threads=threads,
        )
        for _ in range(rounds if size > 0 else 0):
            values, before = check.step(values, least=least, threads=threads)
            history.append(before)
            step.advance(1, note=f"perplexity {np.exp(-before / size):.4g}")
            if len(history) > 1 and before - history[-2] < tolerance * abs(history[-2]):
                break
        history.append(check.log_likelihood(values, threads=threads))
        if softening:
            values = _native.soften_lattice_weights(
                lattice.native, fixed_point(edges), values, softening
            )
    return LatticeWeights(lattice, values, edges, tuple(history))


class LatticeModel:
    """Probabilities of outcomes: counts and weights.

    Args:
        tables: The counts.
        weights: How they are mixed.

    Raises:
        ModelFileError: ``E_MODEL_TABLES`` if the weights do not fit the lattice.
    """

    def __init__(self, tables: LatticeTables, weights: LatticeWeights) -> None:
        self.tables = tables
        self.weights = weights
        with kernel_errors("weighting a lattice"):
            self.native = _native.LatticeModel(
                tables.native, fixed_point(weights.edges), weights.values
            )

    @property
    def lattice(self) -> Lattice:
        """Its shape."""
        return self.tables.lattice

    def probs(self, columns: npt.ArrayLike, outcomes: npt.ArrayLike, *, threads: int = 1) -> Floats:
        """Return the probabilities of events, one row of columns each."""
        rows = _rows(columns, self.lattice.columns)
        with kernel_errors("looking up a lattice"):
            return self.native.probs(rows, _ids(outcomes), threads=threads)

    def distribution(self, columns: npt.ArrayLike) -> Floats:
        """Return the probabilities of all outcomes in one context."""
        with kernel_errors("looking up a lattice"):
            return self.native.distribution(_ids(columns))

    def topic_probs(
        self, columns: npt.ArrayLike, outcomes: npt.ArrayLike, topics: npt.ArrayLike
    ) -> Floats:
        """Return the probabilities of events under each of some topics.

        Args:
            columns: One row of columns per event, without the topic.
            outcomes: The outcome of each.
            topics: Topics in ascending order.

        Returns:
            One row per event, one column per topic.
        """
        rows = _rows(columns, self.lattice.columns - 1)
        with kernel_errors("looking up a lattice"):
            return self.native.topic_probs(rows, _ids(outcomes), _ids(topics))

    def to_tensors(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model folder stores, named after `prefix`."""
        return {**self.tables.to_tensors(prefix), **self.weights.to_tensors(prefix)}

    @classmethod
    def from_tensors(
        cls,
        lattice: Lattice,
        tensors: Mapping[str, npt.NDArray[Any]],
        prefix: str,
        *,
        topics: int = MOST_TOPICS,
    ) -> LatticeModel:
        """Return the model that `to_tensors` stored; nothing in it is trusted.

        Args:
            lattice: Its shape.
            tensors: Arrays by name.
            prefix: How the names of its own begin.
            topics: Number of topics, where the lattice has them.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the arrays do not belong to the lattice.
        """
        tables = LatticeTables.from_tensors(lattice, tensors, prefix, topics=topics)
        return cls(tables, LatticeWeights.from_tensors(lattice, tensors, prefix))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tables, self.weights)

    @cached_property
    def types(self) -> tuple[int, ...]:
        """Number of distinct events of each node."""
        return tuple(self.tables.types(node) for node in range(len(self.lattice.nodes)))


def _rows(columns: npt.ArrayLike, width: int) -> Ids:
    rows = np.ascontiguousarray(columns, dtype=np.uint32)
    return rows if rows.ndim == 2 else rows.reshape(-1, width)


def _ids(values: npt.ArrayLike) -> Ids:
    return np.ascontiguousarray(values, dtype=np.uint32)


def _possible_counts(array: npt.NDArray[Any], _: Tensors) -> str | None:
    possible = np.all((array > 0) & (array < LARGEST_COUNT))
    return None if possible else "contains numbers that no count can be"
