"""Options of support vector machines over n-grams."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from treelm.limits import LARGEST_WEIGHT
from treelm.models.interface.config import Config


class TrigramSvmConfig(Config):
    """The kernel and how it is fitted."""

    kernel: Literal["linear", "poly"] = "linear"
    """linear, or poly: (1 + u.v)^3 by Nystroem's approximation."""
    regularization: float | None = Field(default=None, gt=0, le=LARGEST_WEIGHT)
    """Weight of the squared norm. Default: the best of a grid."""
    components: int = Field(default=2000, ge=1, le=20_000)
    """Number of landmarks of the approximation."""
    seed: int = Field(default=0, ge=0, lt=1 << 31)
    """Seed of the landmarks, the solver, and the choice of the tuning set."""
