"""Vertical and horizontal Markovization: what a label remembers of its ancestors and sisters.

Klein and Manning (2003), "Accurate unlexicalized parsing"; head-outward as in Collins (1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from treelm.characters import visible
from treelm.errors import CorpusFormatError
from treelm.transforms.binarize import nest_children, undo_binarize
from treelm.transforms.transform import (
    Transform,
    check_category,
    check_order,
    register,
    split_annotation,
)
from treelm.transforms.unary_chains import merge_unary_chains, undo_merge_unary_chains
from treelm.trees.heads import head_index
from treelm.trees.label import Label
from treelm.trees.tree import Tree


def annotate_parents(tree: Tree, *, vertical_order: int) -> Tree:
    """Return the tree with the labels of its ancestors after every label.

    Order 1 adds nothing, order 2 ``^parent``, order 3 ``^parent^grandparent``, and so on, to every
    node, tags too. A node has no more ancestors than there are: the top node gets nothing and its
    children one label (``^ROOT``) whatever the order; no padding is written. A parent's label is
    written in full, with its head annotation if it has one.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if a label is annotated already, or a category
            contains ``^`` or a backslash.

    Examples:
        >>> stop = Tree("ROOT", [Tree("S", [Tree("VP", [Tree("VB", "Stop")])])])
        >>> print(annotate_parents(stop, vertical_order=2))
        (ROOT (S^ROOT (VP^S (VB^VP Stop))))
        >>> print(annotate_parents(stop, vertical_order=3))
        (ROOT (S^ROOT (VP^S^ROOT (VB^VP^S Stop))))
        >>> undo_annotate_parents(annotate_parents(stop, vertical_order=3)) == stop
        True
    """
    check_order("vertical_order", vertical_order, minimum=1, unlimited=False)
    labels: list[Label] = []
    stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
    while stack:
        node, ancestors = stack.pop()
        labels.append(annotated(node.label, ancestors))
        ancestors = (str(node.label), *ancestors)[: vertical_order - 1]
        stack.extend((child, ancestors) for child in reversed(node.children))
    return relabelled(tree, labels)


def undo_annotate_parents(tree: Tree) -> Tree:
    """Return the tree with every label cut at its first ``^`` that is not escaped."""

    def cut(node: Tree, children: tuple[Tree, ...]) -> Tree:
        label = node.label
        if label.parent is not None:
            label = Label(label.base, label.head, gap=label.gap)
        name, annotation = split_annotation(label)
        content = children if node.word is None else node.word
        return Tree(label if annotation is None else name, content, head=node.head)

    return tree.transform(cut)


def binarize_head_outward(tree: Tree, *, horizontal_order: int | None = 1) -> Tree:
    """Return the tree with every node of more than two children built up from its head child.

    The rule ``P -> Lm .. L1 H R1 .. Rn`` starts with H; ``R1 .. Rn`` are attached on the right,
    then ``L1 .. Lm`` on the left, and every attachment but the last makes an intermediate node
    ``@P[H]>x1_x2`` (right) or ``@P[H]<x1_x2`` (left). The x are the last sisters attached on that
    side, oldest first. P keeps a vertical annotation (``@VP^S[VBZ]>NP``), H and x do not.
    `treelm.transforms.binarize.undo_binarize` is the inverse.

    Args:
        tree: The tree, with the heads of nodes that have more than two children.
        horizontal_order: Maximum number of sisters in a label; None for all.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if a category contains ``@``.
        UsageError: ``E_NO_HEAD`` if a head is missing.

    Examples:
        >>> children = [Tree("DT", "a"), Tree("JJ", "b"), Tree("NN", "c"), Tree("PP", "d")]
        >>> print(binarize_head_outward(Tree("NP", children, head=2)))
        (NP (DT a) (@NP[NN]<JJ (JJ b) (@NP[NN]>PP (NN c) (PP d))))
    """
    check_order("horizontal_order", horizontal_order)

    def rewrite(node: Tree, children: tuple[Tree, ...]) -> Tree:
        check_category(node.label, reserved="@")
        if node.word is not None:
            return node
        if len(children) <= 2:
            return Tree(node.label, children, head=node.head)
        head = head_index(node)
        names = [split_annotation(child.label)[0] for child in node.children]

        def name(start: int, end: int) -> str:
            side = ">" if start == head else "<"
            attached = names[head + 1 : end] if start == head else names[start:head][::-1]
            kept = len(attached) if horizontal_order is None else horizontal_order
            sisters = "_".join(attached[max(len(attached) - kept, 0) :])
            return f"@{node.label}[{names[head]}]{side}{sisters}"

        return nest_children(node, children, head, name)

    return tree.transform(rewrite)


def markovize(tree: Tree, *, horizontal_order: int | None = 1, vertical_order: int = 2) -> Tree:
    """Return the tree annotated, with unary chains merged, binarized outward from the heads.

    What is left are lexical, binary and ROOT-start productions, without unary cycles: the grammar
    of Cherry and Quirk (2008), "Discriminative, syntactic language modeling through latent SVMs".

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if a category contains ``@ + ^`` or a backslash.
        UsageError: ``E_NO_HEAD`` if a node of more than two children has no head.

    Examples:
        >>> verb = Tree("VP", [Tree("VBZ", "b"), Tree("NP", "c"), Tree("PP", "d")], head=0)
        >>> tree = Tree("ROOT", [Tree("S", [verb])])
        >>> print(markovize(tree))
        (ROOT (S+VP^ROOT (@S+VP^ROOT[VBZ]>NP (VBZ^VP b) (NP^VP c)) (PP^VP d)))
        >>> undo_markovize(markovize(tree)) == tree
        True
    """
    annotated = annotate_parents(tree, vertical_order=vertical_order)
    return binarize_head_outward(merge_unary_chains(annotated), horizontal_order=horizontal_order)


def undo_markovize(tree: Tree) -> Tree:
    """Return the tree from which `markovize` made this one."""
    return undo_annotate_parents(undo_merge_unary_chains(undo_binarize(tree)))


def annotated(label: Label, ancestors: tuple[str, ...]) -> Label:
    """Return the label with its ancestors as the parent part."""
    if label.parent is not None:
        raise CorpusFormatError(
            f'label "{visible(str(label))}" already has a vertical annotation, which a second one '
            "would hide. Was the tree transformed before? Undo the earlier annotation first.",
            code="E_RESERVED_CHAR",
        )
    check_category(label, reserved="^\\")
    return Label(label.base, label.head, gap=label.gap, parent="^".join(ancestors) or None)


def relabelled(tree: Tree, labels: list[Label]) -> Tree:
    """Return the tree with other labels, given in preorder."""
    done: list[Tree] = []
    for node, label in zip(reversed(list(tree.preorder())), reversed(labels), strict=True):
        if node.word is not None:
            done.append(Tree(label, node.word, head=node.head))
        else:
            first = len(done) - len(node.children)
            children = done[first:][::-1]
            del done[first:]
            done.append(Tree(label, children, head=node.head))
    return done[0]


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateParents(Transform):
    """`annotate_parents` with its order."""

    name: ClassVar[str] = "annotate_parents"
    vertical_order: int = 2

    def __post_init__(self) -> None:
        check_order("vertical_order", self.vertical_order, minimum=1, unlimited=False)

    def apply(self, tree: Tree) -> Tree:
        """Return `annotate_parents` of the tree."""
        return annotate_parents(tree, vertical_order=self.vertical_order)

    def undo(self, tree: Tree) -> Tree:
        """Return `undo_annotate_parents` of the tree."""
        return undo_annotate_parents(tree)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class BinarizeHeadOutward(Transform):
    """`binarize_head_outward` with its order."""

    name: ClassVar[str] = "binarize_head_outward"
    horizontal_order: int | None = 1

    def __post_init__(self) -> None:
        check_order("horizontal_order", self.horizontal_order)

    def apply(self, tree: Tree) -> Tree:
        """Return `binarize_head_outward` of the tree."""
        return binarize_head_outward(tree, horizontal_order=self.horizontal_order)

    def undo(self, tree: Tree) -> Tree:
        """Return `treelm.transforms.binarize.undo_binarize` of the tree."""
        return undo_binarize(tree)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Markovize(Transform):
    """`markovize` with its orders."""

    name: ClassVar[str] = "markovize"
    horizontal_order: int | None = 1
    vertical_order: int = 2

    def __post_init__(self) -> None:
        check_order("horizontal_order", self.horizontal_order)
        check_order("vertical_order", self.vertical_order, minimum=1, unlimited=False)

    def apply(self, tree: Tree) -> Tree:
        """Return `markovize` of the tree."""
        return markovize(
            tree, horizontal_order=self.horizontal_order, vertical_order=self.vertical_order
        )

    def undo(self, tree: Tree) -> Tree:
        """Return `undo_markovize` of the tree."""
        return undo_markovize(tree)
