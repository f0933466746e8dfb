"""Options of the composite model."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from treelm.errors import option
from treelm.limits import LARGEST_COUNT, LARGEST_SEED, LARGEST_WEIGHT
from treelm.models.interface.config import WordModelConfig, no_option
from treelm.transforms.binarize import Binarize
from treelm.transforms.transform import Pipeline
from treelm.transforms.unary_chains import LimitUnaryChains, MergeUnaryChains

#: Options that change how the search runs, but neither the tables nor what a state is.
SEARCH = ("stack_size", "threshold", "choice_beam", "merge", "eta", "adapt", "test_topics")


class CompositeConfig(WordModelConfig):
    """What the word predictor sees, how parses are searched, and how all is trained.

    Examples:
        >>> CompositeConfig(order=3, heads=2).name
        '3-gram/2-SLM'
        >>> CompositeConfig(order=1, heads=2).name, CompositeConfig(order=5, heads=0).name
        ('2-SLM', '5-gram')
    """

    order: int = Field(default=3, ge=1, le=16)
    """Words in an n-gram, the predicted one included; 1 for none before it."""
    heads: int = Field(default=2, ge=0, le=8)
    """Number of exposed heads that predictor, tagger and constructor see; 0 for no parses."""
    topics: int = Field(default=0, ge=0, le=65536)
    """Number of topics; 0 for none."""
    keep_topics: int = Field(default=5, ge=1, le=LARGEST_COUNT)
    """Number of topics that a training document keeps."""
    test_topics: int = Field(default=5, ge=0, le=LARGEST_COUNT)
    """Number of topics that predict in a new document; 0 for all. All are adapted."""
    eta: float = Field(default=0.01, gt=0, lt=1)
    """How fast the topics of a new document follow its words."""
    adapt: bool = True
    """Adapt the topics to each document; otherwise those of the corpus are used."""
    head_labels: bool = True
    """The predictor sees the labels of heads besides their words."""
    unary_moves: bool = False
    """Moves may put a label over one constituent; otherwise unary chains are collapsed."""
    strict_heads: bool = False
    """Refuse phrases for which the profile has no head rule, instead of using its default."""
    punctuation: Literal["keep", "remove"] = "keep"
    """Keep or remove words with punctuation tags."""
    min_count: int = Field(default=2, ge=1, le=LARGEST_COUNT)
    """Words seen less often are unknown, unless a vocabulary is given."""
    stack_size: int | None = Field(default=10, ge=1, le=LARGEST_COUNT)
    """Number of hypotheses kept for each number of moves; in Python, None for all."""
    threshold: float | None = Field(default=6.91, ge=0, le=LARGEST_WEIGHT)
    """A hypothesis this many nats below the best of its stack is dropped; in Python, None for
    never."""
    choice_beam: float = Field(default=1e-5, ge=0, lt=1)
    """Smallest probability of a tag or an adjoining move that is tried."""
    merge: bool = True
    """Sum hypotheses with the same heads and the same number of moves when words are scored."""
    n_best: int = Field(default=10, ge=1, le=LARGEST_COUNT)
    """Number of parses of a training sentence that EM counts."""
    iterations: int = Field(default=1, ge=0, le=100)
    """Maximum number of rounds of N-best EM after the counts of the given trees; 0 for none."""
    follow_up: int = Field(default=1, ge=0, le=100)
    """Maximum number of rounds of follow-up EM of the predictor; 0 for none."""
    cutoff: float | None = Field(default=None, ge=0, le=LARGEST_WEIGHT)
    """Smallest fractional count of the predictor that is kept. Default: 0.005 with heads, 0.002
    with heads and topics, 0 without heads."""
    tolerance: float = Field(default=1e-4, ge=0, le=LARGEST_WEIGHT)
    """EM stops when the relative gain of the log likelihood falls below this."""
    seed: int = Field(default=0, ge=0, le=LARGEST_SEED)
    """Seed of the first topics."""

    @model_validator(mode="after")
    def _possible(self) -> CompositeConfig:
        if self.topics and self.keep_topics > self.topics:
            raise ValueError(
                f"{option('keep_topics')} is {self.keep_topics}, but there are {self.topics}"
            )
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

    def composite(self) -> CompositeConfig:
        """Return the options that the model is saved with."""
        return self

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

    @model_validator(mode="before")
    @classmethod
    def _heads_alone(cls, options: Any) -> Any:
        if isinstance(options, dict) and (options.get("order", 1) != 1 or options.get("topics")):
            raise ValueError(
                "a structured language model predicts from heads alone; for words before or topics "
                "train a composite model"
            )
        return options

    def composite(self) -> CompositeConfig:
        """Return the same options as those of a composite model, which the model is saved as."""
        return CompositeConfig.model_validate(self.model_dump())
