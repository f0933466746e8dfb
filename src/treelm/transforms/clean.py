"""Cleaning: function tags, empty elements, dropped tags, flattened labels, ``X -> X``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from treelm import _native
from treelm.corpus.brackets import Problem, ReadOptions
from treelm.errors import CorpusFormatError
from treelm.transforms.transform import Transform, register, transform_from_config
from treelm.trees.packed import BATCH_TREES, PackedTrees
from treelm.trees.profile import ProfileSource, load_profile
from treelm.trees.tree import Tree


def clean(tree: Tree, profile: ProfileSource = "english") -> Tree:
    """Return the tree without function tags, empty elements, dropped and flattened labels.

    This is what the default reader does to a tree, but for the root and escaped words.

    Args:
        tree: A tree with whole labels, such as `Tree.from_string` gives.
        profile: Says which tags are empty or dropped and which labels are flattened.

    Raises:
        CorpusFormatError: ``E_EMPTY_TREE`` if nothing is left.

    Examples:
        >>> tree = Tree.from_string("(S (NP-SBJ-1 (PRP He)) (VP (VBD left) (NP (-NONE- *-1))))")
        >>> print(clean(tree))
        (S (NP (PRP He)) (VP (VBD left)))
    """
    return Clean(profile=profile).apply(tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTransform(Transform):
    """A transform done by the tree kernel, many trees per call."""

    profile: ProfileSource = "english"
    recipe: _native.TreeRecipe = field(init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        # The recipe is a kernel object, which cannot be pickled.
        return transform_from_config, (self.to_config(),)

    @property
    def invertible(self) -> bool:
        """False: labels and nodes are dropped."""
        return False

    def apply(self, tree: Tree) -> Tree:
        """Return the rewritten tree."""
        return next(self.apply_all([tree]))

    def apply_all(self, trees: Iterable[Tree]) -> Iterator[Tree]:
        """Yield the rewritten trees one by one."""
        rest = iter(trees)
        while batch := list(islice(rest, BATCH_TREES)):
            yield from self.apply_packed(PackedTrees.from_trees(batch))

    def apply_packed(self, trees: PackedTrees) -> PackedTrees:
        """Return the rewritten batch.

        Raises:
            CorpusFormatError: if a tree cannot be transformed or nothing is left of it.
        """
        done = self.recipe.apply(trees.native)
        for code, tree, line, column, excerpt in done.problems:
            text = excerpt.decode("utf-8", "backslashreplace")
            raise Problem(code, "<tree>", tree, line, column, text).as_error()
        if done.dropped:
            raise CorpusFormatError(
                "a tree contains nothing but empty elements, so nothing is left of it.",
                code="E_EMPTY_TREE",
            )
        return PackedTrees(done)

    def to_config(self) -> dict[str, object]:
        """Return the name and the options; the profile by name, or in full if it is your own."""
        config = Transform.to_config(self)
        return config | {"profile": load_profile(self.profile).to_config()}


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Clean(KernelTransform):
    """`clean` with its profile fixed."""

    name: ClassVar[str] = "clean"

    def __post_init__(self) -> None:
        recipe = ReadOptions(profile=self.profile).recipe()
        object.__setattr__(self, "recipe", recipe)
