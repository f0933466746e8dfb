"""Options of grammars with latent annotations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from treelm.grammar.estimate_lexicon import LexiconOptions
from treelm.grammar.extend_lexicon import DictionaryOptions
from treelm.grammar.split_merge import SmoothingScope, SplitMergeOptions
from treelm.limits import LARGEST_COUNT, LARGEST_WEIGHT
from treelm.models.interface.config import WordModelConfig
from treelm.transforms.copies import COPY_SHARE, Copy
from treelm.trees.profile import ProfileSource

#: Subcategories double in a cycle: more would not fit into any memory.
MOST_CYCLES = 8


class PcfgLaConfig(WordModelConfig):
    """How a grammar is split, merged and smoothed; defaults are those of Petrov et al. (2006).

    Examples:
        >>> PcfgLaConfig(seed=1).cycles
        6
    """

    cycles: int = Field(default=6, ge=0, le=MOST_CYCLES)
    """Number of split-merge cycles; 5 are enough for small treebanks."""
    split_iterations: int = Field(default=50, ge=0, le=10_000)
    """EM iterations after a split."""
    merge_iterations: int = Field(default=20, ge=0, le=10_000)
    """EM iterations after a merge."""
    smooth_iterations: int = Field(default=10, ge=0, le=10_000)
    """EM iterations with smoothing."""
    merge_fraction: float = Field(default=0.5, ge=0.0, le=1.0)
    """Share of the splits that is undone by merging."""
    noise: float = Field(default=0.01, ge=0.0, lt=1.0)
    """Largest relative change of a weight when it is split."""
    rule_smoothing: float = Field(default=0.01, ge=0.0, lt=1.0)
    """How far rule probabilities are moved towards their mean over subcategories."""
    lexical_smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    """The same for words under tags."""
    smoothing_scope: SmoothingScope = "all"
    """all for the mean over all subcategories, branch for the mean over those below the same
    first split, which parses less well."""
    rule_filter: float = Field(default=1e-30, ge=0.0, lt=1e-3)
    """Rules with smaller probabilities are dropped."""
    lexicon: Literal["berkeley", "closed"] = "berkeley"
    """berkeley for parsing any text, closed for probabilities that sum to one."""
    beta: float = Field(default=0.01, gt=0.0, lt=1.0)
    """Weight of the unigram model in the closed lexicon."""
    rare: int = Field(default=20, ge=0, le=LARGEST_COUNT)
    """Words at or below this count train the unknown-word model."""
    tie_rare_words: bool = True
    """Rare words of a tag share one distribution over subcategories already during training;
    with the closed lexicon each learns its own."""
    unknown_smoothing: float = Field(default=0.5, ge=0.0, le=LARGEST_WEIGHT)
    """Weight of rare words in general relative to those with the same signature."""
    known_smoothing: float = Field(default=0.1, ge=0.0, le=LARGEST_WEIGHT)
    """Weight of rare words in general relative to the word itself."""
    dictionary_min_count: int = Field(default=2, ge=1, le=LARGEST_COUNT)
    """With a dictionary: leave words out that are rarer there, and new."""
    dictionary_weight: float = Field(default=0.3, gt=0.0, le=LARGEST_WEIGHT)
    """With a dictionary: weight of a word there, where one of the training trees has 1."""
    copies: tuple[Copy, ...] = Field(default=(), strict=False)
    """Also train on copies of some trees: unpunctuated (without the punctuation at the end),
    lowercase, bare (both)."""
    copy_share: float = Field(default=COPY_SHARE, gt=0.0, le=1.0)
    """Share of the trees that each kind of copy is made of."""
    seed: int = Field(ge=0, lt=1 << 63)
    """Seed of the noise that breaks the symmetry of a split."""

    @model_validator(mode="after")
    def _sums_to_one(self) -> PcfgLaConfig:
        if self.unknown == "spelling" and self.lexicon != "closed":
            raise ValueError("unknown words are spelled where words sum to one: lexicon closed")
        return self

    def training(self) -> SplitMergeOptions:
        """Return the constants of the training."""
        return SplitMergeOptions(
            split_iterations=self.split_iterations,
            merge_iterations=self.merge_iterations,
            smooth_iterations=self.smooth_iterations,
            merge_fraction=self.merge_fraction,
            noise=self.noise,
            rule_smoothing=self.rule_smoothing,
            lexical_smoothing=self.lexical_smoothing,
            smoothing_scope=self.smoothing_scope,
            rule_filter=self.rule_filter,
            seed=self.seed,
        )

    def dictionary_options(self) -> DictionaryOptions:
        """Return how words of a dictionary enter the lexicon."""
        return DictionaryOptions(
            min_count=self.dictionary_min_count, weight=self.dictionary_weight, rare=self.rare
        )

    def lexicon_options(self, profile: ProfileSource) -> LexiconOptions:
        """Return the constants of the lexicon; the profile is that of the signatures."""
        return LexiconOptions(
            rare=self.rare,
            unknown_smoothing=self.unknown_smoothing,
            known_smoothing=self.known_smoothing,
            alpha=self.lexical_smoothing,
            beta=self.beta,
            profile=profile,
        )
