"""Options of the composite model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from treelm.models.interface.model import Config
from treelm.models.interface.options import no_option
from treelm.transforms.binarize import Binarize
from treelm.transforms.transform import Pipeline
from treelm.transforms.unary_chains import LimitUnaryChains, MergeUnaryChains

#: Options that change how the search runs, but neither the tables nor what a state is.
SEARCH = ("stack_size", "threshold", "choice_beam", "merge", "eta", "adapt", "test_topics")


class CompositeConfig(Config):
    """What the word predictor sees, how parses are searched, and how all is trained.

    Examples:
        >>> CompositeConfig(order=3, heads=2).name
        '3-gram/2-SLM'
        >>> CompositeConfig(order=1, heads=2).name, CompositeConfig(order=5, heads=0).name
        ('2-SLM', '5-gram')
    """

    order: int = Field(default=3, ge=1, le=16)
    """Words of the predictor, the predicted one included; 1 for none before it."""
    heads: int = Field(default=2, ge=0, le=8)
    """Exposed heads that predictor, tagger and constructor see; 0 for no parses."""
    topics: int = Field(default=0, ge=0, le=65536)
    """Topics; 0 for none."""
    keep_topics: int = Field(default=5, ge=1)
    """Topics that a training document keeps."""
    test_topics: int = Field(default=5, ge=0)
    """Topics that predict in a new document; 0 for all. All are adapted."""
    eta: float = Field(default=0.01, gt=0, lt=1)
    """How fast the topics of a new document follow its words."""
    adapt: bool = True
    """Whether a document changes its topics at all; without, those of the corpus are used."""
    head_labels: bool = True
    """Whether the predictor sees the labels of heads beside their words."""
    unary_moves: bool = False
    """Whether a move may put a label over one constituent."""
    strict_heads: bool = False
    """Whether phrases without a rule for their head are refused; else the profile's default."""
    punctuation: Literal["keep", "remove"] = "keep"
    """Whether words with punctuation tags stay."""
    min_count: int = Field(default=2, ge=1)
    """Words seen less often are unknown, where no vocabulary is given."""
    stack_size: int | None = Field(default=10, ge=1)
    """Hypotheses kept for each number of moves; None for all."""
    threshold: float | None = Field(default=6.91, ge=0)
    """Nats below the best of its stack at which a hypothesis is dropped; None for never."""
    choice_beam: float = Field(default=1e-5, ge=0, lt=1)
    """Smallest probability of a tag or an adjoining move that is tried."""
    merge: bool = True
    """Whether hypotheses with the same heads and as many moves are summed when words are scored."""
    n_best: int = Field(default=10, ge=1)
    """Parses of a training sentence that are kept."""
    iterations: int = Field(default=1, ge=0, le=100)
    """Most iterations of N-best EM after the counts of the given trees."""
    follow_up: int = Field(default=1, ge=0, le=100)
    """Most iterations of the follow-up EM of the predictor."""
    cutoff: float | None = Field(default=None, ge=0)
    """Smallest fractional count of the predictor that is kept; None for the paper's: 0.005 with
    heads, 0.002 with heads and topics, nothing is dropped without heads."""
    tolerance: float = Field(default=1e-4, ge=0)
    """Relative gain of the log-likelihood below which EM ends."""
    seed: int = Field(default=0, ge=0)
    """Seed of the first topics."""

    @model_validator(mode="after")
    def _possible(self) -> CompositeConfig:
        if self.topics and self.keep_topics > self.topics:
            raise ValueError(f"keep_topics is {self.keep_topics}, but there are {self.topics}")
        return self

    @property
    def least_count(self) -> float:
        """Smallest fractional count of the predictor that is kept."""
        if self.cutoff is not None:
            return self.cutoff
        return (0.002 if self.topics else 0.005) if self.heads else 0.0

    @property
    def predicting(self) -> int:
        """Topics of a document that predict the next word."""
        return min(self.test_topics or self.topics, self.topics)

    @property
    def rate(self) -> float:
        """How fast topics change; 0 if they do not."""
        return self.eta if self.adapt else 0.0

    @property
    def name(self) -> str:
        """The name that tables give the model."""
        parts = []
        if self.order > 1 or not (self.heads or self.topics):
            parts.append(f"{self.order}-gram")
        if self.heads:
            parts.append(f"{self.heads}-SLM")
        if self.topics:
            parts.append("PLSA")
        return "/".join(parts)

    def pipeline(self) -> Pipeline:
        """Return what is done to trees before they become actions; heads must be known."""
        unary = LimitUnaryChains() if self.unary_moves else MergeUnaryChains(keep="tag")
        return Pipeline((unary, Binarize(direction="head", horizontal_order=0)))


class SlmConfig(CompositeConfig):
    """The options of a structured language model: heads, neither words before nor topics.

    Examples:
        >>> SlmConfig().composite().name
        '2-SLM'
    """

    order: int = no_option(1)
    topics: int = no_option(0)
    keep_topics: int = no_option(5)
    test_topics: int = no_option(5)
    eta: float = no_option(0.01)
    adapt: bool = no_option(default=True)
    seed: int = no_option(0)

    @model_validator(mode="after")
    def _heads_alone(self) -> SlmConfig:
        if self.order != 1 or self.topics:
            raise ValueError(
                "a structured language model predicts from heads alone; for words before or topics "
                "train a composite model"
            )
        return self

    def composite(self) -> CompositeConfig:
        """Return the same options as those of a composite model."""
        return CompositeConfig.model_validate(self.model_dump())
