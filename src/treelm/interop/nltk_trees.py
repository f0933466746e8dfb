"""Conversion to and from ``nltk.Tree``."""

from __future__ import annotations

from typing import Any

from treelm.errors import CorpusFormatError
from treelm.extras import import_extra
from treelm.trees.tree import Tree


def to_nltk(tree: Tree) -> Any:
    """Return a copy as an ``nltk.Tree``; words become leaves, labels plain strings."""
    make = import_extra("nltk.tree", "Converting to nltk.Tree").Tree
    return tree.fold(
        lambda node, below: make(str(node.label), below if node.word is None else [node.word])
    )


def from_nltk(tree: Any) -> Tree:
    """Return a copy of an ``nltk.Tree``.

    Raises:
        CorpusFormatError: for a node that is empty or mixes words and phrases.
    """
    order = [tree]  # parents before children
    for node in order:
        if not hasattr(node, "label"):
            raise CorpusFormatError(
                f"{node!r} is neither a word nor a tree; leaves of an nltk.Tree must be strings "
                "(chunk trees have pairs of word and tag).",
                code="E_MIXED",
            )
        order.extend(child for child in node if not isinstance(child, str))
    done: dict[int, Tree] = {}
    for node in reversed(order):
        words = [child for child in node if isinstance(child, str)]
        if words and len(node) != len(words):
            raise CorpusFormatError(
                f'node "{node.label()}" has both words and phrases as children.', code="E_MIXED"
            )
        if len(words) > 1:
            raise CorpusFormatError(
                f'tag "{node.label()}" is over {len(words)} words; a tag has one.',
                code="E_MULTI_WORD",
            )
        content = words[0] if words else [done[id(child)] for child in node]
        done[id(node)] = Tree(str(node.label()), content)
    return done[id(tree)]
