"""Tree features after Charniak and Johnson (2005)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from treelm.models.tree_features.neighbours import neighbour_features
from treelm.models.tree_features.spans import Node, nodes_of
from treelm.trees.tree import Tree

#: Tags that end a sentence without being its last word.
_PUNCTUATION = frozenset({".", ",", ":", "``", "''", "-RRB-", "-LRB-"})
_COORDINATION = frozenset({"CC", "CONJP"})
#: Depths to which the sisters of a coordination are compared.
_DEPTHS = 4
#: Number of ancestors of a word used.
_ANCESTORS = 3
#: Bin width of log probabilities per word, alone and with the length of the sentence.
_NATS, _WIDE_NATS = 0.2, 0.5


def size_class(size: int) -> str:
    """Return a number as one of a few classes.

    Examples:
        >>> [size_class(size) for size in (0, 2, 3, 5, 9, 40)]
        ['0', '2', '3', '4-5', '6-10', '21+']
    """
    if size <= 3:
        return str(size)
    for largest, name in ((5, "4-5"), (10, "6-10"), (20, "11-20")):
        if size <= largest:
            return name
    return "21+"


def rerank_features(tree: Tree, log_prob: float = math.nan) -> Counter[str]:
    """Return how often each feature occurs in a tree whose heads are known.

    Args:
        tree: Below ROOT, with head children.
        log_prob: The parser's log probability of the words; NaN if unknown.
    """
    nodes = nodes_of(tree)
    found: Counter[str] = Counter()
    for node in nodes:
        found.update(_of_node(nodes, node))
    found.update(_right_branch(nodes))
    found.update(name for name, _, _ in neighbour_features(nodes))
    found.update(_chance(log_prob, nodes[0].end))
    return found


def placed_features(tree: Tree) -> Iterator[tuple[int, str]]:
    """Yield the features that belong to a part of a tree, each as often as it occurs.

    Before each stands the number, in preorder, of the node it belongs to: the one it describes, or
    the smallest one over the neighbours it describes. The rest is about the sentence as a whole.

    Args:
        tree: Below ROOT, with head children.
    """
    nodes = nodes_of(tree)
    for number, node in enumerate(nodes):
        for name in _of_node(nodes, node):
            yield number, name
    leaves = [number for number, node in enumerate(nodes) if node.word is not None]
    for name, first, last in neighbour_features(nodes):
        number = leaves[first]
        while nodes[number].end <= last:
            number = nodes[number].parent
        yield number, name


def _of_node(nodes: list[Node], node: Node) -> Iterator[str]:
    if node.word is not None:
        yield from _word(nodes, node)
    else:
        yield from _rule(nodes, node)
        yield from _dependencies(nodes, node)
        yield from _edges(nodes, node)
        yield from _coordination(nodes, node)
    left = size_class(nodes[0].end - node.end)
    yield f"heavy {node.label} {size_class(node.end - node.start)} {left}"


def _chance(log_prob: float, words: int) -> Iterator[str]:
    """Yield the parser's log probability per word, alone and with the length."""
    if math.isfinite(log_prob):
        each = log_prob / words
        yield f"log-prob {math.floor(each / _NATS)}"
        yield f"log-prob-length {math.floor(each / _WIDE_NATS)} {size_class(words)}"


def _above(nodes: list[Node], node: Node) -> str:
    return nodes[node.parent].label if node.parent >= 0 else "^"


def _rule(nodes: list[Node], node: Node) -> Iterator[str]:
    """Yield rules with their ancestors, and sequences of children."""
    labels = [nodes[child].label for child in node.children]
    rule = f"{node.label} -> {' '.join(labels)}"
    parent = _above(nodes, node)
    higher = _above(nodes, nodes[node.parent]) if node.parent >= 0 else "^"
    head = nodes[node.head]
    yield f"rule {rule}"
    yield f"rule^1 {parent} {rule}"
    yield f"rule^2 {higher} {parent} {rule}"
    yield f"rule-tag {head.label} {rule}"
    yield f"rule-word {head.word} {rule}"
    padded = ["[", *labels, "]"]
    for size in (2, 3):
        for first in range(len(padded) - size + 1):
            part = " ".join(padded[first : first + size])
            place = first - 1 - node.head_child
            yield f"children {node.label} {part}"
            yield f"children-head {node.label} {place + size > 0}{place > 0} {part}"


def _dependencies(nodes: list[Node], node: Node) -> Iterator[str]:
    """Yield pairs of a lexical head and those of the other children, by words and by tags."""
    head = nodes[node.head]
    for place, child in enumerate(node.children):
        other = nodes[nodes[child].head]
        if other is head:
            continue
        side = "L" if place < node.head_child else "R"
        yield f"tags {node.label} {side} {head.label} {other.label}"
        yield f"tag-word {node.label} {side} {head.label} {other.word}"
        yield f"word-tag {node.label} {side} {head.word} {other.label}"
        yield f"words {side} {head.word} {other.word}"
    heads = [nodes[nodes[child].head] for child in node.children]
    for one, two in pairwise(heads):
        yield f"sisters {node.label} {one.label} {two.label}"
        yield f"sister-words {one.word} {two.word}"


def _edges(nodes: list[Node], node: Node) -> Iterator[str]:
    """Yield the tags at both edges of a phrase."""
    first, last = node.children[0], node.children[-1]
    while nodes[first].word is None:
        first = nodes[first].children[0]
    while nodes[last].word is None:
        last = nodes[last].children[-1]
    size = size_class(node.end - node.start)
    yield f"edges {node.label} {size} {nodes[first].label} {nodes[last].label}"
    yield f"edge-words {node.label} {nodes[first].word} {nodes[last].word}"


def _shape(nodes: list[Node], number: int, depth: int) -> str:
    node = nodes[number]
    if depth == 0 or node.word is not None:
        return node.label
    below = " ".join(_shape(nodes, child, depth - 1) for child in node.children)
    return f"({node.label} {below})"


def _coordination(nodes: list[Node], node: Node) -> Iterator[str]:
    """Yield to which depths the two sides of a conjunction are alike, and how long they are."""
    for place in range(1, len(node.children) - 1):
        if nodes[node.children[place]].label not in _COORDINATION:
            continue
        one, two = node.children[place - 1], node.children[place + 1]
        for depth in range(_DEPTHS):
            same = _shape(nodes, one, depth) == _shape(nodes, two, depth)
            yield f"parallel {depth} {same}"
            if not same:
                break
        lengths = [nodes[number].end - nodes[number].start for number in (one, two)]
        yield f"parallel-length {node.label} {size_class(lengths[0])} {size_class(lengths[1])}"


def _word(nodes: list[Node], node: Node) -> Iterator[str]:
    """Yield a word and its tag, with more and more ancestors."""
    path = node.label
    yield f"word {node.word}"
    yield f"word+0 {node.word} {path}"
    at = node
    for number in range(1, _ANCESTORS + 1):
        if at.parent < 0:
            break
        at = nodes[at.parent]
        path = f"{path} {at.label}"
        yield f"word+{number} {node.word} {path}"
        yield f"path {path}"


def _right_branch(nodes: list[Node]) -> dict[str, int]:
    """Return the number of phrases on the way to the last word that is not punctuation."""
    last = max(
        (node.start for node in nodes if node.word is not None and node.label not in _PUNCTUATION),
        default=0,
    )
    phrases = [node for node in nodes if node.word is None]
    on_path = sum(node.start <= last < node.end for node in phrases)
    return {"right-branch": on_path, "off-right-branch": len(phrases) - on_path}
