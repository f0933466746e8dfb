"""The base below rules: right-hand sides that were never seen, spelled out symbol by symbol.

``b(C_1..C_d | P) = w prod q(C_i | C_{i-3..i-1}, P) + (1-w) prod q(C_i | C_{i-3..i-1})``, with STOP
after the last symbol, so that all right-hand sides of all lengths together have probability one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError
from treelm.estimation.backoff_table import NO_ID, BackoffTable, Floats
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import Precision, UniformBase, estimate
from treelm.estimation.kneser_ney import kneser_ney
from treelm.estimation.smoothing import Smoothing
from treelm.events.counts import EventCounter, Ids, Places
from treelm.kernel_errors import kernel_errors

#: Number of preceding symbols that a symbol depends on.
HISTORY = 3

#: Number of rules counted at a time.
_BLOCK = 1 << 18

#: Makes the smoothing of the 4-grams from their counts.
SmoothingOf = Callable[[ChainCounts], Smoothing]


@dataclass(frozen=True)
class Rules:
    """Rules as arrays: parents, and right-hand sides one after the other.

    Args:
        parents: Label of each left-hand side.
        symbols: Labels of all right-hand sides.
        starts: Where each right-hand side begins in `symbols`, and where the last one ends.
    """

    parents: Ids
    symbols: Ids
    starts: Places

    @classmethod
    def from_lists(cls, rules: Iterable[tuple[int, Sequence[int]]]) -> Rules:
        """Return rules given as (parent, right-hand side)."""
        pairs = list(rules)
        lengths = [len(right) for _, right in pairs]
        return cls(
            np.array([parent for parent, _ in pairs], dtype=np.uint32),
            np.array([symbol for _, right in pairs for symbol in right], dtype=np.uint32),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64),
        )

    def __len__(self) -> int:
        """Return the number of rules."""
        return len(self.parents)

    def slice(self, first: int, last: int) -> Rules:
        """Return the rules from `first` on, before `last`."""
        starts = self.starts[first : last + 1]
        inside = self.symbols[int(starts[0]) : int(starts[-1])]
        return Rules(self.parents[first:last], inside, starts - starts[0])


@dataclass(frozen=True)
class SymbolTable:
    """Symbols of right-hand sides: labels seen as a child, then ``<usym>``, STOP and START.

    Args:
        of_label: Symbol of every label id; labels never seen as a child have `NO_ID`.
        size: Number of symbols seen.
        unknown: Whether ``<usym>`` is one of the symbols.
    """

    of_label: Ids
    size: int
    unknown: bool

    @classmethod
    def of(cls, rules: Rules, labels: int, *, unknown: bool) -> SymbolTable:
        """Return the symbols of rules over `labels` label ids."""
        seen = np.zeros(labels, dtype=bool)
        seen[rules.symbols] = True
        of_label = np.full(labels, NO_ID, dtype=np.uint32)
        of_label[seen] = np.arange(seen.sum(), dtype=np.uint32)
        return cls(of_label, int(seen.sum()), unknown)

    @property
    def usym(self) -> int:
        """Replaces a label never seen as a child; `NO_ID` if there is none."""
        return self.size if self.unknown else NO_ID

    @property
    def stop(self) -> int:
        """Ends a right-hand side."""
        return self.size + self.unknown

    @property
    def start(self) -> int:
        """Precedes a right-hand side."""
        return self.stop + 1

    @cached_property
    def labels(self) -> Ids:
        """The label of every symbol seen."""
        return np.flatnonzero(self.of_label != NO_ID).astype(np.uint32)

    def encode(self, labels: Ids) -> Ids:
        """Return the symbols of labels.

        Raises:
            EstimationError: ``E_UNKNOWN_SYMBOL`` for a label never seen as a child, where there
                is no ``<usym>`` to replace it.
        """
        inside = labels < len(self.of_label)
        found = np.where(inside, self.of_label[np.where(inside, labels, 0)], NO_ID)
        missing = found == NO_ID
        if missing.any():
            if not self.unknown:
                raise EstimationError(
                    "a right-hand side contains a label that was never seen as a child.",
                    code="E_UNKNOWN_SYMBOL",
                )
            found = np.where(missing, self.usym, found)
        return found.astype(np.uint32)


class YieldBase:
    """Probabilities of right-hand sides given their parent, symbol by symbol.

    Args:
        conditional: Table of symbols given three before and the parent.
        unconditional: Table of symbols given three before.
        symbols: The symbols.
        parents: Whether each label id was seen as a parent.
        weight: Weight of the conditional product.
    """

    def __init__(
        self,
        conditional: BackoffTable,
        unconditional: BackoffTable,
        symbols: SymbolTable,
        parents: npt.NDArray[np.bool_],
        *,
        weight: float = 0.9,
    ) -> None:
        if not 0 <= weight <= 1:
            raise EstimationError("the weight of a mixture must be in [0, 1].", code="E_WEIGHTS")
        self.conditional = conditional
        self.unconditional = unconditional
        self.symbols = symbols
        self.parents = parents
        self.weight = weight

    @classmethod
    def estimate(
        cls,
        rules: Rules,
        counts: npt.ArrayLike,
        *,
        labels: int,
        smoothing: SmoothingOf = kneser_ney,
        weight: float = 0.9,
        base_counts: Literal["tokens", "types"] = "tokens",
        unknown: bool = True,
        precision: Precision = "single",
        threads: int = 1,
    ) -> YieldBase:
        """Return the base of counted rules.

        Args:
            rules: Distinct rules.
            counts: How often each was seen.
            labels: All label ids are below this number.
            smoothing: How the 4-grams of symbols are smoothed.
            weight: Weight of the conditional product.
            base_counts: ``types`` to count every distinct rule once.
            unknown: Whether ``<usym>`` is a symbol, for labels never seen as a child.
            precision: How probabilities are stored.
            threads: Number of threads.

        Raises:
            EstimationError: ``E_NO_DATA`` without rules, ``E_YIELD`` for an empty right-hand side.
        """
        if len(rules) == 0:
            raise EstimationError("there are no rules to estimate from.", code="E_NO_DATA")
        _check_lengths(rules)
        symbols = SymbolTable.of(rules, labels, unknown=unknown)
        weights = np.asarray(counts, dtype=np.uint64)
        if base_counts == "types":
            weights = np.ones_like(weights)
        base = UniformBase(symbols.stop + 1)
        tables = []
        for given in (True, False):
            chain = symbol_chain(symbols.start, given_parent=given)
            counter = EventCounter(len(chain.columns) + 1, threads=threads)
            for first in range(0, len(rules), _BLOCK):
                part = rules.slice(first, first + _BLOCK)
                rows, rule_of = _symbol_rows(part, symbols)
                own = weights[first : first + _BLOCK][rule_of]
                counter.add(_with_parent(rows, part.parents[rule_of]) if given else rows, own)
            levels = ChainCounts(counter.finish(), chain, threads=threads)
            tables.append(
                estimate(
                    levels,
                    smoothing(levels),
                    base,
                    outcomes=symbols.start + 1,
                    first_contexts=labels if given else symbols.start + 1,
                    precision=precision,
                )
            )
        parents = np.zeros(labels, dtype=bool)
        parents[rules.parents] = True
        return cls(tables[0], tables[1], symbols, parents, weight=weight)

    def probabilities(self, rules: Rules, *, threads: int = 1) -> Floats:
        """Return b(right-hand side | parent) of every rule.

        Args:
            rules: The rules.
            threads: Number of threads.
        """
        if len(rules) == 0:
            return np.zeros(0)
        _check_lengths(rules)
        with kernel_errors("scoring right-hand sides"):
            return self.native.probabilities(
                np.ascontiguousarray(rules.parents, dtype=np.uint32),
                self.symbols.encode(rules.symbols),
                np.ascontiguousarray(rules.starts, dtype=np.uint64),
                threads=threads,
            )

    def log_probability(self, parent: int, labels: Sequence[int]) -> float:
        """Return ln b(labels | parent), also where b is too small for a float.

        Args:
            parent: Label above; one that was never seen, such as `NO_ID`, is allowed.
            labels: Labels below, at least one; `NO_ID` for one that was never seen.
        """
        symbols = self.symbols.encode(np.asarray(labels, dtype=np.uint32))
        with kernel_errors("scoring a right-hand side"):
            return self.native.log_probability(parent, symbols)

    def sample(self, parent: int, *, seed: int, stream: int, counter: int = 0) -> tuple[int, ...]:
        """Return a right-hand side sampled for a parent, as labels; never ``<usym>``.

        Args:
            parent: Label of the left-hand side.
            seed: Seed of the random numbers.
            stream: Number of the stream.
            counter: Number of the first sample in it; symbols take the numbers from there on.

        Raises:
            EstimationError: ``E_YIELD`` for one that does not end.
        """
        try:
            return tuple(self._sampler.draw(parent, seed & ((1 << 64) - 1), stream, counter))
        except _native.KernelError as error:
            raise EstimationError(
                f"{error.args[1]}; with these tables it hardly ever ends.", code="E_YIELD"
            ) from error

    @cached_property
    def native(self) -> _native.YieldModel:
        """The kernel's form of it."""
        with kernel_errors("preparing right-hand sides"):
            return _native.YieldModel(
                self.conditional.native,
                self.unconditional.native,
                symbol_of=np.ascontiguousarray(self.symbols.of_label),
                seen_symbols=self.symbols.size,
                unknown=self.symbols.unknown,
                seen_parents=np.ascontiguousarray(self.parents),
                weight=self.weight,
            )

    @cached_property
    def _sampler(self) -> _native.YieldSampler:
        with kernel_errors("preparing to sample"):
            return _native.YieldSampler(self.native)


