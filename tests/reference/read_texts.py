"""Trees of the oracle from text, for its own tests."""

from __future__ import annotations

from tests.reference.bracket_reader import ReadError, read
from tests.reference.nodes import Node, postorder, write

#: Nouns that the examples take for temporal ones.
TMP = frozenset({"today", "monday", "months", "week"})


def raw(text: str) -> Node:
    """The only tree of a text, labels whole, with its ROOT."""
    trees, errors = read(text, strip=False, unescape=False)
    assert errors == []
    assert len(trees) == 1
    return trees[0]


def fragment(text: str) -> Node:
    """The tree below the ROOT that the reader has put on top."""
    return raw(text).children[0]


def annotated(text: str) -> Node:
    """A tree whose labels `base-head-GAP^parent` are taken apart (simple labels only)."""
    tree = raw(text)
    for node in postorder(tree):
        node.base, _, parent = node.base.partition("^")
        node.parent = parent or None
        node.gap = node.base.endswith("-GAP")
        node.base = node.base.removesuffix("-GAP")
        if not node.base.startswith("-"):
            node.base, _, head = node.base.partition("-")
            node.head = head or None
    assert write(tree) == write(raw(text))
    return tree


def read_one(text: str) -> str:
    """The only tree of a text, written, read with default options."""
    trees, errors = read(text)
    assert errors == []
    assert len(trees) == 1
    return write(trees[0])


def errors_of(text: str, max_depth: int = 1000) -> list[ReadError]:
    """The errors of a text (named tuples, equal to plain ones)."""
    return read(text, max_depth=max_depth).errors
