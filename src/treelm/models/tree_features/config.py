"""Options of classifiers by features of trees."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from treelm.grammar.parser_options import Pruning
from treelm.limits import LARGEST_COUNT, LARGEST_WEIGHT
from treelm.models.interface.config import Config

FeatureSet = Literal["cfg", "tsg", "rerank"]

#: Regularisation weights that are tried, 10^-1 to 10^3.5 in half decades.
GRID = tuple(10 ** (half / 2) for half in range(-2, 8))


class TreeFeaturesConfig(Config):
    """What is counted in a tree, and how it is weighed."""

    features: FeatureSet = "rerank"
    """cfg: rules; tsg: fragments of trees; rerank: those of Charniak and Johnson (2005)."""
    min_sentences: int = Field(default=5, ge=1, le=LARGEST_COUNT)
    """Features of fewer training sentences are dropped."""
    regularization: float | None = Field(default=None, gt=0, le=LARGEST_WEIGHT)
    """Weight of the squared norm. Default: the best of a grid."""
    pruning: Pruning = "fast"
    """How a grammar prunes when it parses."""
    sweeps: int = Field(default=20, ge=0, le=10_000)
    """tsg: rounds of Gibbs sampling that find fragments."""
    min_fragment: int = Field(default=5, ge=1, le=LARGEST_COUNT)
    """tsg: larger fragments that were seen less often are dropped, since they overfit."""
    concentration: float = Field(default=10.0, gt=0, le=LARGEST_WEIGHT)
    """tsg: how readily the sampler creates new fragments."""
    stop: float = Field(default=0.8, gt=0, lt=1)
    """tsg: probability that a new fragment stops at a child."""
    seed: int = Field(default=0, ge=0, lt=1 << 31)
    """Seed of the sampler, the solver, and the choice of the tuning set."""
