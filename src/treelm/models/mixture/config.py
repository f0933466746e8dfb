"""Options of mixtures."""

from __future__ import annotations

from treelm.models.interface.model import Config


class InterpolatedConfig(Config):
    """What makes a mixture."""

    weights: tuple[float, ...]
    """One for each part; they add up to 1."""
    log_likelihood: float | None = None
    """Natural log likelihood of the held-out text under the weights found on it."""
