"""The nine transforms of the treelet model (Pauls & Klein 2012), by name and in order.

The work is done in the kernel, driven by the language profile; slow Python versions live in the
tests as an oracle.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from treelm import _native
from treelm.corpus.brackets import ReadOptions
from treelm.errors import TreelmWarning, UsageError
from treelm.transforms.clean import KernelTransform
from treelm.transforms.temporal_lexicon import annotation_form
from treelm.transforms.transform import check_choice, register
from treelm.trees.profile import ProfileSource, load_profile
from treelm.trees.tree import Tree

VerbLabel = Literal["lowest", "highest"]

#: T1 to T9, in the order in which they are applied.
TREELET_TRANSFORMS = (
    "temporal_nouns",
    "head_annotation",
    "np_flattening",
    "number_classes",
    "sbar_flattening",
    "vp_flattening",
    "gapped_sentences",
    "parent_annotation",
    "unary_deletion",
)


def transforms_without(names: Collection[str]) -> tuple[str, ...]:
    """Return the treelet transforms that remain when some are left out.

    Raises:
        UsageError: for a name that none of them has.
    """
    for name in names:
        if name not in TREELET_TRANSFORMS:
            raise UsageError(
                f'there is no treelet transform "{name}"; there are: '
                f"{', '.join(TREELET_TRANSFORMS)}."
            )
    return tuple(name for name in TREELET_TRANSFORMS if name not in names)


def treelet(
    tree: Tree,
    *,
    profile: ProfileSource = "english",
    temporal: Collection[str] | None = None,
    transforms: Collection[str] = TREELET_TRANSFORMS,
    vp_label: VerbLabel = "lowest",
) -> Tree:
    """Return the tree after the treelet transforms.

    Args:
        tree: A clean tree with ``ROOT`` on top.
        profile: Language profile that names the categories.
        temporal: Temporal nouns for T1, in any case; see `TemporalLexicon`. None warns that T1 will
            change nothing; an empty collection says that this is intended.
        transforms: Which of `TREELET_TRANSFORMS` to apply; their order is fixed.
        vp_label: Whether a flattened verb phrase keeps the annotation of the lowest or the highest.

    Examples:
        >>> tree = Tree.from_string("(ROOT (S (NP (PRP He)) (VP (MD will) (VP (VB go))) (. .)))")
        >>> print(treelet(tree, temporal=()))
        (ROOT (S-MD^ROOT (PRP-he He) (VP-VB^S (MD will) (VB go)) (. .)))
    """
    return Treelet(
        profile=profile,
        temporal=temporal,
        transforms=frozenset(transforms),
        vp_label=vp_label,
    ).apply(tree)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Treelet(KernelTransform):
    """`treelet` with its options fixed."""

    name: ClassVar[str] = "treelet"

    temporal: Collection[str] | None = None
    transforms: frozenset[str] = frozenset(TREELET_TRANSFORMS)
    vp_label: VerbLabel = "lowest"

    def __post_init__(self) -> None:
        if self.temporal is None:
            self._warn_without_temporal_nouns()
        if isinstance(self.temporal, str):
            raise UsageError("temporal must be a collection of words, not a string.")
        words = frozenset(annotation_form(word) for word in self.temporal or ())
        object.__setattr__(self, "temporal", words)
        object.__setattr__(self, "transforms", frozenset(self.transforms))
        for transform in self.transforms:
            check_choice("transforms", transform, TREELET_TRANSFORMS)
        check_choice("vp_label", self.vp_label, get_args(VerbLabel))
        recipe = self.recipe_with(ReadOptions(profile=self.profile, strip=False))
        object.__setattr__(self, "recipe", recipe)

    def _warn_without_temporal_nouns(self) -> None:
        has_tags = bool(load_profile(self.profile).treelet.temporal_tags)
        if has_tags and "temporal_nouns" in self.transforms:
            warnings.warn(
                "no temporal nouns were given, so T1 (temporal_nouns) changes nothing. Collect "
                "them with TemporalLexicon.collect from a treebank that has function tags.",
                TreelmWarning,
                stacklevel=4,
            )

    def recipe_with(self, options: ReadOptions) -> _native.TreeRecipe:
        """Return the kernel's recipe that reads with `options` and then applies this transform."""
        return options.recipe(
            treelet=sum(
                1 << bit for bit, name in enumerate(TREELET_TRANSFORMS) if name in self.transforms
            ),
            lowest_verb_label=self.vp_label == "lowest",
            temporal=self.temporal or (),
        )
