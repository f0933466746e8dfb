"""The results of a parser: trees, their scores, and how they were found."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from treelm.trees.tree import Tree


class ParseStatus(IntEnum):
    """How a tree was found."""

    PARSED = 0
    """With the requested pruning."""
    LOOSENED = 1
    """With looser pruning, after no parse was left."""
    UNPRUNED = 2
    """Without pruning, after no parse was left again."""
    FAILED = 3
    """No parse: the tree is a flat one with the most probable tags."""
    TOO_LONG = 4
    """Not parsed because the sentence is too long; the tree is a flat one."""
    SPLIT = 5
    """Parsed in pieces because the sentence is too long; the tree joins theirs under one root."""


class ScoredTree(NamedTuple):
    """A tree and its score."""

    tree: Tree
    score: float
    """Natural logarithm of what the decoding maximizes (for max_rule_sum the sum itself); minus
    infinity for a flat tree, NaN for one that joins pieces: it has none."""
    sentence_log_prob: float
    """Natural log probability of the words over all trees of the last chart, so the same for all
    trees of a sentence; a lower bound if it was pruned, NaN if only pieces were parsed."""
    status: ParseStatus = ParseStatus.PARSED
    tree_log_prob: float = math.nan
    """Natural log probability of this tree with its words, summed over subcategories; minus
    infinity for a fallback, NaN where there is no model to ask, as in a file of parses."""

    @property
    def is_fallback(self) -> bool:
        """Whether the grammar has no tree for the words, and this one replaces it."""
        return self.status >= ParseStatus.FAILED
