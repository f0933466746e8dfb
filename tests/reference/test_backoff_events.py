"""The back-off reference: events of sentences and trees (section 6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.backoff import (
    BEGIN,
    END,
    NONE,
    START,
    STOP,
    TOP,
    UNKNOWN,
    USYM,
    Tree,
    TreeletEvent,
    UniformBase,
    YieldBase,
    ngram_events,
    nonterminal_events,
    terminal_events,
    tree_rules,
    treelet_events,
)
from tests.reference.backoff_cases import code_of

RULE_2 = "S-VBD^ROOT -> NP-NN VP-VBD^S ."
RULE_NP = "NP-NN -> DT-the NN"
RULE_VP = "VP-VBD^S -> VBD CD-DC NNTP"
F1: Tree = (
    "ROOT",
    (
        "S-VBD^ROOT",
        ("NP-NN", ("DT-the", "The"), ("NN", "index")),
        ("VP-VBD^S", ("VBD", "fell"), ("CD-DC", "109.85"), ("NNTP", "Monday")),
        (".", "."),
    ),
)


def test_treelet_events_of_figure_1() -> None:
    assert treelet_events(F1) == [
        TreeletEvent("N", ("ROOT", TOP, TOP), ("S-VBD^ROOT",)),
        TreeletEvent("N", ("S-VBD^ROOT", "ROOT", "ROOT -> S-VBD^ROOT"), ("NP-NN", "VP-VBD^S", ".")),
        TreeletEvent("N", ("NP-NN", "S-VBD^ROOT", RULE_2), ("DT-the", "NN")),
        TreeletEvent("T", ("DT-the", "NN", RULE_NP, BEGIN, BEGIN), "The"),
        TreeletEvent("T", ("NN", NONE, RULE_NP, "The", BEGIN), "index"),
        TreeletEvent("N", ("VP-VBD^S", "S-VBD^ROOT", RULE_2), ("VBD", "CD-DC", "NNTP")),
        TreeletEvent("T", ("VBD", "CD-DC", RULE_VP, "index", "The"), "fell"),
        TreeletEvent("T", ("CD-DC", "NNTP", RULE_VP, "fell", "index"), "109.85"),
        TreeletEvent("T", ("NNTP", NONE, RULE_VP, "109.85", "fell"), "Monday"),
        TreeletEvent("T", (".", NONE, RULE_2, "Monday", "109.85"), "."),
    ]


def test_events_by_kind() -> None:
    events = treelet_events(F1)
    assert terminal_events([F1]) == [(e.context, e.outcome) for e in events if e.kind == "T"]
    assert nonterminal_events([F1]) == [(e.context, e.outcome) for e in events if e.kind == "N"]
    assert tree_rules([F1]) == [(e.context[0], e.outcome) for e in events if e.kind == "N"]


PRETERMINALS = st.tuples(st.sampled_from(["N", "V"]), st.sampled_from(["x", "y"]))
PHRASES = st.recursive(
    PRETERMINALS,
    lambda inner: st.tuples(
        st.sampled_from(["A", "B"]), st.lists(inner, min_size=1, max_size=3)
    ).map(lambda pair: (pair[0], *pair[1])),
    max_leaves=6,
)


@given(PHRASES)
def test_number_of_events(tree: Tree) -> None:
    """TL 2.1: n phrasal nodes give n N-events, l words l T-events, words in order."""

    def walk(node: Tree) -> tuple[int, list[str]]:
        if isinstance(node[1], str):
            return 0, [node[1]]
        inner = [walk(child) for child in node[1:]]
        return 1 + sum(n for n, _ in inner), [word for _, words in inner for word in words]

    whole = ("ROOT", tree)
    phrasal, words = walk(whole)
    events = treelet_events(whole)
    assert sum(event.kind == "N" for event in events) == phrasal
    assert [event.outcome for event in events if event.kind == "T"] == words
    padded = [BEGIN, BEGIN, *words]
    before = [event.context[3:] for event in events if event.kind == "T"]
    assert before == [(padded[i + 1], padded[i]) for i in range(len(words))]


def test_ngram_events() -> None:
    assert ngram_events([["a", "b"]], 3) == [
        ((BEGIN, BEGIN), "a"),
        ((BEGIN, "a"), "b"),
        (("a", "b"), END),
    ]
    assert ngram_events([["a"]], 1) == [((), "a"), ((), END)]
    assert ngram_events([[]], 2) == [((BEGIN,), END)]


@pytest.mark.parametrize("word", [BEGIN, START, TOP, NONE, USYM, END])
def test_reserved_words(word: str) -> None:
    assert code_of(lambda: ngram_events([["a", word]], 2)) == "E_RESERVED_SYMBOL"
    assert code_of(lambda: treelet_events(("ROOT", ("N", word)))) == "E_RESERVED_SYMBOL"


@pytest.mark.parametrize("label", [BEGIN, START, STOP, TOP, NONE, USYM])
def test_reserved_labels(label: str) -> None:
    for tree in [("ROOT", (label, "a")), ("ROOT", (label, ("N", "a"))), (label, ("N", "a"))]:
        assert code_of(lambda tree=tree: treelet_events(tree)) == "E_RESERVED_SYMBOL"
    assert code_of(lambda: YieldBase([("S", ("N", label))])) == "E_RESERVED_SYMBOL"
    assert code_of(lambda: YieldBase([(label, ("N",))])) == "E_RESERVED_SYMBOL"


def test_unknown_word_is_legal() -> None:
    assert ngram_events([[UNKNOWN]], 2)[0] == ((BEGIN,), UNKNOWN)
    assert code_of(lambda: UniformBase(["a", BEGIN])) == "E_RESERVED_SYMBOL"
