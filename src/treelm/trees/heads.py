"""Head children and lexical heads, by the rules of a language profile (Collins 1999)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from treelm.characters import visible
from treelm.errors import UsageError
from treelm.trees.packed import BATCH_TREES, PackedTrees
from treelm.trees.profile import ProfileSource, load_profile
from treelm.trees.tree import Tree


def find_heads(tree: Tree, profile: ProfileSource = "english") -> Tree:
    """Return the tree with the index of the head child on every phrase.

    Args:
        tree: Any tree; only base categories matter.
        profile: Name, file or object of the language profile.

    Examples:
        >>> tree = find_heads(Tree.from_string("(NP (DT the) (NN dog) (PP (IN of) (NN war)))"))
        >>> tree.head, tree.children[2].head
        (1, 0)
    """
    return next(find_heads_all([tree], profile))


def find_heads_all(trees: Iterable[Tree], profile: ProfileSource = "english") -> Iterator[Tree]:
    """Yield each tree with head children filled in; faster than one call per tree."""
    rules = load_profile(profile).native
    rest = iter(trees)
    while batch := list(islice(rest, BATCH_TREES)):
        packed = PackedTrees.from_trees(batch)
        yield from packed.trees(packed.native.find_heads(rules))


def head_index(node: Tree) -> int:
    """Return the index of a phrase's head child; an only child is the head.

    Raises:
        UsageError: ``E_NO_HEAD`` if there are several children and the head is not known.
    """
    if len(node.children) == 1:
        return 0
    if node.head is None:
        raise UsageError(
            f'node "{visible(node.label)}" with {len(node.children)} children has no head child. '
            "Heads are filled in from a head table, not read from the treebank. "
            "Call treelm.trees.heads.find_heads(tree, profile) first.",
            code="E_NO_HEAD",
        )
    return node.head


def lexical_head(tree: Tree) -> Tree:
    """Return the preterminal reached by following head children down.

    Raises:
        UsageError: ``E_NO_HEAD`` if a phrase with several children has no head child yet.

    Examples:
        >>> lexical_head(find_heads(Tree.from_string("(NP (DT the) (NN dog))"))).word
        'dog'
    """
    while tree.is_phrasal:
        tree = tree.children[head_index(tree)]
    return tree
