"""The right-corner transform, and the depth of memory that a tree needs.

Schuler et al. (2010), "Broad-coverage parsing using human-like memory constraints": right-branching
structure becomes left-branching, so that a bounded stack suffices to recognize it word by word.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from treelm.characters import visible
from treelm.errors import CorpusFormatError
from treelm.transforms.transform import Transform, register
from treelm.trees.label import Label
from treelm.trees.tree import Tree

Side = Literal["L", "R"]


def right_corner(tree: Tree) -> Tree:
    """Return the right-corner transform of a binary tree.

    A node A with the right spine ``A -> L0 Y1, Y1 -> L1 Y2, .., -> L(k-1) Yk`` becomes
    ``A -> A/Yk Yk``, ``A/Y(i+1) -> A/Yi RC(Li)``, ``A/Y1 -> RC(L0)``; preterminals stay. ``A/Y``
    reads: an A that lacks a Y at its right end. If the top node has one child (ROOT over a
    sentence), it stays and its child is transformed. Head indices inside phrases are dropped.

    Raises:
        CorpusFormatError: ``E_NOT_BINARY`` if any other phrase does not have exactly two children.

    Examples:
        >>> noun_phrase = Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")])
        >>> tree = Tree("S", [noun_phrase, Tree("VP", [Tree("MD", "can"), Tree("VB", "go")])])
        >>> print(right_corner(tree))
        (S (S/VB (S/VP (NP (NP/NN (DT the)) (NN dog))) (MD can)) (VB go))
        >>> undo_right_corner(right_corner(tree)) == tree
        True
    """
    return _under_top(tree, _sentence(tree).fold(_grow_spine).transformed())


def undo_right_corner(tree: Tree) -> Tree:
    """Return the binary tree whose right-corner transform this is.

    The inverse goes by structure and never looks for a slash: A is known from the node on which
    its incomplete constituents hang, and Y is what follows ``A/``. So categories may contain
    slashes.

    Raises:
        CorpusFormatError: ``E_NOT_RIGHT_CORNER`` if the tree is not such a transform.
    """
    return _under_top(tree, _sentence(tree).fold(_grow_corner).restored())


@dataclass(frozen=True, slots=True)
class BranchDepth:
    """Where a node stands: on a left or right branch, at which depth of the stack."""

    node: Tree
    side: Side
    depth: int


def branch_depths(tree: Tree) -> tuple[BranchDepth, ...]:
    """Return the branch side and depth of every node of a binary tree, in preorder.

    The sentence is at (L, 1). Under a node at (R, d) the left child is at (L, d + 1), under one at
    (L, d) at (L, d); a right child is at (R, d). A top node with one child is the symbol
    over the sentence, at (R, 0).

    Raises:
        CorpusFormatError: ``E_NOT_BINARY`` as in `right_corner`.

    Examples:
        >>> tree = Tree("S", [Tree("NP", "I"), Tree("VP", [Tree("MD", "can"), Tree("VB", "go")])])
        >>> [(str(place.node.label), place.side, place.depth) for place in branch_depths(tree)]
        [('S', 'L', 1), ('NP', 'L', 1), ('VP', 'R', 1), ('MD', 'L', 2), ('VB', 'R', 1)]
    """
    places = [] if _sentence(tree) is tree else [BranchDepth(tree, "R", 0)]
    stack = [BranchDepth(_sentence(tree), "L", 1)]
    while stack:
        place = stack.pop()
        places.append(place)
        if place.node.word is None:
            left, right = _two_children(place.node)
            left_depth = place.depth + 1 if place.side == "R" else place.depth
            stack.append(BranchDepth(right, "R", place.depth))
            stack.append(BranchDepth(left, "L", left_depth))
    return tuple(places)


def required_depth(tree: Tree) -> int:
    """Return the number of stack elements needed to recognize a binary tree.

    It is the greatest depth of a phrase on a left branch (a tag there may be one deeper); 0 for a
    sentence of one word.

    Raises:
        CorpusFormatError: ``E_NOT_BINARY`` as in `right_corner`.

    Examples:
        >>> required_depth(Tree("S", [Tree("NP", "I"), Tree("VP", "go")]))
        1
    """
    return max(
        (
            place.depth
            for place in branch_depths(tree)
            if place.side == "L" and place.node.is_phrasal
        ),
        default=0,
    )


@dataclass(frozen=True, slots=True)
class _Spine:
    """A right spine that may still grow upwards: (label, RC of left child) from the bottom."""

    last: Tree
    steps: list[tuple[Label, Tree]] = field(default_factory=list)

    def transformed(self) -> Tree:
        """Return the right-corner transform of the spine, a preterminal if it has no steps."""
        if not self.steps:
            return self.last
        top = self.steps[-1][0]
        labels = [*(label for label, _ in reversed(self.steps[:-1])), self.last.label]
        lefts = [left for _, left in reversed(self.steps)]
        corner = Tree(f"{top}/{labels[0]}", [lefts[0]])
        for label, left in zip(labels[1:], lefts[1:], strict=True):
            corner = Tree(f"{top}/{label}", [corner, left])
        return Tree(top, [corner, self.last])


def _grow_spine(node: Tree, below: list[_Spine]) -> _Spine:
    """Return the spine of a node: its right child's, with one more step."""
    if node.word is not None:
        return _Spine(node)
    _two_children(node)
    left, right = below
    right.steps.append((node.label, left.transformed()))
    return right


