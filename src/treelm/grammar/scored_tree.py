"""What a parser gives: trees, their scores, and how they were found."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from treelm.trees.tree import Tree


class ParseStatus(IntEnum):
    """How a tree was found."""

    PARSED = 0
    """With the pruning asked for."""
    LOOSENED = 1
    """After nothing was left, with looser pruning."""
    UNPRUNED = 2
    """After nothing was left again, without pruning."""
    FAILED = 3
    """Not at all: the tree is a flat one with the most probable tags."""
    TOO_LONG = 4
    """Not tried, because the sentence is too long; the tree is a flat one."""


class ScoredTree(NamedTuple):
    """A tree and what the parser thinks of it."""

    tree: Tree
    score: float
    """Natural logarithm of what the decoding maximizes (for max_rule_sum the sum itself)."""
    log_prob: float
    """Natural log probability of the words in the last chart; a lower bound if it was pruned."""
    status: ParseStatus = ParseStatus.PARSED

    @property
    def is_fallback(self) -> bool:
        """Whether the grammar has no tree for the words, and this one stands in for it."""
        return self.status >= ParseStatus.FAILED