def symbol_chain(start: int, *, given_parent: bool) -> Chain:
    """Return the chain of 4-grams of symbols, given the parent or not."""
    names = tuple(f"symbol-{back}" for back in range(1, HISTORY + 1))
    pads: tuple[int | None, ...] = (start,) * HISTORY
    if given_parent:
        return Chain(("parent", *names), (4, 3, 2, 1), (None, *pads))
    return Chain(names, (3, 2, 1, 0), pads)


def _check_lengths(rules: Rules) -> None:
    starts = rules.starts.astype(np.int64)
    if (starts[1:] - starts[:-1] < 1).any():
        raise EstimationError("a rule has an empty right-hand side.", code="E_YIELD")


def _symbol_rows(rules: Rules, symbols: SymbolTable) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Return (symbol, three before) for all symbols of all rules with STOPs, and their rules."""
    starts = rules.starts.astype(np.int64)
    lengths = starts[1:] - starts[:-1]
    rule_of = np.repeat(np.arange(len(rules)), lengths + 1)
    ends = np.cumsum(lengths + 1) - 1
    flat = np.full(len(rule_of), symbols.stop, dtype=np.uint32)
    inside = np.ones(len(rule_of), dtype=bool)
    inside[ends] = False
    flat[inside] = symbols.encode(rules.symbols)
    place = np.arange(len(rule_of)) - np.repeat(ends - lengths, lengths + 1)
    rows = np.full((len(flat), 1 + HISTORY), symbols.start, dtype=np.uint32)
    rows[:, 0] = flat
    for back in range(1, HISTORY + 1):
        has = np.flatnonzero(place >= back)
        rows[has, back] = flat[has - back]
    return rows, rule_of


def _with_parent(rows: Ids, parents: Ids) -> Ids:
    return np.ascontiguousarray(np.insert(rows, 1, parents, axis=1))
