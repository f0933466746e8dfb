"""Options of mixtures."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, field_validator

from treelm.models.interface.config import Config

#: Share of a part, as people give it; those that are found may miss 1 by a rounding error.
Weight = Annotated[float, Field(ge=0, le=1)]


class InterpolatedConfig(Config):
    """What makes a mixture."""

    weights: tuple[float, ...] = Field(strict=False)
    """One for each part; they add up to 1."""
    log_likelihood: float | None = None
    """Natural log likelihood of the held-out text under the weights found on it; None if it is
    impossible under all parts."""

    @field_validator("log_likelihood", mode="before")
    @classmethod
    def _finite(cls, value: object) -> object:
        return None if value == -math.inf else value  # a manifest holds no infinity


class MixtureOptions(Config):
    """How a mixture is trained."""

    weights: tuple[Weight, ...] | None = Field(default=None, strict=False)
    """Weights of the parts, which sum to 1. Default: found on held-out text."""
