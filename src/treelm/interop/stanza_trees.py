"""Conversion to and from stanza's constituency trees."""

from __future__ import annotations

from typing import Any

from treelm.errors import CorpusFormatError
from treelm.extras import import_extra
from treelm.trees.tree import Tree


def to_stanza(tree: Tree) -> Any:
    """Return a copy as a tree of stanza; words become nodes without children."""
    purpose = "Converting to a tree of stanza"
    make = import_extra("stanza.models.constituency.parse_tree", purpose).Tree
    return tree.fold(
        lambda node, below: make(str(node.label), below if node.word is None else [make(node.word)])
    )


def from_stanza(tree: Any) -> Tree:
    """Return a copy of a stanza constituency tree, such as ``sentence.constituency``.

    Args:
        tree: A node with ``label`` and ``children``; a word is a node without children.

    Raises:
        CorpusFormatError: for a node that mixes words and phrases, or a tag over several words.
    """
    if not tree.children:
        raise CorpusFormatError("the tree is a single word.", code="E_NO_WORD")
    order = [tree]  # parents before children
    for node in order:
        order.extend(child for child in node.children if child.children)
    done: dict[int, Tree] = {}
    for node in reversed(order):
        words = [str(child.label) for child in node.children if not child.children]
        if words and len(words) != len(node.children):
            raise CorpusFormatError(
                f'node "{node.label}" has both words and phrases as children.', code="E_MIXED"
            )
        if len(words) > 1:
            raise CorpusFormatError(
                f'tag "{node.label}" is over {len(words)} words; a tag has one.',
                code="E_MULTI_WORD",
            )
        content = words[0] if words else [done[id(child)] for child in node.children]
        done[id(node)] = Tree(str(node.label), content)
    return done[id(tree)]
