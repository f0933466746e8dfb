"""Head rules, closed class and head annotation (spec 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .nodes import Node


def names(text: str) -> frozenset[str]:
    """The set of the names in a text."""
    return frozenset(text.split())


PUNCTUATION = names(", . : `` '' -LRB- -RRB- -LSB- -RSB- -LCB- -RCB- NFP")
BRACKET_TOKENS = names("-LRB- -RRB- -LCB- -RCB- -LSB- -RSB-")
CONJUNCTIONS = frozenset({"CC", "CONJP"})
TEMPORAL_SOURCE = {"NNT": "NN", "NNTS": "NNS", "NNTP": "NNP", "NNTPS": "NNPS"}

CLOSED_TAGS = names("IN WDT PDT WP WP$ TO WRB RP DT SYM EX POS PRP AUX CC")
CLOSED_VERBS = names(
    "do does did done doing be am is are was were been being have has had having 's 're 'm 've 'd"
)


@dataclass(frozen=True)
class Step:
    """One search: kind L or R (list order first), Rset (position first), last (last child)."""

    kind: Literal["L", "R", "Rset", "last"]
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """Steps tried in order, then the default side among non-punctuation children."""

    steps: tuple[Step, ...]
    default: Literal["L", "R"]

    def lists(self, category: str) -> bool:
        """True if the category is in the row's list (for NP: in one of the steps 2-6)."""
        return any(category in step.categories for step in self.steps if step.kind != "last")


def left(categories: str) -> Row:
    """A plain `L` row."""
    return Row((Step("L", tuple(categories.split())),), "L")


def right(categories: str) -> Row:
    """A plain `R` row."""
    return Row((Step("R", tuple(categories.split())),), "R")


NP_ROW = Row(
    (
        Step("last", ("POS",)),
        Step("Rset", ("NN", "NNP", "NNPS", "NNS", "NX", "NML", "POS", "JJR")),
        Step("L", ("NP",)),
        Step("Rset", ("$", "ADJP", "PRN")),
        Step("R", ("CD",)),
        Step("Rset", ("JJ", "JJS", "RB", "QP")),
    ),
    "R",
)

PP_ROW = Row((Step("R", ("IN", "TO", "VBG", "VBN", "RP", "FW")), Step("L", ("PP",))), "R")

UNLISTED_ROW = left("")

TABLE: dict[str, Row] = {
    "ADJP": left("NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    "ADVP": right("RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    "CIT": left(""),
    "CONJP": right("CC RB IN"),
    "EDITED": left(""),
    "FRAG": right(""),
    "INTJ": left(""),
    "LST": right("LS :"),
    "NAC": left("NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    "PP": PP_ROW,
    "PRN": left(""),
    "PRT": right("RP"),
    "QP": left("$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    "RRC": right("VP NP ADVP ADJP PP"),
    "S": left("TO IN VP S SBAR ADJP UCP NP"),
    "SBAR": left("WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    "SBARQ": left("SQ S SINV SBARQ FRAG"),
    "SINV": left("VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    "SQ": left("VBZ VBD VBP VB MD VP SQ"),
    "UCP": right(""),
    "VP": left("TO VBD VBN MD VBZ VB VBG VBP AUX AUXG VP ADJP SYM NN NNS NP"),
    "WHADJP": left("CC WRB JJ ADJP"),
    "WHADVP": right("CC WRB"),
    "WHNP": left("WDT WP WP$ WHADJP WHPP WHNP"),
    "WHPP": right("IN TO FW"),
    "X": right(""),
    "NP": NP_ROW,
    "NX": NP_ROW,
    "NML": NP_ROW,
    "ROOT": left("S SQ SINV SBAR FRAG"),
}


# --------------------------------------------------------------------------------- head child


def match_step(step: Step, categories: Sequence[str]) -> int | None:
    """Index of the child that one step selects."""
    rightwards = range(len(categories))
    leftwards = rightwards[::-1]
    if step.kind == "last":
        return len(categories) - 1 if categories[-1] in step.categories else None
    if step.kind == "Rset":
        return next((i for i in leftwards if categories[i] in step.categories), None)
    order = rightwards if step.kind == "L" else leftwards
    for wanted in step.categories:
        for index in order:
            if categories[index] == wanted:
                return index
    return None


def default_child(side: Literal["L", "R"], categories: Sequence[str]) -> int:
    """Outermost non-punctuation child on that side; all punctuation: the outermost child."""
    order = list(range(len(categories)))
    if side == "R":
        order.reverse()
    return next((i for i in order if categories[i] not in PUNCTUATION), order[0])


def repair_coordination(row: Row, categories: Sequence[str], k: int) -> int:
    """Move from the last to an earlier conjunct, once."""
    if k < 2 or categories[k - 1] not in CONJUNCTIONS:
        return k
    for target in range(k - 2, -1, -1):
        if categories[target] in PUNCTUATION or categories[target] == "HYPH":
            continue
        fits = categories[target] == categories[k] or row.lists(categories[target])
        return target if fits else k
    return k


def head_index(node: Node) -> int:
    """Index of the head child of a phrasal node."""
    if len(node.children) == 1:
        return 0
    categories = [TEMPORAL_SOURCE.get(child.base, child.base) for child in node.children]
    row = TABLE.get(node.base, UNLISTED_ROW)
    for step in row.steps:
        match = match_step(step, categories)
        if match is not None:
            return repair_coordination(row, categories, match)
    return default_child(row.default, categories)


def lexical_head(node: Node) -> Node:
    """The preterminal reached by following head children."""
    while node.is_phrasal:
        node = node.children[head_index(node)]
    return node


# --------------------------------------------------------------------------------- annotation


def lower(word: str) -> str:
    """Lower case with plain apostrophes; bracket tokens are left alone."""
    if word in BRACKET_TOKENS:
        return word
    return word.lower().replace("\u2019", "'").replace("\u2018", "'")


def closed(tag: str, word: str) -> bool:
    """Is the word of this tag closed class?"""
    if tag in PUNCTUATION or tag in CLOSED_TAGS:
        return True
    return tag.startswith(("VB", "AUX")) and lower(word) in CLOSED_VERBS


def ann(node: Node) -> str:
    """Head annotation (4.1): the lower-cased head word if closed class, else its tag."""
    head = lexical_head(node)
    assert head.word is not None
    return lower(head.word) if closed(head.base, head.word) else head.base
