"""Options of a chart parser: what it prunes, and what it maximizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from treelm.errors import UsageError
from treelm.transforms.transform import check_choice

Pruning = Literal["fast", "default", "accurate", "none"]
Decoding = Literal["max_rule_product", "max_rule_sum", "variational", "viterbi"]
#: What becomes of sentences that are too long to be parsed as a whole.
Long = Literal["split", "flat", "refuse"]

#: What the scores of trees are, by what was maximized.
SCORES_OF_TREES: dict[Decoding, str] = {
    "max_rule_product": "the natural logarithm of the product of the expected numbers of its rules",
    "max_rule_sum": "the sum of the expected numbers of its rules",
    "variational": "its natural log probability under the variational approximation",
    "viterbi": "the natural log probability of its best derivation, words included",
}


class Thresholds(NamedTuple):
    """Pruning thresholds, as natural logarithms."""

    beam: float
    """Share of the most likely item of a span that others need in the coarsest chart."""
    levels: tuple[float, ...]
    """Per level, the smallest expected number of an item that survives."""
    edges: float = -3.5
    """Share of the first threshold that two children at one place of the coarsest chart need, by
    their expected number, for finer charts to join them."""


THRESHOLDS: dict[str, Thresholds] = {
    "fast": Thresholds(-8.0, (-7.0, -7.0, -6.0, -6.0, -7.0), -5.0),
    "default": Thresholds(-9.0, (-8.0, -8.0, -7.0, -7.0, -8.0)),
    "accurate": Thresholds(-np.inf, (-12.0, -12.0, -11.0, -12.0, -12.0, -14.0, -14.0), -7.0),
    "none": Thresholds(-np.inf, (-np.inf,)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserOptions:
    """Options of a chart parser.

    Args:
        pruning: fast, default, accurate, none, or your own thresholds; where there are more
            levels than thresholds, the last applies to the rest.
        decoding: What the best tree maximizes.
        max_unary: Longest chain of unary rules in a tree, the one below ROOT not counted.
        max_words: Longest sentence that is parsed as a whole.
        long: What becomes of longer ones: split parses pieces, cut at punctuation, and joins their
            trees under one root; flat gives flat trees; refuse raises ``E_TOO_LONG``.
        levels: Split-merge cycles whose grammars prune; None for every other one, which costs less
            than all of them and loses nothing. The coarsest and the finest are always used.
        k_max_pops: Maximum number of steps to find a k-best list; None for 20 times the trees
            requested.
    """

    pruning: Pruning | Thresholds = "default"
    decoding: Decoding = "max_rule_product"
    max_unary: int = 4
    max_words: int = 200
    long: Long = "split"
    levels: tuple[int, ...] | None = None
    k_max_pops: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.pruning, Thresholds):
            check_choice("pruning", self.pruning, THRESHOLDS)
        elif (
            not self.pruning.levels
            or np.isnan([self.pruning.beam, *self.pruning.levels, self.pruning.edges]).any()
        ):
            raise UsageError(
                "pruning thresholds need a beam and at least one level, all of them numbers."
            )
        check_choice("decoding", self.decoding, get_args(Decoding))
        check_choice("long", self.long, get_args(Long))
        if self.max_words < 1:
            raise UsageError(f"max_words is {self.max_words}; it must be 1 or more.")
        if self.max_unary < 0:
            raise UsageError(f"max_unary is {self.max_unary}; it must be 0 or more.")
        if self.k_max_pops is not None and self.k_max_pops < 1:
            raise UsageError(f"k_max_pops is {self.k_max_pops}; it must be 1 or more.")

    @property
    def thresholds(self) -> Thresholds:
        """The pruning thresholds."""
        pruning = self.pruning
        return pruning if isinstance(pruning, Thresholds) else THRESHOLDS[pruning]
