"""Options of head-lexicalised models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from treelm.estimation.chain import ChainCounts
from treelm.estimation.estimate import Precision
from treelm.estimation.kneser_ney import kneser_ney, modified_kneser_ney
from treelm.estimation.smoothing import Smoothing
from treelm.models.interface.packed_tree_model import PackedTreeConfig


class HeadlexConfig(PackedTreeConfig):
    """How the counts of a head-lexicalised model become probabilities."""

    smoothing: Literal["kn", "mkn"] = "kn"
    """kn (Kneser-Ney) or mkn (modified Kneser-Ney)."""
    discount: float | None = Field(default=None, ge=0, le=1)
    """With kn: discount of every count at every level. Default: estimated."""
    precision: Precision = "single"
    """How probabilities are stored."""

    @model_validator(mode="after")
    def _fits(self) -> HeadlexConfig:
        if self.discount is not None and self.smoothing != "kn":
            raise ValueError("a fixed discount goes with smoothing kn only")
        return self

    def smooth(self, counts: ChainCounts) -> Smoothing:
        """Return what is done to the counts of a chain."""
        if self.discount is not None:
            return kneser_ney(counts, fixed=[self.discount] * len(counts))
        return modified_kneser_ney(counts) if self.smoothing == "mkn" else kneser_ney(counts)
