"""Head children and lexical heads, by the rules of a language profile (Collins 1999)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treelm.trees.packed import PackedTrees
from treelm.trees.profile import ProfileSource, load_profile
from treelm.trees.tree import Tree


def find_heads(tree: Tree, profile: ProfileSource = "english") -> Tree:
    """Return the tree with the index of the head child on every phrase.

    Args:
        tree: Any tree; only base categories are looked at.
        profile: Name, file or object of the language profile.

    Example:
        >>> tree = find_heads(Tree.from_string("(NP (DT the) (NN dog) (PP (IN of) (NN war)))"))
        >>> tree.head, tree.children[2].head
        (1, 0)
    """
    return next(find_heads_all([tree], profile))


def find_heads_all(trees: Iterable[Tree], profile: ProfileSource = "english") -> Iterator[Tree]:
    """Yield each tree with head children filled in; faster than one call a tree."""
    packed = PackedTrees.from_trees(trees)
    heads = packed.native.find_heads(load_profile(profile).native)
    yield from packed.trees(heads)


def lexical_head(tree: Tree) -> Tree:
    """Return the preterminal reached by following head children down.

    Raises:
        ValueError: if a phrase with several children has no head child yet; see `find_heads`.

    Example:
        >>> lexical_head(find_heads(Tree.from_string("(NP (DT the) (NN dog))"))).word
        'dog'
    """
    node = tree
    while node.is_phrasal:
        if node.head is None and len(node.children) > 1:
            raise ValueError(f"{node.label} has no head child; call find_heads(tree) first")
        node = node.children[node.head or 0]
    return node
