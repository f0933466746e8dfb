"""Options of rankers of trees."""

from __future__ import annotations

from pydantic import Field

from treelm.limits import LARGEST_COUNT, LARGEST_WEIGHT
from treelm.models.interface.config import Config

#: Weights of the squared norm that are tried.
GRID = (0.3, 1.0, 3.0, 10.0, 30.0)


class TreeRankerConfig(Config):
    """What a ranker learns from, and how."""

    k: int = Field(default=30, ge=2, le=1000)
    """Number of trees of a sentence among which it chooses."""
    folds: int = Field(default=5, ge=1, le=100)
    """Parts of the treebank; the trees of each come from a parser trained like the given one on the
    other parts. With 1 the given parser parses all of them, so it must not know them."""
    min_sentences: int = Field(default=5, ge=1, le=LARGEST_COUNT)
    """Features that tell trees apart in fewer training sentences are dropped."""
    regularization: float | None = Field(default=None, gt=0, le=LARGEST_WEIGHT)
    """Weight of the squared norm of all weights. Default: the best of 0.3, 1, 3, 10 and 30 on a
    tenth of the sentences, which train nothing else."""
    iterations: int = Field(default=60, ge=1, le=10_000)
    """Most steps of the optimizer (L-BFGS)."""
