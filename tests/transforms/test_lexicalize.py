"""Lexicalization: head words in labels, and the laws of the inverse."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transforms.hard_trees import heads, right_branching, trees, unary_chain

from treelm.errors import CorpusFormatError, UsageError
from treelm.transforms.lexicalize import Lexicalize, lexicalize, undo_lexicalize
from treelm.transforms.markovize import Markovize, annotate_parents
from treelm.transforms.transform import Pipeline
from treelm.transforms.unary_chains import MergeUnaryChains
from treelm.trees.heads import lexical_head
from treelm.trees.tree import Tree


def sentence() -> Tree:
    """*the dog barks* with heads."""
    subject = Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")], head=1)
    predicate = Tree("VP", [Tree("VBZ", "barks")])
    return Tree("ROOT", [Tree("S", [subject, predicate], head=1)])


def test_lexicalize_puts_head_words_into_phrase_labels() -> None:
    assert str(lexicalize(sentence())) == (
        "(ROOT[barks] (S[barks] (NP[dog] (DT the) (NN dog)) (VP[barks] (VBZ barks))))"
    )


def test_lexicalize_with_tags() -> None:
    assert str(lexicalize(sentence(), tag=True)) == (
        "(ROOT[barks/VBZ] (S[barks/VBZ] (NP[dog/NN] (DT the) (NN dog)) "
        "(VP[barks/VBZ] (VBZ barks))))"
    )


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("[", r"X[\[]"),
        ("]", r"X[\]]"),
        ("a/b", r"X[a\/b]"),
        ("\\", r"X[\\]"),
        ("C++", r"X[C\+\+]"),
        ("^~@|", r"X[\^\~\@\|]"),
        ("-LRB-", "X[-LRB-]"),
    ],
)
def test_lexicalize_escapes_special_characters(word: str, written: str) -> None:
    tree = Tree("X", [Tree("T", word)])
    assert lexicalize(tree).label == written
    assert undo_lexicalize(lexicalize(tree)) == tree


def test_lexicalize_word_stands_before_the_annotation() -> None:
    annotated = annotate_parents(sentence(), vertical_order=2)
    after = lexicalize(annotated)
    assert after[0].label == "S[barks]^ROOT"
    assert after[0].label.parent == "ROOT"
    assert undo_lexicalize(after) == annotated


def test_lexicalize_head_word_follows_heads() -> None:
    tree = sentence()
    assert lexical_head(tree) is tree[0][1][0]
    assert lexical_head(tree[0][0][0]) is tree[0][0][0]


@given(trees(), st.booleans())
def test_lexicalize_undo_restores_tree_and_heads(tree: Tree, tag: bool) -> None:
    after = lexicalize(tree, tag=tag)
    assert undo_lexicalize(after) == tree
    assert heads(after) == heads(undo_lexicalize(after)) == heads(tree)
    assert after.words == tree.words
    assert after.tags == tree.tags


@given(trees())
def test_lexicalize_labels_hold_the_head_word(tree: Tree) -> None:
    for old, new in zip(tree.preorder(), lexicalize(tree).preorder(), strict=True):
        if old.is_phrasal:
            inside = new.label[len(old.label) + 1 : -1]
            assert re.sub(r"\\(.)", r"\1", inside) == lexical_head(old).word


@given(trees(), st.booleans())
def test_lexicalize_output_can_be_transformed_further(tree: Tree, tag: bool) -> None:
    for later in (MergeUnaryChains(), Markovize(vertical_order=3)):
        pipeline = Pipeline((Lexicalize(tag=tag), later))
        assert pipeline.undo(pipeline.apply(tree)) == tree


@pytest.mark.parametrize("tree", [right_branching(3000), unary_chain(3000)])
def test_lexicalize_deep(tree: Tree) -> None:
    assert lexical_head(tree).word == "w"
    assert undo_lexicalize(lexicalize(tree, tag=True)) == tree


def test_lexicalize_needs_heads() -> None:
    tree = Tree.from_string("(S (A a) (B b))")
    for function in (lexicalize, lexical_head):
        with pytest.raises(UsageError) as error:
            function(tree)
        assert error.value.code == "E_NO_HEAD"


def test_lexicalize_refuses_a_backslash_in_a_category() -> None:
    with pytest.raises(CorpusFormatError) as error:
        lexicalize(Tree("A\\", [Tree("B", "b")]))
    assert error.value.code == "E_RESERVED_CHAR"


def test_lexicalize_undo_leaves_plain_labels() -> None:
    assert undo_lexicalize(sentence()) == sentence()


def test_lexicalize_class_wraps_the_functions() -> None:
    transform = Lexicalize(tag=True)
    assert transform.apply(sentence()) == lexicalize(sentence(), tag=True)
    assert transform.undo(transform.apply(sentence())) == sentence()
    with pytest.raises(UsageError, match="tag is 'yes'"):
        Lexicalize(tag="yes")  # type: ignore[arg-type]
