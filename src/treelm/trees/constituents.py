"""The spans of a tree's phrases, without the tokens that evaluation does not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from treelm.trees.tree import Tree


class Constituent(NamedTuple):
    """A phrase over words ``start`` to ``end`` (exclusive), counted from 0."""

    label: str
    start: int
    end: int


def constituents(
    tree: Tree, *, ignore_positions: Collection[int] = (), ignore_labels: Collection[str] = ()
) -> Counter[Constituent]:
    """Return the phrases of a tree as a multiset of labelled spans.

    Spans count only the words that are kept; a phrase left without words is not a constituent, and
    preterminals never are (evalb's conventions).

    Args:
        tree: The tree.
        ignore_positions: Positions of words that do not count, such as punctuation.
        ignore_labels: Base categories that do not count, such as ``ROOT``.

    Examples:
        >>> tree = Tree.from_string("(S (NP (PRP I)) (VP (VBP sleep)) (. .))")
        >>> sorted(constituents(tree, ignore_positions={2}))[0]
        Constituent(label='NP', start=0, end=1)
    """
    found: Counter[Constituent] = Counter()
    ignored = set(ignore_positions)
    position = kept = 0
    # Visits each phrase twice: on the way down to note where it starts, on the way up to close it.
    stack: list[tuple[Tree, int | None]] = [(tree, None)]
    while stack:
        node, start = stack.pop()
        if node.word is not None:
            kept += position not in ignored
            position += 1
        elif start is None:
            stack.append((node, kept))
            stack.extend((child, None) for child in reversed(node.children))
        elif kept > start and node.label.base not in ignore_labels:
            found[Constituent(node.label.base, start, kept)] += 1
    return found
