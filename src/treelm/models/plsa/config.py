"""Options of PLSA and n-gram/PLSA models."""

from __future__ import annotations

from pydantic import Field, model_validator

from treelm.errors import option
from treelm.limits import LARGEST_COUNT, LARGEST_WEIGHT
from treelm.models.interface.config import WordModelConfig, no_option

#: Topics a document keeps where a predictor looks at words too (Tan et al. 2011).
KEPT_TOPICS = 5
#: More words than this are looked at by no n-gram that text can fill.
LARGEST_ORDER = 15
#: Topics have 16 bits.
MOST_TOPICS = 1 << 16


class PlsaConfig(WordModelConfig):
    """What a predictor with topics looks at, and how it is trained.

    Examples:
        >>> PlsaConfig(order=3).kept, PlsaConfig().kept, PlsaConfig(topics=3, order=2).kept
        (5, 200, 3)
    """

    order: int = Field(default=1, ge=1, le=LARGEST_ORDER)
    """Words in an n-gram, the predicted one included; 1 for PLSA alone."""
    topics: int = Field(default=200, ge=0, le=MOST_TOPICS)
    """Number of topics; 0 for n-grams alone."""
    keep_topics: int | None = Field(default=None, ge=1, le=LARGEST_COUNT)
    """Number of topics that a training document keeps. Default: 5, or all with order 1."""
    seed: int = Field(default=0, ge=0, lt=1 << 64)
    """Seed of the random topics that PLSA starts with."""
    plsa_iterations: int = Field(default=50, ge=1, le=LARGEST_COUNT)
    """Maximum number of PLSA iterations."""
    iterations: int = Field(default=10, ge=0, le=LARGEST_COUNT)
    """Maximum number of EM iterations for the predictor."""
    tolerance: float = Field(default=1e-4, ge=0, le=LARGEST_WEIGHT)
    """PLSA and EM stop when the relative gain of the log likelihood falls below this."""
    cutoff: float = Field(default=0.0, ge=0, le=LARGEST_WEIGHT)
    """Events with a smaller expected count are dropped."""
    eta: float = Field(default=0.01, gt=0, lt=1)
    """How much of a document's topic mixture one more word replaces."""
    adapt: bool = True
    """Adapt the topics to each document; otherwise those of the corpus are used."""
    test_topics: int = Field(default=KEPT_TOPICS, ge=0, le=LARGEST_COUNT)
    """Number of topics of a new document that predict its words; 0 for all."""

    kept_mass: float | None = no_option()
    """Mean share of the topics that documents keep, before the others were dropped; found by
    training."""
    held_out_perplexity: float | None = no_option()
    """Of the text on which weights were found; found by training."""

    @model_validator(mode="after")
    def _fits(self) -> PlsaConfig:
        if self.keep_topics is not None and self.keep_topics > max(self.topics, 1):
            raise ValueError(
                f"{option('keep_topics')} is {self.keep_topics}, and there are {self.topics} topics"
            )
        return self

    @property
    def kept(self) -> int:
        """Topics that a training document keeps."""
        if self.keep_topics is not None:
            return self.keep_topics
        return self.topics if self.order == 1 else min(KEPT_TOPICS, self.topics)

    @property
    def predicting(self) -> int:
        """Topics of a document that predict the next word."""
        return min(self.test_topics or self.topics, self.topics)

    @property
    def rate(self) -> float:
        """How fast topics change; 0 if they do not."""
        return self.eta if self.adapt else 0.0
