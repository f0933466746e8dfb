"""Tree node, label rendering (spec 1.1) and the bracket writer (spec 2)."""

from __future__ import annotations

from dataclasses import dataclass, field

RESERVED = frozenset("@+^|\\")


@dataclass(eq=False)
class Node:
    """One tree node; a preterminal holds its word directly and has no children.

    Nodes compare by identity. Compare trees through `write`.
    """

    base: str
    children: list[Node] = field(default_factory=list)
    word: str | None = None
    head: str | None = None
    gap: bool = False
    parent: str | None = None

    @property
    def is_preterminal(self) -> bool:
        """True for a tag directly above a word."""
        return self.word is not None

    @property
    def is_phrasal(self) -> bool:
        """True for every node that is no preterminal."""
        return self.word is None


def escape(annotation: str) -> str:
    """Put a backslash before every reserved character of a head annotation (spec 7)."""
    return "".join("\\" + char if char in RESERVED else char for char in annotation)


def render(node: Node) -> str:
    """Canonical label string: base [-head] [-GAP] [^parent]."""
    label = node.base
    if node.head is not None:
        label += "-" + escape(node.head)
    if node.gap:
        label += "-GAP"
    if node.parent is not None:
        label += "^" + node.parent
    return label


def write(tree: Node) -> str:
    """The tree on one line with single spaces (iterative: trees may be deep)."""
    parts: list[str] = []
    stack: list[Node | str] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item.is_preterminal:
            parts.append(f" ({render(item)} {item.word})")
        else:
            parts.append(f" ({render(item)}")
            stack.append(")")
            stack.extend(reversed(item.children))
    return "".join(parts)[1:]


def postorder(tree: Node) -> list[Node]:
    """All nodes, every child before its parent, siblings from left to right."""
    found: list[Node] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(node.children)
    found.reverse()
    return found


def words(tree: Node) -> list[str]:
    """The yield of the tree."""
    return [node.word for node in postorder(tree) if node.word is not None]


def clone(tree: Node) -> Node:
    """A deep copy."""
    copies: dict[int, Node] = {}
    for node in postorder(tree):
        children = [copies[id(child)] for child in node.children]
        copies[id(node)] = Node(node.base, children, node.word, node.head, node.gap, node.parent)
    return copies[id(tree)]