@dataclass(frozen=True, slots=True)
class _Corner:
    """A node of a transformed tree that its parent treats as incomplete (A/Y) or complete (A)."""

    node: Tree
    last: Tree
    inner: list[tuple[Label, Tree]] = field(default_factory=list)

    def incomplete(self) -> list[tuple[Label, Tree]]:
        """Return (label, restored last child) of the nodes A/Y1 .. A/Yi up to this one."""
        if self.node.word is not None:
            raise _not_right_corner(self.node)
        self.inner.append((self.node.label, self.last))
        return self.inner

    def restored(self) -> Tree:
        """Return the tree of this node as A, with its right spine built up from the bottom."""
        if self.node.word is not None:
            return self.node
        prefix = f"{self.node.label}/"
        if not self.inner or not all(label.startswith(prefix) for label, _ in self.inner):
            raise _not_right_corner(self.node)
        missing = [label[len(prefix) :] for label, _ in self.inner]
        if not self.last.is_preterminal or self.last.label != missing[-1]:
            raise _not_right_corner(self.node)
        tree = self.last
        labels = [self.node.label, *missing[:-1]]
        for label, (_, left) in zip(reversed(labels), reversed(self.inner), strict=True):
            tree = Tree(label, [left, tree])
        return tree


def _grow_corner(node: Tree, below: list[_Corner]) -> _Corner:
    """Return a node with what is restored below it; all but a left child there are complete."""
    if len(below) > 2:
        raise _not_right_corner(node)
    if not below:
        return _Corner(node, node)
    inner = below[0].incomplete() if len(below) == 2 else []
    return _Corner(node, below[-1].restored(), inner)


def _sentence(tree: Tree) -> Tree:
    """Return the tree without a top node that has one child."""
    return tree.children[0] if len(tree.children) == 1 else tree


def _under_top(tree: Tree, sentence: Tree) -> Tree:
    """Return another sentence under the top node that `_sentence` took away, if it did."""
    return tree.replace(content=[sentence]) if len(tree.children) == 1 else sentence


def _two_children(node: Tree) -> tuple[Tree, Tree]:
    if len(node.children) != 2:
        raise CorpusFormatError(
            f'node "{visible(node.label)}" has {len(node.children)} children where a binary '
            "tree needs 2. The right-corner transform and its depths are defined on binary trees "
            "only. Apply merge_unary_chains and binarize first.",
            code="E_NOT_BINARY",
        )
    return node.children[0], node.children[1]


def _not_right_corner(node: Tree) -> CorpusFormatError:
    return CorpusFormatError(
        f'node "{visible(node.label)}" does not have the form that the right-corner transform '
        "gives, A -> A/Y Y. Was the tree transformed, and are all steps after that undone? "
        "Call right_corner first, or undo the later steps.",
        code="E_NOT_RIGHT_CORNER",
    )


@register
@dataclass(frozen=True, slots=True)
class RightCorner(Transform):
    """`right_corner` as a step of a pipeline."""

    name: ClassVar[str] = "right_corner"

    def apply(self, tree: Tree) -> Tree:
        """Return `right_corner` of the tree."""
        return right_corner(tree)

    def undo(self, tree: Tree) -> Tree:
        """Return `undo_right_corner` of the tree."""
        return undo_right_corner(tree)
