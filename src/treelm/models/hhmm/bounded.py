"""Grammars that know the side and the depth of every node, and so fit a bounded stack.

Schuler (2009); Schwartz et al. (2011), section 4. A node stands on a left or a right branch at a
depth of the stack; the probability that what is below it fits the stack follows from linear
systems, one for each side and depth, and with it the rules conditioned on fitting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelm.errors import EstimationError, option
from treelm.models.hhmm.linear import LinearSystem
from treelm.models.hhmm.rules import BinaryRules, Floats, Ints

_LEAK = 1e-12


@dataclass(frozen=True, eq=False)
class BoundedGrammar:
    """Rules of a grammar for each side and depth.

    Args:
        rules: The grammar.
        depth: Elements of the stack.
        left: Probability of each rule on a left branch, rows by depth; the first row is not used.
        right: The same on a right branch, from depth 0.
        fits_left: Probability that what is below a symbol fits, on a left branch, by depth up to
            one more than the stack has.
        fits_right: The same on a right branch.
    """

    rules: BinaryRules
    depth: int
    left: Floats
    right: Floats
    fits_left: Floats
    fits_right: Floats

    @property
    def fitting_share(self) -> float:
        """The probability that a tree of the grammar fits the stack."""
        return float(self.fits_right[0, 0])


def bound(rules: BinaryRules, depth: int) -> BoundedGrammar:
    """Return a grammar conditioned on fitting a stack of some depth.

    Raises:
        EstimationError: ``E_LOOP`` if a category goes on for ever, ``E_TOO_DEEP`` if no tree fits.
    """
    parent, left, right = rules.rules.T
    size = len(rules.symbols)
    on_left = np.zeros((depth + 1, len(parent)))
    on_right = np.zeros((depth + 1, len(parent)))
    fits_left = np.zeros((depth + 2, size))
    fits_right = np.zeros((depth + 1, size))
    fits_left[:, rules.phrasal :] = fits_right[:, rules.phrasal :] = 1.0
    for level in range(depth, -1, -1):
        below = rules.probabilities * fits_left[level + 1, left]
        _solve(rules, right, below, fits_right[level], "right")
        on_right[level] = _conditioned(parent, below * fits_right[level, right])
        if level > 0:
            below = rules.probabilities * fits_right[level, right]
            _solve(rules, left, below, fits_left[level], "left")
            on_left[level] = _conditioned(parent, below * fits_left[level, left])
    if not fits_right[0, 0] > 0:
        raise EstimationError(
            f"no tree of the grammar fits a stack of depth {depth}. Train with a larger "
            f"{option('depth')}.",
            code="E_TOO_DEEP",
        )
    return BoundedGrammar(rules, depth, on_left, on_right, fits_left, fits_right)


def with_counts(
    bounded: BoundedGrammar, left_counts: Floats, right_counts: Floats, kappa: float
) -> BoundedGrammar:
    """Return relative frequencies for each side and depth, backed off to the conditioned grammar.

    Args:
        bounded: The conditioned grammar.
        left_counts: How often each rule stands on left branches, rows by depth.
        right_counts: The same on right branches.
        kappa: How many observations the conditioned grammar is worth.
    """
    parent = bounded.rules.rules[:, 0]

    def mixed(counts: Floats, prior: Floats) -> Floats:
        rows = []
        for count, base in zip(counts, prior, strict=True):
            has_prior = np.bincount(parent, base, minlength=bounded.rules.phrasal)[parent] > 0
            rows.append(_conditioned(parent, np.where(has_prior, count + kappa * base, 0.0)))
        return np.array(rows)

    return BoundedGrammar(
        bounded.rules,
        bounded.depth,
        mixed(left_counts, bounded.left),
        mixed(right_counts, bounded.right),
        bounded.fits_left,
        bounded.fits_right,
    )


def _conditioned(parent: Ints, weights: Floats) -> Floats:
    """Return weights divided by the sums of their parents, 0 where that is 0."""
    sums = np.bincount(parent, weights)[parent]
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def _solve(rules: BinaryRules, child: Ints, weights: Floats, values: Floats, side: str) -> None:
    """Fill in ``values[parent] = sum of weights * values[child]``; those of tags are given."""
    parent = rules.rules[:, 0]
    phrase = child < rules.phrasal
    known = np.bincount(parent[~phrase], weights[~phrase], minlength=rules.phrasal)
    constant = known.astype(np.float64)
    row, column, weight = parent[phrase], child[phrase], weights[phrase]
    check_ends(row, column, weight, rules, side)
    system = LinearSystem(row, column, weight, rules.phrasal)
    values[: rules.phrasal] = np.clip(system.solve(constant[None, :])[0], 0.0, 1.0)


def check_ends(parent: Ints, child: Ints, weight: Floats, rules: BinaryRules, side: str) -> None:
    """Refuse categories from which nothing but themselves can be reached.

    Raises:
        EstimationError: ``E_LOOP``, naming them.
    """
    used = weight > 0
    parent, child = parent[used], child[used]
    ends = 1.0 - np.bincount(parent, weight[used], minlength=rules.phrasal) > _LEAK
    while True:
        reached = ends.copy()
        np.logical_or.at(reached, parent, ends[child])
        if (reached == ends).all():
            break
        ends = reached
    if not ends.all():
        endless = [symbol for symbol in np.flatnonzero(~ends).tolist() if symbol] or [0]
        names = [rules.symbols[symbol] for symbol in endless[:5]]
        raise EstimationError(
            f"{side}-recursive loop with probability 1: categories {', '.join(names)}. Each tree "
            "with one of them would go on for ever; give them a rule that ends.",
            code="E_LOOP",
        )
