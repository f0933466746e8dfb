"""Expected left progeny: how often a category begins, at any depth of left branches, another.

E_d(b ->* a), the expected number of a among the left progeny of an awaited b, is what expansions,
transitions and reductions of the stack are made of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError
from treelm.models.hhmm.bounded import BoundedGrammar, check_ends
from treelm.models.hhmm.linear import LinearSystem
from treelm.models.hhmm.rules import TOLERANCE, Floats, Ints

#: Rows that are solved at once, so that memory stays small.
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class LeftProgeny:
    """Expected left progeny of every awaited symbol at every depth; equal rows are kept once.

    Args:
        row_of: By depth of the progeny (from 1; up to one more than the stack has) and awaited
            symbol, the number of its row, or -1.
        row_start: Where each row begins, and the total.
        symbol: Ascending in each row.
        value: Expected numbers.
    """

    row_of: Ints
    row_start: npt.NDArray[np.int64]
    symbol: Ints
    value: Floats

    def expected(self, level: int, awaited: int, symbol: int) -> float:
        """Return E_level(awaited ->* symbol)."""
        row = int(self.row_of[level, awaited])
        if row < 0:
            return 0.0
        part = slice(int(self.row_start[row]), int(self.row_start[row + 1]))
        place = int(np.searchsorted(self.symbol[part], symbol))
        found = self.symbol[part]
        return (
            float(self.value[part][place]) if place < len(found) and found[place] == symbol else 0
        )


def left_progeny(grammar: BoundedGrammar) -> LeftProgeny:
    """Return the expected left progeny of a bounded grammar.

    Raises:
        EstimationError: ``E_LOOP`` for left recursion that never ends, ``E_GRAMMAR`` if the
            expansions of a category do not add up to 1.
    """
    size = len(grammar.rules.symbols)
    row_of = np.full((grammar.depth + 2, size), -1, np.int32)
    symbols: list[Ints] = []
    values: list[Floats] = []
    for level in range(1, grammar.depth + 2):
        awaited, which, firsts = _first_children(grammar, level - 1)
        rows = _closed(grammar, level, firsts)
        row_of[level, awaited] = which + len(symbols)
        for row in rows:
            found = np.flatnonzero(row > 0).astype(np.int32)
            symbols.append(found)
            values.append(row[found])
    sizes = [len(row) for row in symbols]
    return LeftProgeny(
        row_of,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate(symbols) if symbols else np.zeros(0, np.int32),
        np.concatenate(values) if values else np.zeros(0),
    )


def _first_children(
    grammar: BoundedGrammar, level: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Return awaited symbols, the number of the distribution of each, and the distributions.

    A distribution is that of the left child, E_d(b ->0 a), below an awaited symbol at `level`.
    """
    parent, left, _ = grammar.rules.rules.T.astype(np.int64)
    weights = grammar.right[level]
    used = weights > 0
    keys, where = np.unique(
        parent[used] * len(grammar.rules.symbols) + left[used], return_inverse=True
    )
    sums = np.bincount(where, weights[used], minlength=len(keys))
    awaited, starts = np.unique(keys // len(grammar.rules.symbols), return_index=True)
    columns = keys % len(grammar.rules.symbols)
    ends = np.append(starts, len(keys))[1:].tolist()
    numbers: dict[bytes, int] = {}
    which: list[int] = []
    pieces: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.generic]]] = []
    for first, last in zip(starts.tolist(), ends, strict=True):
        # Sums of probabilities are rounded so that the same child with certainty is one row.
        content = np.round(sums[first:last], 15)
        key = columns[first:last].tobytes() + content.tobytes()
        number = numbers.setdefault(key, len(numbers))
        if number == len(pieces):
            pieces.append((columns[first:last], sums[first:last]))
        which.append(number)
    firsts = np.zeros((len(pieces), len(grammar.rules.symbols)))
    for number, (found, shares) in enumerate(pieces):
        firsts[number, found] = shares
    return awaited, np.array(which, np.int64), firsts


def _closed(grammar: BoundedGrammar, level: int, firsts: Floats) -> Floats:
    """Return E_d(b ->* a) for each distribution of first children."""
    if level > grammar.depth:
        return firsts
    rules = grammar.rules
    parent, left, _ = rules.rules.T
    # Only what begins something has progeny of its own here.
    begins = np.asarray(firsts.any(axis=0))
    begins[left[grammar.left[level] > 0]] = True
    used = (grammar.left[level] > 0) & begins[parent]
    parent, left, weight = parent[used], left[used], grammar.left[level][used]
    phrase = left < rules.phrasal
    check_ends(parent[phrase], left[phrase], weight[phrase], rules, "left")
    phrases = np.flatnonzero(begins[: rules.phrasal])
    number = np.zeros(rules.phrasal, np.int64)
    number[phrases] = np.arange(len(phrases))
    closed = firsts.copy()
    order = np.argsort(left[~phrase], kind="stable")
    columns, sources = left[~phrase][order], parent[~phrase][order]
    starts = np.flatnonzero(np.r_[len(columns) > 0, columns[1:] != columns[:-1]])
    # A row vector times (I - L)^-1: children get what flows from their parents.
    system = LinearSystem(
        number[left[phrase]], number[parent[phrase]], weight[phrase], len(phrases)
    )
    for start in range(0, len(firsts), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        closed[part, phrases] = np.maximum(system.solve(firsts[part, phrases]), 0.0)
        if len(columns):
            flow = closed[part][:, sources] * weight[~phrase][order]
            closed[part, columns[starts]] += np.add.reduceat(flow, starts, axis=1)
    sums = closed[:, rules.phrasal :].sum(axis=1)
    if len(sums) and np.abs(sums - 1).max() > TOLERANCE:
        raise EstimationError(
            f"the first tags of some categories at depth {level} add up to "
            f"{sums[np.abs(sums - 1).argmax()]:.9g}, not to 1; the grammar and the counts for each "
            "depth do not fit together.",
            code="E_GRAMMAR",
        )
    return closed
