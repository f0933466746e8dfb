"""Options of latent support vector machines."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from treelm.limits import LARGEST_COUNT, LARGEST_WEIGHT
from treelm.models.interface.config import Config

#: Regularisation weights that are tried, 10^-4 to 10^2 in half decades.
GRID = tuple(10 ** (half / 2) for half in range(-8, 5))


class LatentSvmConfig(Config):
    """How hidden trees are found and how their productions are weighed."""

    grammar: Literal["treebank", "uninformed"] = "treebank"
    """treebank: productions of the trees; uninformed: any tree over the tags of its words."""
    start: Literal["mle", "zero"] = "mle"
    """First weights: mle (log relative frequencies of the treebank) or zero. Default: mle, and
    zero for an uninformed grammar."""
    horizontal_order: int = Field(default=1, ge=0, le=16)
    """Number of sisters that an intermediate node remembers."""
    vertical_order: int = Field(default=2, ge=1, le=16)
    """Number of ancestors that a label remembers, the node itself included."""
    regularization: float | None = Field(default=None, gt=0, le=LARGEST_WEIGHT)
    """Weight of the squared norm. Default: the best of a grid in the first round."""
    rounds: int = Field(default=30, ge=0, le=1000)
    """Maximum number of rounds of parsing and fitting; 0 leaves the first weights as they are."""
    patience: int = Field(default=5, ge=1, le=LARGEST_COUNT)
    """Training stops after this many rounds without better accuracy on the tuning set."""
    parts: int = Field(default=1, ge=1, le=1000)
    """Number of parts of the training set; from the second round on, weights are fitted after
    each."""
    memory: bool = True
    """Bad sentences keep the trees of all rounds."""
    fixed_trees: bool = False
    """Parse once, with the treebank's weights, and weigh the productions of those trees."""
    tolerance: float = Field(default=1e-3, gt=0, lt=1)
    """Tolerance of the solver."""
    seed: int = Field(default=0, ge=0, lt=1 << 31)
    """Seed of the solver."""

    @model_validator(mode="before")
    @classmethod
    def _start_of(cls, options: Any) -> Any:
        """Start where the grammar lets one start, unless told otherwise."""
        if isinstance(options, dict) and options.get("start") is None:
            uninformed = options.get("grammar") == "uninformed"
            return {**options, "start": "zero" if uninformed else "mle"}
        return options

    @model_validator(mode="after")
    def _fits(self) -> LatentSvmConfig:
        if self.grammar == "uninformed" and (self.start == "mle" or self.fixed_trees):
            raise ValueError(
                "an uninformed grammar has no frequencies to start from: choose start zero, and "
                "no fixed trees"
            )
        if self.fixed_trees and self.start != "mle":
            raise ValueError("fixed trees are those of the treebank's frequencies: start is mle")
        return self
