"""Trees to and from nltk."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given

from treelm.errors import CorpusFormatError, MissingExtra
from treelm.testing.strategies import trees
from treelm.trees.tree import Tree

nltk_tree = pytest.importorskip("nltk.tree")


@given(trees())
def test_nltk_round_trip(tree: Tree) -> None:
    assert Tree.from_nltk(tree.to_nltk()) == tree


def test_nltk_sees_the_same_tree() -> None:
    tree = Tree.from_string("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))").to_nltk()
    assert tree == nltk_tree.Tree.fromstring("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))")
    assert tree.leaves() == ["the", "dog", "barks"]


@pytest.mark.parametrize(
    ("text", "code"), [("(NP the (NN dog))", "E_MIXED"), ("(NN stock market)", "E_MULTI_WORD")]
)
def test_nltk_trees_that_are_none_of_ours(text: str, code: str) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        Tree.from_nltk(nltk_tree.Tree.fromstring(text))
    assert caught.value.code == code


def test_nltk_deep_tree() -> None:
    tree = nltk_tree.Tree("NN", ["dog"])
    for _ in range(5000):
        tree = nltk_tree.Tree("NP", [tree])
    assert Tree.from_nltk(tree).height == 5001


def test_missing_extra_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.delitem(sys.modules, "nltk.tree")
    with pytest.raises(MissingExtra, match=r'pip install "treelm\[nltk\]"'):
        Tree("NN", "dog").to_nltk()


def test_nltk_chunk_trees_are_refused_with_a_reason() -> None:
    with pytest.raises(CorpusFormatError, match="chunk trees"):
        Tree.from_nltk(nltk_tree.Tree("NP", [("dog", "NN")]))
