"""The interface of every model that samples sentences."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from treelm.models.interface.incremental import LONGEST_SAMPLE
from treelm.models.interface.scores import Sample


@runtime_checkable
class Sampler(Protocol):
    """Draws sentences."""

    def sample(
        self, count: int, *, seed: int, first: int = 0, max_words: int = LONGEST_SAMPLE
    ) -> list[Sample]:
        """Return sentences; sentence i depends on the seed and on i alone."""
