"""Options of mixtures."""

from __future__ import annotations

from treelm.models.interface.model import Config


class InterpolatedConfig(Config):
    """What makes a mixture."""

    weights: tuple[float, ...]
    """One for each part; they add up to 1."""
    log_likelihood: float | None = None
    """Natural log likelihood of the held-out text under the weights found on it."""


class MixtureOptions(Config):
    """How a mixture is trained."""

    weights: tuple[float, ...] | None = None
    """Weights of the parts, which sum to 1. Default: found on held-out text."""
