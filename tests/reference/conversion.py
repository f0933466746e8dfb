"""Between the package's trees and the oracle's nodes."""

from __future__ import annotations

from typing import NamedTuple

from treelm.trees.label import Label
from treelm.trees.tree import Tree

from .nodes import Node


class Parts(NamedTuple):
    """Everything about one node but its children themselves."""

    base: str
    head: str | None
    gap: bool
    parent: str | None
    word: str | None
    children: int


def to_node(tree: Tree) -> Node:
    """The oracle's copy of a tree."""

    def build(node: Tree, children: list[Node]) -> Node:
        label = node.label
        return Node(label.base, children, node.word, label.head, label.gap, label.parent)

    return tree.fold(build)


def to_tree(node: Node) -> Tree:
    """The package's copy of an oracle node (recursive: for small trees)."""
    label = Label(node.base, node.head, gap=node.gap, parent=node.parent)
    return Tree(label, node.word or [to_tree(child) for child in node.children])


def parts_of_tree(tree: Tree) -> list[Parts]:
    """The nodes in preorder, label parts apart: equal lists mean equal trees."""
    return [
        Parts(
            node.label.base,
            node.label.head,
            node.label.gap,
            node.label.parent,
            node.word,
            len(node.children),
        )
        for node in tree.preorder()
    ]


def parts_of_node(tree: Node) -> list[Parts]:
    """The same for an oracle node."""
    found: list[Parts] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        found.append(
            Parts(node.base, node.head, node.gap, node.parent, node.word, len(node.children))
        )
        stack.extend(reversed(node.children))
    return found
