"""Linear systems of grammars: what every category has of its own, and what its children add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError
from treelm.models.hhmm.rules import Floats, Ints

#: Systems of no more unknowns are solved at once, as dense ones.
_DENSE = 512
#: As many unknowns may come first in the others; what they take grows with their number.
_MOST_HEADS = 2048
_MOST_ITERATIONS = 100_000
_SETTLED = 4e-16


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Finds x with ``x[i] = constant[i] + sum of weight * x[column]`` over the entries of row i.

    Large grammars are binarized, and nearly all of their categories are intermediate ones that lead
    to shorter ones and, in the end, to those of the treebank. So a few unknowns hold all others
    apart: once they are known, the rest follows in order. Where they are too many, or for one row
    of constants, x is found by iteration.

    Args:
        row: Of each entry of a matrix whose spectral radius is below 1.
        column: Of each entry.
        weight: Of each entry.
        size: Number of unknowns.

    Examples:
        >>> LinearSystem(np.array([0]), np.array([1]), np.array([0.5]), 2).solve(np.eye(2))
        array([[1. , 0. ],
               [0.5, 1. ]])
    """

    row: Ints
    column: Ints
    weight: Floats
    size: int

    def solve(self, constants: Floats) -> Floats:
        """Return x for each row of constants.

        Raises:
            EstimationError: ``E_LOOP`` if there is none.
        """
        if self.size <= _DENSE:
            matrix = np.zeros((self.size, self.size))
            np.add.at(matrix, (self.row, self.column), self.weight)
            return np.linalg.solve(np.eye(self.size) - matrix, constants.T).T.astype(np.float64)
        if not len(self.row):
            return constants
        # One row is iterated in less time than it takes to prepare an elimination.
        if len(constants) == 1 or self._order is None:
            return self._iterate(constants)
        return self._eliminate(constants, self._order)

    @cached_property
    def _order(self) -> _Order | None:
        """The order of elimination; None if it would take too many unknowns."""
        children: list[list[int]] = [[] for _ in range(self.size)]
        for row, column in zip(self.row.tolist(), self.column.tolist(), strict=True):
            children[row].append(column)
        first = heads_of_cycles(children)
        if len(first) > _MOST_HEADS:
            return None
        levels = _levels(children, first)
        return _Order(
            np.array(sorted(first), np.int64),
            [self._entries(levels == level) for level in range(1, int(levels.max()) + 1)],
            self._entries(levels < 0),
        )

    def _entries(self, chosen: npt.NDArray[np.bool_]) -> _Entries:
        """Return the entries of some rows, those of a row together."""
        places = np.flatnonzero(chosen[self.row])
        places = places[np.argsort(self.row[places], kind="stable")]
        rows = self.row[places]
        starts = np.flatnonzero(np.r_[len(rows) > 0, rows[1:] != rows[:-1]])
        return _Entries(rows[starts], starts, self.column[places], self.weight[places])

    @cached_property
    def _shares(self) -> Floats:
        """How much of each of the first unknowns is in every unknown."""
        assert self._order is not None
        first = self._order.first
        shares = np.zeros((self.size, len(first)))
        shares[first, np.arange(len(first))] = 1.0
        for entries in self._order.levels:
            entries.add_to(shares)
        return shares

    @cached_property
    def _rest(self) -> Floats:
        """The system of the first unknowns alone."""
        assert self._order is not None
        sums = np.zeros_like(self._shares)
        self._order.of_first.add(self._shares, sums)
        return np.eye(len(self._order.first)) - sums[self._order.first]

    def _eliminate(self, constants: Floats, order: _Order) -> Floats:
        found = constants.T.copy()
        own = found[order.first].copy()
        found[order.first] = 0.0
        for entries in order.levels:
            entries.add_to(found)
        flow = np.zeros_like(found)
        order.of_first.add(found, flow)
        found += self._shares @ np.linalg.solve(self._rest, own + flow[order.first])
        return np.ascontiguousarray(found.T)

    def _iterate(self, constants: Floats) -> Floats:
        entries = self._entries(np.ones(self.size, np.bool_))
        solution, change = constants, 0.0
        for _ in range(_MOST_ITERATIONS):
            following = constants.copy()
            flow = solution[:, entries.columns] * entries.weights
            following[:, entries.rows] += np.add.reduceat(flow, entries.starts, axis=1)
            change = float(np.abs(following - solution).max(initial=0.0))
            solution = following
            if change <= _SETTLED * max(1.0, float(np.abs(solution).max(initial=0.0))):
                return solution
        if change > 1e-12:
            raise EstimationError(
                "the probabilities of recursive categories do not settle; some nearly never end.",
                code="E_LOOP",
            )
        return solution


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of some rows of a matrix.

    Args:
        rows: The rows.
        starts: Where the entries of each begin.
        columns: Of every entry.
        weights: Of every entry.
    """

    rows: Ints
    starts: npt.NDArray[np.int64]
    columns: Ints
    weights: Floats

    def add(self, values: Floats, target: Floats) -> None:
        """Add the weighted values of the columns to the rows of a target."""
        if len(self.rows):
            flow = values[self.columns] * self.weights[:, None]
            target[self.rows] += np.add.reduceat(flow, self.starts, axis=0)

    def add_to(self, values: Floats) -> None:
        """Add them to the same values; no row may be a column as well."""
        self.add(values, values)


@dataclass(frozen=True, eq=False)
class _Order:
    """In which order unknowns are found.

    Args:
        first: Unknowns without which there is no cycle.
        levels: Entries of the others, each level after those that it needs.
        of_first: Entries of the first.
    """

    first: npt.NDArray[np.int64]
    levels: Sequence[_Entries]
    of_first: _Entries


def heads_of_cycles(children: Sequence[Sequence[int]]) -> set[int]:
    """Return nodes such that every cycle of a graph has one of them.

    Examples:
        >>> heads_of_cycles([[1], [2], [0, 3], []])
        {0}
        >>> heads_of_cycles([[1, 2], [2], []])
        set()
    """
    heads: set[int] = set()
    unseen, open_, done = 0, 1, 2
    state = [unseen] * len(children)
    for root in range(len(children)):
        if state[root] != unseen:
            continue
        state[root] = open_
        path = [(root, iter(children[root]))]
        while path:
            node, rest = path[-1]
            child = next(rest, None)
            if child is None:
                state[node] = done
                path.pop()
            elif state[child] == unseen:
                state[child] = open_
                path.append((child, iter(children[child])))
            elif state[child] == open_:
                heads.add(child)
    return heads


def _levels(children: Sequence[Sequence[int]], first: set[int]) -> npt.NDArray[np.int64]:
    """Return a number for every node above those of the children it has; -1 for the first."""
    parents: list[list[int]] = [[] for _ in children]
    waiting = [0] * len(children)
    for node, found in enumerate(children):
        if node not in first:
            for child in found:
                if child not in first:
                    parents[child].append(node)
                    waiting[node] += 1
    levels = np.zeros(len(children), np.int64)
    levels[list(first)] = -1
    ready = [node for node in range(len(children)) if node not in first and not waiting[node]]
    while ready:
        node = ready.pop()
        if children[node]:
            levels[node] = 1 + max(0, *(int(levels[child]) for child in children[node]))
        for parent in parents[node]:
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    return levels
