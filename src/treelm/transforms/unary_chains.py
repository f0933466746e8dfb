"""Unary chains merged into one node, and tags kept distinct from phrases of the same name.

A chain is a run of nodes that each have one child, down to and including the first node that does
not: in ``(S (VP (VB Stop)))`` all three. ROOT never joins a chain.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from treelm.errors import UsageError
from treelm.transforms.transform import (
    Transform,
    check_category,
    check_choice,
    check_order,
    register,
    split_annotation,
    split_unescaped,
)
from treelm.trees.label import Label
from treelm.trees.tree import Tree

Keep = Literal["all", "top", "tag"]

#: Ends a tag that would otherwise be written like a phrase label.
TAG_MARK = "~T"


def merge_unary_chains(tree: Tree, *, keep: Keep = "all", root: str = "ROOT") -> Tree:
    """Return the tree with every unary chain ``X1 -> X2 -> .. -> Xk`` as one node.

    A chain that ends in a preterminal becomes a preterminal, any other a phrase with the children
    of Xk. If labels carry a vertical annotation, that of X1 is written once, at the end of the new
    label (with ``tag``, a tag keeps its own); those inside the chain are dropped, and the children
    below keep theirs.

    Args:
        tree: The tree.
        keep: What the new label contains: ``all`` joins the labels, ``X1+X2+..+Xk`` (Cherry and
            Quirk 2008 after Taskar et al. 2004; invertible); ``top`` is X1, written ``X1~T`` over a
            word (HHMM); ``tag`` is X1 over phrases and the tag Xk over a word (structured language
            model).
        root: The label that never joins a chain.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if a category contains a mark that ``all`` (``@ +``
            and the backslash, in any label) or ``top`` (``~``, in a phrase label) relies on.

    Examples:
        >>> stop = Tree("ROOT", [Tree("S", [Tree("VP", [Tree("VB", "Stop")])])])
        >>> print(merge_unary_chains(stop))
        (ROOT (S+VP+VB Stop))
        >>> print(merge_unary_chains(stop, keep="top"), merge_unary_chains(stop, keep="tag"))
        (ROOT (S~T Stop)) (ROOT (VB Stop))
        >>> undo_merge_unary_chains(merge_unary_chains(stop)) == stop
        True
    """
    check_choice("keep", keep, get_args(Keep))
    _check_marks(tree, keep)

    def extend(node: Tree, below: list[_Chain]) -> _Chain:
        if len(below) == 1 and root not in (_name(node.label), _name(below[0].labels[-1])):
            below[0].labels.append(node.label)
            return below[0]
        children = [chain.merged(keep) for chain in below]
        bottom = node if node.is_preterminal else Tree(node.label, children, head=node.head)
        return _Chain([node.label], bottom)

    return tree.fold(extend).merged(keep)


def undo_merge_unary_chains(tree: Tree) -> Tree:
    """Return the tree with every label split at its ``+`` into a chain of nodes.

    The vertical annotation goes to the top of the chain; the nodes inside it have none, so on an
    annotated tree `treelm.transforms.markovize.undo_annotate_parents` comes next.
    """

    def split(node: Tree, children: tuple[Tree, ...]) -> Tree:
        content = children if node.word is None else node.word
        name, annotation = split_annotation(node.label)
        names = split_unescaped(name, "+")
        if len(names) == 1 or name.startswith("@"):
            return Tree(node.label, content, head=node.head)
        labels = [Label(names[0], parent=annotation), *map(Label, names[1:])]
        chain = Tree(labels[-1], content, head=node.head)
        for label in reversed(labels[:-1]):
            chain = Tree(label, [chain], head=0)
        return chain

    return tree.transform(split)


def limit_unary_chains(tree: Tree, *, most: int = 2, root: str = "ROOT") -> Tree:
    """Return the tree with at most `most` nodes of one child above each other.

    From the top, the first ``most - 1`` of a longer run stay, and the last one; ROOT is not part
    of a run.

    Args:
        tree: The tree.
        most: How many may be above each other, at least 1.
        root: The label that does not count.

    Examples:
        >>> tree = Tree("S", [Tree("VP", [Tree("NP", [Tree("NX", [Tree("NN", "rain")])])])])
        >>> print(limit_unary_chains(tree))
        (S (NX (NN rain)))
    """
    check_order("most", most, minimum=1, unlimited=False)

    def limited(run: list[str], bottom: Tree) -> Tree:
        kept = run if len(run) <= most else [run[0], *run[len(run) - most + 1 :]]
        for label in kept:
            bottom = Tree(label, [bottom], head=0)
        return bottom

    def extend(node: Tree, below: list[tuple[list[str], Tree]]) -> tuple[list[str], Tree]:
        if node.word is not None:
            return [], node
        if len(below) == 1 and _name(node.label) != root:
            run, bottom = below[0]
            return [*run, node.label], bottom
        return [], Tree(node.label, [limited(*each) for each in below], head=node.head)

    return limited(*tree.fold(extend))


def disambiguate_tags(tree: Tree, tags: Collection[str]) -> Tree:
    """Return the tree with ``~T`` after the name of every preterminal whose label is in `tags`.

    The models need tags and phrase labels to be disjoint; `tags` are the labels that are both. A
    vertical annotation stays last (``NP~T^S``). A tag that already ends in ``~T`` is left alone.

    Examples:
        >>> tree = Tree("NP", [Tree("NP", "Friday")])
        >>> print(disambiguate_tags(tree, {"NP"}))
        (NP (NP~T Friday))
        >>> undo_disambiguate_tags(disambiguate_tags(tree, {"NP"})) == tree
        True
    """

    def mark(node: Tree, children: tuple[Tree, ...]) -> Tree:
        if node.word is None:
            return Tree(node.label, children, head=node.head)
        name, annotation = split_annotation(node.label)
        if node.label not in tags or name.endswith(TAG_MARK):
            return node
        return Tree(Label(name + TAG_MARK, parent=annotation), node.word)

    return tree.transform(mark)


def undo_disambiguate_tags(tree: Tree) -> Tree:
    """Return the tree without the ``~T`` of its preterminals."""

    def unmark(node: Tree, children: tuple[Tree, ...]) -> Tree:
        if node.word is None:
            return Tree(node.label, children, head=node.head)
        name, annotation = split_annotation(node.label)
        if not name.endswith(TAG_MARK) or name == TAG_MARK:
            return node
        return Tree(Label(name.removesuffix(TAG_MARK), parent=annotation), node.word)

    return tree.transform(unmark)


@dataclass(frozen=True, slots=True)
class _Chain:
    """A chain that may still grow upwards: its labels from the bottom, and its bottom node."""

    labels: list[Label]
    bottom: Tree

    def merged(self, keep: Keep) -> Tree:
        """Return the chain as one node."""
        bottom = self.bottom
        if len(self.labels) == 1 or (keep == "tag" and bottom.is_preterminal):
            return bottom
        name, annotation = split_annotation(self.labels[-1])
        if keep == "all":
            name = "+".join(_name(label) for label in reversed(self.labels))
        elif bottom.is_preterminal:
            name += TAG_MARK
        else:
            return Tree(self.labels[-1], bottom.children, head=bottom.head)
        content = bottom.children if bottom.word is None else bottom.word
        return Tree(Label(name, parent=annotation), content, head=bottom.head)


def _name(label: str) -> str:
    return split_annotation(label)[0]


def _check_marks(tree: Tree, keep: Keep) -> None:
    """Refuse labels in which the marks of `keep` would be ambiguous."""
    for node in tree.preorder():
        if keep == "all":
            check_category(node.label, reserved="@+\\")
        elif keep == "top" and node.is_phrasal:
            check_category(node.label, reserved="~")


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class MergeUnaryChains(Transform):
    """`merge_unary_chains` with its options; invertible if it keeps all labels."""

    name: ClassVar[str] = "merge_unary_chains"
    keep: Keep = "all"
    root: str = "ROOT"

    def __post_init__(self) -> None:
        check_choice("keep", self.keep, get_args(Keep))

    @property
    def invertible(self) -> bool:
        """Whether all labels are kept."""
        return self.keep == "all"

    def apply(self, tree: Tree) -> Tree:
        """Return `merge_unary_chains` of the tree."""
        return merge_unary_chains(tree, keep=self.keep, root=self.root)

    def undo(self, tree: Tree) -> Tree:
        """Return `undo_merge_unary_chains` of the tree.

        Raises:
            UnsupportedTask: unless all labels are kept.
        """
        return undo_merge_unary_chains(tree) if self.invertible else Transform.undo(self, tree)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class DisambiguateTags(Transform):
    """`disambiguate_tags` for a fixed set of tags."""

    name: ClassVar[str] = "disambiguate_tags"
    tags: Collection[str]

    def __post_init__(self) -> None:
        if isinstance(self.tags, str):
            raise UsageError(f"tags is the string {self.tags!r}; give a list or set of labels.")
        object.__setattr__(self, "tags", frozenset(self.tags))

    def apply(self, tree: Tree) -> Tree:
        """Return `disambiguate_tags` of the tree."""
        return disambiguate_tags(tree, self.tags)

    def undo(self, tree: Tree) -> Tree:
        """Return `undo_disambiguate_tags` of the tree."""
        return undo_disambiguate_tags(tree)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUnaryChains(Transform):
    """`limit_unary_chains` with its options."""

    name: ClassVar[str] = "limit_unary_chains"
    most: int = 2
    root: str = "ROOT"

    def __post_init__(self) -> None:
        check_order("most", self.most, minimum=1, unlimited=False)

    @property
    def invertible(self) -> bool:
        """False: labels are dropped."""
        return False

    def apply(self, tree: Tree) -> Tree:
        """Return `limit_unary_chains` of the tree."""
        return limit_unary_chains(tree, most=self.most, root=self.root)
