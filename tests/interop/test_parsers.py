"""Other people's parsers: nltk's own, and stand-ins that look like stanza's and benepar's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from treelm.errors import CorpusFormatError
from treelm.interop.parsers import (
    benepar_parser,
    from_benepar,
    nltk_parser,
    stanza_parser,
)
from treelm.interop.stanza_trees import from_stanza
from treelm.models.interface.parser import Parser
from treelm.trees.tree import Tree

nltk = pytest.importorskip("nltk")

GRAMMAR = """
    S -> A B [0.6] | B A [0.4]
    A -> 'x' [.7] | 'y' [.3]
    B -> 'x' [.5] | 'y' [.5]
"""


@dataclass
class StanzaTree:
    """What a node of stanza looks like: words are nodes without children."""

    label: str
    children: Sequence[StanzaTree] = ()

    @classmethod
    def of(cls, tree: Tree) -> StanzaTree:
        below = [cls(tree.word)] if tree.word else [cls.of(child) for child in tree.children]
        return cls(str(tree.label), tuple(below))


def test_nltk_chart_parsers_give_lists() -> None:
    from nltk.parse.pchart import InsideChartParser

    parser = nltk_parser(InsideChartParser(nltk.PCFG.fromstring(GRAMMAR)))
    assert isinstance(parser, Parser)
    first, second = parser.parse("x y", 10)
    assert str(first.tree) == "(ROOT (S (A x) (B y)))"
    assert (math.exp(first.score), math.exp(second.score)) == pytest.approx((0.21, 0.06))
    assert parser.parse("x y", 1) == [first]
    assert parser.parse("") == []
    assert parser.parse("zebra") == []
    best = parser.parse_many([("x", "y"), (), ("zebra",)])
    assert [parse and parse.tree for parse in best] == [first.tree, None, None]


def test_stanza_trees_become_ours() -> None:
    tree = Tree.from_string("(ROOT (S (NP (PRP I)) (VP (VBP sleep)) (. .)))")
    assert from_stanza(StanzaTree.of(tree)) == tree

    def pipeline(sentences: list[list[str]]) -> SimpleNamespace:
        assert sentences == [["I", "sleep", "."]]
        return SimpleNamespace(sentences=[SimpleNamespace(constituency=StanzaTree.of(tree))])

    (parse,) = stanza_parser(pipeline).parse("I sleep .", 1000)
    assert parse.tree == tree
    with pytest.raises(CorpusFormatError) as caught:
        from_stanza(StanzaTree("NP", (StanzaTree("the"), StanzaTree("dog"))))
    assert caught.value.code == "E_MULTI_WORD"
    with pytest.raises(CorpusFormatError) as caught:
        from_stanza(StanzaTree("NP", (StanzaTree("the"), StanzaTree.of(tree))))
    assert caught.value.code == "E_MIXED"
    with pytest.raises(CorpusFormatError) as caught:
        from_stanza(StanzaTree("the"))
    assert caught.value.code == "E_NO_WORD"


def test_benepar_parsers_and_sentences() -> None:
    text = "(TOP (S (NP-SBJ (PRP I)) (VP (VBP sleep))))"

    class Benepar:
        def parse(self, words: list[str]) -> object:
            return nltk.Tree.fromstring(text)

    parser = benepar_parser(Benepar())
    assert str(parser.parse("I sleep")[0].tree) == "(ROOT (S (NP (PRP I)) (VP (VBP sleep))))"
    span = SimpleNamespace(_=SimpleNamespace(parse_string=text))
    assert from_benepar(span) == parser.parse("I sleep")[0].tree
    with pytest.raises(CorpusFormatError, match="tokenization") as caught:
        parser.parse("I do n't sleep")
    assert caught.value.code == "E_WORDS_CHANGED"
