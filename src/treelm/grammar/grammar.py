"""Context-free grammars with or without latent subcategories, as flat arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError, ModelFileError
from treelm.store.schema import non_negative

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]

#: The symbol above every sentence.
ROOT = "ROOT"

#: How far the sum over the rules of a subcategory may be from one.
TOLERANCE = 1e-6

#: More would make a chart of one sentence larger than a machine.
_MOST_SYMBOLS, MOST_SUBSTATES = 1 << 20, 1 << 12


@dataclass(frozen=True, eq=False)
class Grammar:
    """Rules between symbols, each symbol divided into subcategories; a plain PCFG has one each.

    Rule r, ``A -> B C``, has a block of weights ``b(A_x -> B_y C_z)`` of shape k_A x k_B x k_C that
    begins at ``binary_starts[r]``; unary rules likewise.

    Args:
        symbols: Labels as in binarized trees; ROOT is the first, phrases come before tags.
        phrasal: Number of symbols that are phrases.
        substates: Subcategories of each symbol; ROOT has one.
        unary_rules: Rows (A, B), ascending.
        binary_rules: Rows (A, B, C), ascending.
        unary_weights: Blocks of weights one after the other.
        binary_weights: Blocks of weights one after the other.
        split_tree: For each cycle of splitting and merging, the number that every subcategory
            (counted through all symbols) had before the cycle; empty for an unsplit grammar.
        codes: The tables of codes that the weights were decoded from, if they were.

    Raises:
        ModelFileError: ``E_GRAMMAR`` if the arrays do not fit together.

    Examples:
        >>> grammar = Grammar(("ROOT", "X"), 1, np.array([1, 1], np.int32),
        ...     np.array([[0, 1]], np.int32), np.zeros((0, 3), np.int32), np.ones(1), np.zeros(0))
        >>> grammar.is_normalized(), grammar.total_substates
        (True, 2)
    """

    symbols: tuple[str, ...]
    phrasal: int
    substates: IntArray
    unary_rules: IntArray
    binary_rules: IntArray
    unary_weights: FloatArray
    binary_weights: FloatArray
    split_tree: tuple[IntArray, ...] = ()
    codes: Mapping[str, npt.NDArray[Any]] | None = None

    def __post_init__(self) -> None:
        self._check_symbols()
        for rules, weights, width, name in (
            (self.unary_rules, self.unary_weights, 2, "unary"),
            (self.binary_rules, self.binary_weights, 3, "binary"),
        ):
            self._check_rules(rules, weights, width, name)
        self._check_split_tree()

    def _repr_html_(self) -> str:
        from treelm.view.notebook import ranked_html

        rows = []
        for rules, starts, weights in (
            (self.unary_rules, self.unary_starts, self.unary_weights),
            (self.binary_rules, self.binary_starts, self.binary_weights),
        ):
            for number, rule in enumerate(rules.tolist()):
                block = weights[starts[number] : starts[number + 1]]
                parent, *children = (self.symbols[symbol] for symbol in rule)
                share = float(block.sum()) / int(self.substates[rule[0]])
                rows.append((f"{parent} → {' '.join(children)}", share))
        rows.sort(key=lambda row: (-row[1], row[0]))
        caption = f"Grammar of {len(self.symbols)} symbols, {self.total_substates} subcategories"
        return ranked_html(caption, ["rule", "mean probability"], rows, "rules")

    # -- where things are -------------------------------------------------------------------

    @cached_property
    def unary_starts(self) -> npt.NDArray[np.int64]:
        """Where the block of every unary rule begins, and the number of weights at the end."""
        return self._starts(self.unary_rules)

    @cached_property
    def binary_starts(self) -> npt.NDArray[np.int64]:
        """Where the block of every binary rule begins, and the number of weights at the end."""
        return self._starts(self.binary_rules)

    @cached_property
    def substate_starts(self) -> npt.NDArray[np.int64]:
        """Number of the first subcategory of every symbol, and of all at the end."""
        return np.concatenate([[0], np.cumsum(self.substates, dtype=np.int64)])

    @property
    def total_substates(self) -> int:
        """Number of subcategories of all symbols together."""
        return int(self.substate_starts[-1])

    @property
    def is_latent(self) -> bool:
        """Whether a symbol has more than one subcategory."""
        return bool((self.substates > 1).any())

    def unary_block(self, rule: int) -> FloatArray:
        """Return the weights of a unary rule, k_A x k_B."""
        first, last = self.unary_starts[rule], self.unary_starts[rule + 1]
        return self.unary_weights[first:last].reshape(self.substates[self.unary_rules[rule]])

    def binary_block(self, rule: int) -> FloatArray:
        """Return the weights of a binary rule, k_A x k_B x k_C."""
        first, last = self.binary_starts[rule], self.binary_starts[rule + 1]
        return self.binary_weights[first:last].reshape(self.substates[self.binary_rules[rule]])

    def _starts(self, rules: IntArray) -> npt.NDArray[np.int64]:
        sizes = self.substates.astype(np.int64)[rules].prod(axis=1)
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    # -- what it weighs ---------------------------------------------------------------------

    def rule_sums(self) -> FloatArray:
        """Return the total weight of the rules of every phrasal subcategory."""
        sums = np.zeros(int(self.substate_starts[self.phrasal]))
        for rules, weights, starts in (
            (self.unary_rules, self.unary_weights, self.unary_starts),
            (self.binary_rules, self.binary_weights, self.binary_starts),
        ):
            if not len(weights):
                continue
            parents, widths = self._parents(rules, starts)
            np.add.at(sums, parents, np.add.reduceat(weights, widths.cumsum() - widths))
        return sums

    def _parents(
        self, rules: IntArray, starts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the parents' subcategories of rules, in turn, and how many weights each has."""
        rows = self.substates.astype(np.int64)[rules[:, 0]]
        first = np.repeat(self.substate_starts[rules[:, 0]], rows)
        within = np.arange(len(first)) - np.repeat(np.cumsum(rows) - rows, rows)
        return first + within, np.repeat(np.diff(starts) // rows, rows)

    def normalized(self, codes: Mapping[str, npt.NDArray[Any]] | None = None) -> Grammar:
        """Return the grammar with weights that sum to one for every phrasal subcategory.

        Args:
            codes: The tables that its weights were decoded from.
        """
        sums = self.rule_sums()
        scale = 1.0 / np.where(sums > 0, sums, 1.0)
        weights = []
        for rules, own, starts in (
            (self.unary_rules, self.unary_weights, self.unary_starts),
            (self.binary_rules, self.binary_weights, self.binary_starts),
        ):
            parents, widths = self._parents(rules, starts)
            weights.append(own * np.repeat(scale[parents], widths))
        return replace(self, unary_weights=weights[0], binary_weights=weights[1], codes=codes)

    def is_normalized(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the rules of every phrasal subcategory sum to one."""
        return bool((np.abs(self.rule_sums() - 1.0) <= tolerance).all())

    def check_normalized(self, tolerance: float = TOLERANCE) -> None:
        """Refuse a grammar whose rules do not sum to one.

        Raises:
            EstimationError: ``E_NOT_NORMALIZED``, naming the subcategory.
        """
        sums = self.rule_sums()
        worst = int(np.argmax(np.abs(sums - 1.0))) if len(sums) else 0
        if len(sums) and not abs(sums[worst] - 1.0) <= tolerance:
            symbol = int(np.searchsorted(self.substate_starts, worst, side="right")) - 1
            raise EstimationError(
                f"the rules of {self.symbols[symbol]}, subcategory "
                f"{worst - int(self.substate_starts[symbol])}, sum to {sums[worst]:.9g}, not to "
                "1.",
                code="E_NOT_NORMALIZED",
            )

    # -- checks -----------------------------------------------------------------------------

    def _check_symbols(self) -> None:
        count = len(self.symbols)
        if not 1 <= count <= _MOST_SYMBOLS or self.symbols[0] != ROOT:
            raise _wrong(f"it has {count} symbols, and the first is not {ROOT}")
        if len(set(self.symbols)) < count or not all(self.symbols):
            raise _wrong("a symbol is empty or duplicate")
        if not 1 <= self.phrasal <= count:
            raise _wrong(f"{self.phrasal} of {count} symbols are declared to be phrases")
        if self.substates.dtype != np.int32 or self.substates.shape != (count,):
            raise _wrong("subcategories are not given as one 32-bit number per symbol")
        if self.substates[0] != 1 or (self.substates < 1).any():
            raise _wrong(f"{ROOT} has one subcategory, other symbols at least one")
        if (self.substates > MOST_SUBSTATES).any():
            raise _wrong(f"a symbol has more than {MOST_SUBSTATES} subcategories")

    def _check_rules(self, rules: IntArray, weights: FloatArray, width: int, name: str) -> None:
        if rules.dtype != np.int32 or rules.ndim != 2 or rules.shape[1] != width:
            raise _wrong(f"{name} rules are not rows of {width} 32-bit numbers")
        if rules.size and (rules.min() < 0 or rules.max() >= len(self.symbols)):
            raise _wrong(f"a {name} rule names a symbol that does not exist")
        if rules.size and rules[:, 0].max() >= self.phrasal:
            raise _wrong(f"a tag has a {name} rule; tags have only words")
        if rules.size and rules[:, 1:].min() == 0:
            raise _wrong(f"a {name} rule has {ROOT} on its right side")
        steps = np.diff(rules.astype(np.int64), axis=0)
        ascending = np.zeros(len(steps), dtype=np.bool_)
        for column in range(width - 1, -1, -1):
            ascending = (steps[:, column] > 0) | ((steps[:, column] == 0) & ascending)
        if not ascending.all():
            raise _wrong(f"{name} rules are not in ascending order, or one is duplicate")
        if weights.dtype != np.float64 or weights.shape != (int(self._starts(rules)[-1]),):
            raise _wrong(f"the weights of {name} rules do not fit their subcategories")
        problem = non_negative(weights)
        if problem is not None:
            raise _wrong(f'"{name}_weights" {problem}')

    def _check_split_tree(self) -> None:
        sizes = []
        for level in self.split_tree:
            if level.dtype != np.int32 or level.ndim != 1 or not len(level) or level.min() < 0:
                raise _wrong("the history of splits is not made of arrays of 32-bit numbers")
            sizes.append((len(level), int(level.max()) + 1))
        for (size, _), (_, before) in pairwise(sizes):
            if before != size:
                raise _wrong("the cycles of the history of splits do not follow from each other")
        if sizes and (sizes[-1][0] != self.total_substates or sizes[0][1] != len(self.symbols)):
            raise _wrong("the history of splits does not fit the subcategories")
        if sizes:
            symbol = np.arange(len(self.symbols), dtype=np.int64)
            for level in self.split_tree:
                symbol = symbol[level]
            own = np.repeat(np.arange(len(self.symbols)), self.substates)
            if not np.array_equal(symbol, own):
                raise _wrong("the history of splits mixes symbols")


def _wrong(what: str) -> ModelFileError:
    return ModelFileError(f"this is not a grammar: {what}.", code="E_GRAMMAR")
