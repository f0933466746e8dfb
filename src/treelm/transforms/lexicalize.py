"""Head words in the labels of phrases: ``NP`` over *the dog* becomes ``NP[dog]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from treelm.errors import UsageError
from treelm.transforms.transform import (
    CATEGORY_MARKS,
    Transform,
    check_category,
    register,
    split_annotation,
    split_unescaped,
)
from treelm.trees.heads import head_index
from treelm.trees.label import Label
from treelm.trees.tree import Tree

_SPECIAL = re.compile(f"([{re.escape(CATEGORY_MARKS + '[]/')}])")


def lexicalize(tree: Tree, *, tag: bool = False) -> Tree:
    r"""Return the tree with its head word in the label of every phrase, the top node's too.

    The word goes before a vertical annotation (``NP[dog]^S``). The characters ``[ ] /`` and the
    backslash, and the marks of other transforms (``@ + ^ | ~``), get a backslash before them, so
    that a lexicalized tree can be transformed further.

    Args:
        tree: The tree, with the heads of nodes that have more than one child.
        tag: Whether the word's tag follows it: ``NP[dog/NN]``.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if the category of a phrase contains a backslash.
        UsageError: ``E_NO_HEAD`` if a head is missing.

    Examples:
        >>> tree = Tree("NP", [Tree("DT", "the"), Tree("NN", "AC/DC")], head=1)
        >>> print(lexicalize(tree))
        (NP[AC\/DC] (DT the) (NN AC/DC))
        >>> print(lexicalize(tree, tag=True).label)
        NP[AC\/DC/NN]
        >>> undo_lexicalize(lexicalize(tree)) == tree
        True
    """

    def extend(node: Tree, below: list[tuple[Tree, Tree]]) -> tuple[Tree, Tree]:
        if node.word is not None:
            return node, node
        check_category(node.label, reserved="\\")
        head = below[head_index(node)][1]
        text = _escaped(str(head.word)) + (f"/{_escaped(head.label)}" if tag else "")
        name, annotation = split_annotation(node.label)
        label = Label(f"{name}[{text}]", parent=annotation)
        return Tree(label, [child for child, _ in below], head=node.head), head

    return tree.fold(extend)[0]


def undo_lexicalize(tree: Tree) -> Tree:
    """Return the tree without the head words in its phrase labels; a label without one stays."""

    def strip(node: Tree, children: tuple[Tree, ...]) -> Tree:
        if node.word is not None:
            return node
        label: str = node.label
        name, annotation = split_annotation(label)
        *before, word = split_unescaped(name, "[")
        if before and word.endswith("]"):
            label = Label(name[: len(name) - len(word) - 1], parent=annotation)
        return Tree(label, children, head=node.head)

    return tree.transform(strip)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicalize(Transform):
    """`lexicalize` with its option."""

    name: ClassVar[str] = "lexicalize"
    tag: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.tag, bool):
            raise UsageError(f"tag is {self.tag!r}; it must be true or false.")

    def apply(self, tree: Tree) -> Tree:
        """Return `lexicalize` of the tree."""
        return lexicalize(tree, tag=self.tag)

    def undo(self, tree: Tree) -> Tree:
        """Return `undo_lexicalize` of the tree."""
        return undo_lexicalize(tree)
