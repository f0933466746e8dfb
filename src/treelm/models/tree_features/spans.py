"""Trees as lists of nodes with everything that features need to know about a node."""

from __future__ import annotations

from dataclasses import dataclass

from treelm.trees.heads import head_index
from treelm.trees.tree import Tree


@dataclass(slots=True)
class Node:
    """A node of a tree with known heads.

    Args:
        label: Its label.
        word: The word of a preterminal.
        parent: Number of the node above, -1 at the top.
        children: Numbers of the nodes below.
        start: First word below.
        end: The word after the last one.
        head: Number of the preterminal that is its lexical head.
        head_child: Place of the head among the children, -1 at a preterminal.
    """

    label: str
    word: str | None
    parent: int
    children: list[int]
    start: int
    end: int
    head: int
    head_child: int


def nodes_of(tree: Tree) -> list[Node]:
    """Return the nodes in preorder.

    Examples:
        >>> from treelm.trees.heads import find_heads
        >>> tree = find_heads(Tree.from_string("(NP (DT the) (NN dog))"))
        >>> [(node.label, node.start, node.end, node.head) for node in nodes_of(tree)]
        [('NP', 0, 2, 2), ('DT', 0, 1, 1), ('NN', 1, 2, 2)]
    """
    found: list[Node] = []
    stack: list[tuple[Tree, int]] = [(tree, -1)]
    words = 0
    while stack:
        node, parent = stack.pop()
        number = len(found)
        if parent >= 0:
            found[parent].children.append(number)
        head_child = -1 if node.word is not None else head_index(node)
        found.append(Node(str(node.label), node.word, parent, [], words, words, number, head_child))
        if node.word is not None:
            words += 1
        stack.extend((child, number) for child in reversed(node.children))
    for made in reversed(found):
        if made.word is not None:
            made.end = made.start + 1
        else:
            made.end = found[made.children[-1]].end
            made.head = found[made.children[made.head_child]].head
    return found
