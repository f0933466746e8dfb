"""Options of treebank grammars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from treelm.corpus.corpus import TreeCorpus
from treelm.grammar.binary_trees import (
    BinaryTrees,
    Branching,
    build_binary_trees,
    transformed_batches,
)
from treelm.grammar.parser_options import Decoding
from treelm.limits import LARGEST_COUNT
from treelm.models.interface.config import WordModelConfig
from treelm.transforms.binarize import Binarize
from treelm.transforms.copies import COPY_SHARE, Copy
from treelm.transforms.markovize import AnnotateParents, BinarizeHeadOutward
from treelm.transforms.transform import Pipeline, Transform
from treelm.transforms.unary_chains import MergeUnaryChains
from treelm.trees.heads import find_heads_all
from treelm.trees.packed import PackedTrees
from treelm.trees.profile import ProfileSource
from treelm.trees.tree import Tree


class PcfgConfig(WordModelConfig):
    """What the rules of a treebank grammar remember, and how its lexicon is smoothed."""

    binarization: Literal["left", "right", "head"] = "left"
    """How nodes with more than two children are binarized; head builds outward from the head."""
    horizontal_order: int | None = Field(default=0, ge=0, le=LARGEST_COUNT)
    """Number of sisters that an intermediate node remembers; in Python, None for all."""
    vertical_order: int = Field(default=1, ge=1, le=16)
    """Number of ancestors that a label remembers, the node itself included; 2 is parent
    annotation."""
    merge_unary: bool = False
    """Make every unary chain one node."""
    lexicon: Literal["berkeley", "closed"] = "berkeley"
    """berkeley for parsing any text, closed for probabilities that sum to one."""
    rare: int = Field(default=20, ge=0, le=LARGEST_COUNT)
    """Words at or below this count train the unknown-word model."""
    beta: float = Field(default=0.01, gt=0, lt=1)
    """Weight of the unigram model in the closed lexicon."""
    copies: tuple[Copy, ...] = Field(default=(), strict=False)
    """Also count copies of some trees: unpunctuated (without the punctuation at the end),
    lowercase, bare (both)."""
    copy_share: float = Field(default=COPY_SHARE, gt=0, le=1)
    """Share of the trees that each kind of copy is made of."""
    decoding: Decoding = "max_rule_product"
    """What the parser maximizes when it chooses the best tree."""

    @model_validator(mode="after")
    def _fits(self) -> PcfgConfig:
        if self.binarization == "head" and self.horizontal_order is None:
            raise ValueError("head binarization remembers a whole number of sisters")
        if self.unknown == "spelling" and self.lexicon != "closed":
            raise ValueError("unknown words are spelled where words sum to one: lexicon closed")
        return self

    def pipeline(self) -> Pipeline:
        """Return what is done to trees before the kernel makes them binary."""
        steps: list[Transform] = []
        if self.vertical_order > 1:
            steps.append(AnnotateParents(vertical_order=self.vertical_order))
        if self.merge_unary:
            steps.append(MergeUnaryChains())
        if self.binarization == "head":
            steps.append(BinarizeHeadOutward(horizontal_order=self.horizontal_order))
        elif self.horizontal_order != 0:
            order = self.horizontal_order
            steps.append(Binarize(direction=self.binarization, horizontal_order=order))
        return Pipeline(tuple(steps))

    @property
    def _branching(self) -> Branching:
        return "right" if self.binarization == "right" else "left"

    def binary_trees(self, corpus: TreeCorpus) -> BinaryTrees:
        """Return the trees of a corpus as the grammar sees them."""
        batches = transformed_batches(corpus, self.pipeline())
        return build_binary_trees(batches, branching=self._branching)

    def binary_trees_of(self, trees: Sequence[Tree], profile: ProfileSource) -> BinaryTrees:
        """Return trees as the grammar sees them; the profile is that of its treebank."""
        pipeline = self.pipeline()
        if pipeline.steps:
            trees = list(pipeline.apply_all(find_heads_all(trees, profile)))
        packed = PackedTrees.from_trees(trees)
        return build_binary_trees([packed], branching=self._branching, keep_cycles=True)
