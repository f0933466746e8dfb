"""Binarization: nodes of more than two children become nested binary nodes, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from treelm.characters import visible
from treelm.errors import CorpusFormatError
from treelm.transforms.transform import (
    Transform,
    check_category,
    check_choice,
    check_order,
    register,
    split_annotation,
)
from treelm.trees.heads import head_index
from treelm.trees.tree import Tree

Direction = Literal["right", "left", "head"]


def binarize(
    tree: Tree, *, direction: Direction = "right", horizontal_order: int | None = None
) -> Tree:
    """Return the tree with every node of more than two children as a nest of binary nodes.

    `direction` names the way the nest branches, not the end at which children are peeled off
    (some parsers call our ``left`` "right" for that reason):

    * ``right``: ``A -> Y1 @A>Y2_Y3``, ``@A>Y2_Y3 -> Y2 @A>Y3_Y4``, ...
    * ``left``: ``A -> @A<Y2_Y3 Y4``, ``@A<Y2_Y3 -> @A<Y1_Y2 Y3``, ...
    * ``head``: top-down like ``right`` until the head child is leftmost, then like ``left``.

    An intermediate label names, in surface order, sisters that its node still covers: ``>`` the
    first ones (more follow to the right), ``<`` the last ones. A vertical annotation of A is kept
    (``@A^P>Y2_Y3``); sisters are named without theirs. Unary nodes stay.

    Args:
        tree: The tree.
        direction: See above; ``head`` needs the heads of nodes with more than two children.
        horizontal_order: Maximum number of sisters in a label; None for all, 0 for the bare ``@A``.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if a category contains ``@``.
        UsageError: ``E_NO_HEAD`` if ``head`` meets a node without one.

    Examples:
        >>> tree = Tree("A", [Tree("B", "b"), Tree("C", "c"), Tree("D", "d"), Tree("E", "e")])
        >>> print(binarize(tree, horizontal_order=2))
        (A (B b) (@A>C_D (C c) (@A>D_E (D d) (E e))))
        >>> print(binarize(tree, direction="left", horizontal_order=0))
        (A (@A (@A (B b) (C c)) (D d)) (E e))
        >>> undo_binarize(binarize(tree, horizontal_order=1)) == tree
        True
    """
    check_choice("direction", direction, get_args(Direction))
    check_order("horizontal_order", horizontal_order)

    def rewrite(node: Tree, children: tuple[Tree, ...]) -> Tree:
        check_category(node.label, reserved="@")
        if node.word is not None:
            return node
        if len(children) <= 2:
            return Tree(node.label, children, head=node.head)
        names = [split_annotation(child.label)[0] for child in node.children]

        def name(start: int, end: int) -> str:
            return f"@{node.label}{_covered_sisters(names, start, end, horizontal_order)}"

        return nest_children(node, children, _pivot(node, direction), name)

    return tree.transform(rewrite)


def undo_binarize(tree: Tree) -> Tree:
    """Return the tree with every intermediate node (label ``@...``) replaced by its children.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if the root is an intermediate node.
    """
    if _is_intermediate(tree):
        raise CorpusFormatError(
            f'the root is labelled "{visible(tree.label)}", which marks an intermediate node. '
            "Is this part of a binarized tree? Undo the binarization of the whole tree.",
            code="E_RESERVED_CHAR",
        )
    trees: list[Tree] = []
    parts: list[_Part] = []
    for node in reversed(list(tree.preorder())):
        first = len(parts) - len(node.children)
        part = _joined(node, parts[first:][::-1])
        del parts[first:]
        if _is_intermediate(node):
            parts.append(part)
            continue
        below = trees[len(trees) - part.size :][::-1]
        del trees[len(trees) - part.size :]
        trees.append(node if not below else Tree(node.label, below, head=part.head))
        parts.append(_Part(size=1, head=0))
    return trees[0]


def nest_children(
    node: Tree, children: Sequence[Tree], pivot: int, name: Callable[[int, int], str]
) -> Tree:
    """Return a node of more than two children as a nest of binary nodes.

    From the top, children are peeled off the left end until the one at `pivot` is leftmost, then
    off the right end, until two are left. The head indices point towards the node's head.

    Args:
        node: The node; its label goes to the top of the nest.
        children: What takes the place of the node's children.
        pivot: Index of the child around which the nest is built.
        name: Gives the label of the intermediate node that covers ``children[start:end]``.
    """
    spans = [(0, len(children))]
    while spans[-1][1] - spans[-1][0] > 2:
        start, end = spans[-1]
        spans.append((start + 1, end) if start < pivot else (start, end - 1))
    inner_start, inner_end = spans[-1][0], spans[-1][0] + 1
    inner = children[inner_start]
    for start, end in reversed(spans):
        inner_is_right = start < inner_start
        below = [children[start], inner] if inner_is_right else [inner, children[end - 1]]
        head = None
        if node.head is not None and start <= node.head < end:
            head_in_inner = inner_start <= node.head < inner_end
            head = 1 if head_in_inner == inner_is_right else 0
        label = node.label if end - start == len(children) else name(start, end)
        inner = Tree(label, below, head=head)
        inner_start, inner_end = start, end
    return inner


@dataclass(frozen=True, slots=True)
class _Part:
    """What a node contributes to its parent: some trees, and the index of the head among them."""

    size: int
    head: int | None


def _joined(node: Tree, below: list[_Part]) -> _Part:
    """Return the parts of a node's children as one part."""
    size = sum(part.size for part in below)
    if node.head is None or node.head >= len(below):
        return _Part(size, None)
    inner = below[node.head].head
    before = sum(part.size for part in below[: node.head])
    return _Part(size, None if inner is None else before + inner)


def _pivot(node: Tree, direction: Direction) -> int:
    """Return the index of the child around which a direction nests."""
    if direction == "head":
        return head_index(node)
    return len(node.children) if direction == "right" else 0


def _is_intermediate(node: Tree) -> bool:
    return node.is_phrasal and node.label.startswith("@")


def _covered_sisters(names: list[str], start: int, end: int, order: int | None) -> str:
    """Return ``>`` or ``<`` with the sisters that a span's label names; nothing for order 0."""
    if order == 0:
        return ""
    size = end - start if order is None else min(order, end - start)
    if end == len(names):
        return ">" + "_".join(names[start : start + size])
    return "<" + "_".join(names[end - size : end])


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Binarize(Transform):
    """`binarize` with its options."""

    name: ClassVar[str] = "binarize"
    direction: Direction = "right"
    horizontal_order: int | None = None

    def __post_init__(self) -> None:
        check_choice("direction", self.direction, get_args(Direction))
        check_order("horizontal_order", self.horizontal_order)

    def apply(self, tree: Tree) -> Tree:
        """Return `binarize` of the tree."""
        return binarize(tree, direction=self.direction, horizontal_order=self.horizontal_order)

    def undo(self, tree: Tree) -> Tree:
        """Return `undo_binarize` of the tree."""
        return undo_binarize(tree)
