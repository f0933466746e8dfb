"""Options of the incremental right-corner model."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from treelm.limits import LARGEST_COUNT, LARGEST_WEIGHT
from treelm.models.interface.config import WordModelConfig
from treelm.transforms.agreement import AnnotateAgreement
from treelm.transforms.binarize import Binarize, Direction
from treelm.transforms.markovize import AnnotateParents
from treelm.transforms.transform import Pipeline, Transform
from treelm.transforms.unary_chains import MergeUnaryChains

#: How unknown words are told: one symbol, classes by their form, or tags guessed from suffixes.
Observation = Literal["unk", "signature", "bayes"]

DEEPEST = 6
#: Words before that a parser state may remember.
LONGEST_CONTEXT = 4

_RECOMBINE = re.compile(r"exact|quantised|ignore|topk:[1-9][0-9]{0,5}")


class HhmmConfig(WordModelConfig):
    """What the grammar remembers, how deep the stack is, and how many parser states are kept.

    Examples:
        >>> HhmmConfig(depth=2).recombination
        ('quantised', 0)
        >>> HhmmConfig(recombine="topk:5").recombination
        ('topk', 5)
    """

    depth: int = Field(default=4, ge=1, le=DEEPEST)
    """Depth of the stack of incomplete constituents."""
    binarization: Direction = "right"
    """How nodes with more than two children are binarized; it changes how deep the trees are."""
    horizontal_order: int | None = Field(default=2, ge=0, le=LARGEST_COUNT)
    """Number of sisters that an intermediate node remembers; in Python, None for all."""
    vertical_order: int = Field(default=1, ge=1, le=2)
    """2 for labels that remember their parent."""
    annotation: Literal["none", "agreement"] = "none"
    """What else labels tell: agreement adds number to noun phrases and the form of the verb to verb
    phrases and clauses (English, Penn tags)."""
    unary: Literal["join", "top"] = "join"
    """Unary chains become one node: join keeps all labels, top only the highest."""
    estimation: Literal["conditioned", "counts"] = "conditioned"
    """The grammar conditioned on trees that fit the stack, or counts for each side and depth."""
    kappa: float = Field(default=20.0, gt=0, le=LARGEST_WEIGHT)
    """With counts: number of observations that the conditioned grammar is worth."""
    rule_min_count: int = Field(default=1, ge=1, le=LARGEST_COUNT)
    """Rules seen less often are left out, so that a grammar of much text stays small and fast."""
    observation: Observation = "signature"
    """How unknown words are represented, unless a vocabulary is given: signature (classes by
    word form: the best parses), unk (one symbol, as in plain n-gram models) or bayes (tags
    guessed from endings; such a model scores, but has no perplexity)."""
    min_count: int = Field(default=2, ge=1, le=LARGEST_COUNT)
    """Words seen less often are unknown, unless a vocabulary is given."""
    open_types: int = Field(default=50, ge=0, le=LARGEST_COUNT)
    """Tags with more word types than this may emit unseen words."""
    word_context: int = Field(default=0, ge=0, le=LONGEST_CONTEXT)
    """Number of words before from which a word is predicted beside its tag, through one back-off
    chain; 0 for the tag alone, as in the paper."""
    tag_context: int = Field(default=0, ge=0, le=LONGEST_CONTEXT)
    """Number of words before that make the next tag likelier or less likely than the stacks do;
    0 for none, as in the paper."""
    tag_power: float = Field(default=0.6, gt=0, le=1)
    """With tag_context: how much the words before count for the next tag; 1 as much as the
    stacks."""
    context_min_count: int = Field(default=1, ge=1, le=LARGEST_COUNT)
    """With word_context or tag_context: events of contexts of two words and more that were seen
    less often are left out, so that the model is smaller."""
    beam_width: int | None = Field(default=2000, ge=1, le=LARGEST_COUNT)
    """Number of parser states kept after a word; in Python, None for all."""
    beam_ratio: float = Field(default=0.0, ge=0, lt=1)
    """Parser states lighter than this share of the heaviest are dropped."""
    robust_epsilon: float = Field(default=1e-5, ge=0, lt=1)
    """Weight of the unigram model, so that no word is impossible and a parser that has lost
    track can restart."""
    precision: Literal["fast", "exact"] = "fast"
    """Weights of parser states in 32 bits (fast) or 64 (exact)."""
    recombine: str | None = None
    """Which states a decoder may merge: exact, quantised, topk:N or ignore. Default: by
    precision."""
    cache_mebibytes: int = Field(default=256, ge=0, le=1 << 20)
    """Size of the cache of earlier steps, in MiB."""

    @field_validator("recombine")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and not _RECOMBINE.fullmatch(value):
            raise ValueError("recombine is one of: exact, quantised, ignore, topk:N")
        return value

    @model_validator(mode="after")
    def _annotates_once(self) -> HhmmConfig:
        if self.annotation != "none" and self.vertical_order > 1:
            raise ValueError(f"annotation {self.annotation} cannot be combined with vertical_order")
        return self

    @model_validator(mode="after")
    def _remembers_known_words(self) -> HhmmConfig:
        if self.observation == "bayes" and self.remembers_words:
            name = "word_context" if self.word_context else "tag_context"
            raise ValueError(
                f"{name} cannot be combined with observation bayes, whose unknown words have no id"
            )
        return self

    @property
    def remembers_words(self) -> bool:
        """Whether a parser state knows the last words."""
        return self.word_context > 0 or self.tag_context > 0

    @model_validator(mode="after")
    def _sums_to_one(self) -> HhmmConfig:
        if self.unknown == "spelling" and self.observation == "bayes":
            raise ValueError(
                "unknown words are spelled where words sum to one: observation signature or unk"
            )
        return self

    @property
    def recombination(self) -> tuple[str, int]:
        """The kind of key, and how many stacks count for ``topk``."""
        kind = self.recombine or ("exact" if self.precision == "exact" else "quantised")
        name, _, count = kind.partition(":")
        return name, int(count or 0)

    def pipeline(self) -> Pipeline:
        """Return what is done to trees before they are counted."""
        steps: list[Transform] = []
        if self.vertical_order > 1:
            steps.append(AnnotateParents(vertical_order=self.vertical_order))
        if self.annotation == "agreement":
            steps.append(AnnotateAgreement())
        steps.append(MergeUnaryChains(keep="all" if self.unary == "join" else "top"))
        steps.append(Binarize(direction=self.binarization, horizontal_order=self.horizontal_order))
        return Pipeline(tuple(steps))

    def differs_in_search_only(self, other: HhmmConfig) -> bool:
        """Return whether another model of these options has the same grammar and states."""
        return self.model_copy(update=_search(other)) == other


#: Options that change how the search runs, but neither the grammar nor what a state is.
SEARCH = ("beam_width", "beam_ratio", "robust_epsilon", "recombine", "cache_mebibytes")


def _search(config: HhmmConfig) -> dict[str, object]:
    return {name: getattr(config, name) for name in SEARCH}
