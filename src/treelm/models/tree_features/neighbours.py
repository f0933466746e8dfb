"""Features of neighbouring words: their tags, and the smallest part of the tree that joins them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from treelm.models.tree_features.spans import Node

#: Maximum number of tags in a row.
_TAGS = 5
#: Maximum number of heads on the way from a word to the top.
_HEADS = 4
#: What is used of neighbours: w for the word, t for the tag, - for nothing.
_MIXED = ("ww", "www", "wtt", "twt", "ttw", "w-w", "wttt", "tttw", "w--w")


def neighbour_features(nodes: list[Node]) -> Iterator[tuple[str, int, int]]:
    """Yield sequences of neighbours, how they are joined, and the heads above each word.

    Behind each stand the first and the last of the words that it is about.

    Args:
        nodes: A tree's nodes in preorder.
    """
    leaves = [number for number, node in enumerate(nodes) if node.word is not None]
    words = ["[", *(str(nodes[leaf].word) for leaf in leaves), "]"]
    tags = ["[", *(nodes[leaf].label for leaf in leaves), "]"]
    for size in range(2, _TAGS + 1):
        for first in range(len(tags) - size + 1):
            name = f"tags-{size} {' '.join(tags[first : first + size])}"
            yield name, max(first - 1, 0), min(first + size - 2, len(leaves) - 1)
    shown = {"w": words, "t": tags, "-": ["-"] * len(words)}
    for kind in _MIXED:
        for first in range(len(words) - len(kind) + 1):
            row = (shown[letter][first + place] for place, letter in enumerate(kind))
            last = min(first + len(kind) - 2, len(leaves) - 1)
            yield f"{kind} {' '.join(row)}", max(first - 1, 0), last
    for place, (left, right) in enumerate(pairwise(leaves)):
        for name in _joint(nodes, left, right):
            yield name, place, place + 1
    for place, leaf in enumerate(leaves):
        for name in _chain(nodes, leaf):
            yield name, place, place


def _joint(nodes: list[Node], left: int, right: int) -> Iterator[str]:
    """Yield the labels of the smallest subtree over two neighbours, with and without the words."""
    rising, falling = [], []
    number = left
    while nodes[number].end <= nodes[right].start:
        rising.append(nodes[number].label)
        number = nodes[number].parent
    top, number = number, right
    while number != top:
        falling.append(nodes[number].label)
        number = nodes[number].parent
    shape = f"{' '.join(rising)} / {nodes[top].label} / {' '.join(falling)}"
    yield f"joint {shape}"
    yield f"joint-left {nodes[left].word} {shape}"
    yield f"joint-right {nodes[right].word} {shape}"
    yield f"joint-depth {len(rising)} {nodes[top].label} {len(falling)}"


def _chain(nodes: list[Node], leaf: int) -> Iterator[str]:
    """Yield a word's head, the head of that, and so on."""
    chain, number = [leaf], leaf
    while nodes[number].parent >= 0 and len(chain) < _HEADS:
        number = nodes[number].parent
        if nodes[number].head != chain[-1]:
            chain.append(nodes[number].head)
    tags = [nodes[head].label for head in chain]
    if len(chain) > 2:
        yield f"heads {' '.join(tags[:3])}"
        yield f"heads-words {nodes[leaf].word} {tags[1]} {nodes[chain[2]].word}"
    if len(chain) == _HEADS:
        yield f"heads {' '.join(tags)}"
