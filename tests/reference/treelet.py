"""The nine treelet transforms T1..T9 (spec 6).

Every function t1..t9 changes the tree in place and returns it; `apply` works on a copy.
ROOT always means the top node of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

from .heads import CONJUNCTIONS, PUNCTUATION, ann, closed, lower
from .nodes import Node, clone, postorder

TEMPORAL_TAG = {"NN": "NNT", "NNS": "NNTS", "NNP": "NNTP", "NNPS": "NNTPS"}
BETWEEN_NPS = PUNCTUATION | CONJUNCTIONS | {"RB", "ADVP", "PRN"}
LINKS_NPS = CONJUNCTIONS | {",", ":", "-LRB-"}

VpLabel = Literal["lowest", "highest"]


# ------------------------------------------------------------------------------------ helpers


def splice(children: Sequence[Node], spliced: Collection[int]) -> list[Node]:
    """Replace every child whose index is in `spliced` by its own children."""
    result: list[Node] = []
    for index, child in enumerate(children):
        result.extend(child.children if index in spliced else [child])
    return result


def is_phrase(node: Node, base: str) -> bool:
    """True for a phrasal node with this base."""
    return node.is_phrasal and node.base == base


def first_word_class(siblings: Iterable[Node]) -> str | None:
    """Base of the first sibling that is no punctuation."""
    return next((node.base for node in siblings if node.base not in PUNCTUATION), None)


def phrases(children: Sequence[Node], base: str) -> list[int]:
    """Indices of the phrasal children with this base."""
    return [index for index, child in enumerate(children) if is_phrase(child, base)]


def touches_conjunction(children: Sequence[Node], index: int) -> bool:
    """Is the nearest non-punctuation sibling on either side CC or CONJP?"""
    before = first_word_class(reversed(children[:index]))
    after = first_word_class(children[index + 1 :])
    return before in CONJUNCTIONS or after in CONJUNCTIONS


# -------------------------------------------------------------------------------- transforms


def t1(tree: Node, temporal: Collection[str] | None) -> Node:
    """Temporal nouns."""
    for node in postorder(tree):
        if node.word is not None and temporal and lower(node.word) in temporal:
            node.base = TEMPORAL_TAG.get(node.base, node.base)
    return tree


def t2(tree: Node) -> Node:
    """Head annotation of every node but the top one."""
    for node in postorder(tree):
        if node is tree:
            continue
        if node.word is None:
            node.head = ann(node)
        elif closed(node.base, node.word) and node.word != node.base:
            node.head = lower(node.word)
    return tree


def linked(between: Sequence[Node]) -> bool:
    """Does the material between two NPs coordinate them or mark an apposition?"""
    bases = {node.base for node in between}
    return bases <= BETWEEN_NPS and bool(bases & LINKS_NPS)


def np_is_kept(children: Sequence[Node], index: int) -> bool:
    """T3: is the NP child at `index` kept?"""
    nps = phrases(children, "NP")
    rank = nps.index(index)
    if rank > 0 and linked(children[nps[rank - 1] + 1 : index]):
        return True
    if rank + 1 < len(nps) and linked(children[index + 1 : nps[rank + 1]]):
        return True
    return touches_conjunction(children, index)


def t3(tree: Node) -> Node:
    """NP flattening."""
    for node in postorder(tree):
        if is_phrase(node, "NP"):
            kids = node.children
            spliced = [i for i in phrases(kids, "NP") if not np_is_kept(kids, i)]
            node.children = splice(kids, spliced)
    return tree


def number_class(word: str) -> str:
    """T4: class of a CD word. Digits are ASCII, letters Unicode."""
    digits = [char for char in word if char in "0123456789"]
    has_letter = any(char.isalpha() for char in word)
    if len(word) == 4 and len(digits) == 4:
        return "YR"
    if not digits:
        return "AL"
    if has_letter:
        return "MX"
    if any("." + digit in word for digit in "0123456789"):
        return "DC"
    return "NM"


def t4(tree: Node) -> Node:
    """Number classes."""
    for node in postorder(tree):
        if node.word is not None and node.base == "CD":
            node.head = number_class(node.word)
    return tree


def t5(tree: Node) -> Node:
    """SBAR flattening, one pass."""
    for node in postorder(tree):
        if is_phrase(node, "SBAR"):
            node.children = splice(node.children, phrases(node.children, "S"))
    return tree


def t6(tree: Node, vp_label: VpLabel = "lowest") -> Node:
    """VP flattening."""
    for node in postorder(tree):
        if not is_phrase(node, "VP"):
            continue
        kids = node.children
        vps = phrases(kids, "VP")
        if len(vps) != 1 or touches_conjunction(kids, vps[0]):
            continue
        if vp_label == "lowest":
            node.head = kids[vps[0]].head
        node.children = splice(kids, vps)
    return tree


def t7(tree: Node) -> Node:
    """Gapped sentences."""
    for node in postorder(tree):
        if node.base in ("S", "SBAR"):
            relevant = [child.base for child in node.children if child.base in ("NP", "VP")]
            if relevant and relevant[0] == "VP":
                node.gap = True
    return tree


def t8(tree: Node) -> Node:
    """Parent annotation of VPs and of the children of the top node."""
    for node in postorder(tree):
        for child in node.children:
            if is_phrase(child, "VP"):
                child.parent = node.base
    for child in tree.children:
        child.parent = "ROOT"
    return tree


def bottom_of_unary_chain(node: Node) -> Node:
    """The first node downwards that is a preterminal or has several children."""
    while node.is_phrasal and len(node.children) == 1:
        node = node.children[0]
    return node


def t9(tree: Node) -> Node:
    """Unary deletion below the top node."""
    for node in postorder(tree):
        node.children = [bottom_of_unary_chain(child) for child in node.children]
    return tree


def apply(
    tree: Node,
    temporal: Collection[str] | None,
    enabled: Iterable[int] = range(1, 10),
    vp_label: VpLabel = "lowest",
) -> Node:
    """A transformed copy; the enabled transforms always run in the order T1..T9."""
    steps: dict[int, Callable[[Node], Node]] = {
        1: lambda t: t1(t, temporal),
        2: t2,
        3: t3,
        4: t4,
        5: t5,
        6: lambda t: t6(t, vp_label),
        7: t7,
        8: t8,
        9: t9,
    }
    result = clone(tree)
    for number in sorted(set(enabled)):
        result = steps[number](result)
    return result
