"""Unary chains: the examples of the specifications, and the laws of the inverse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transforms.hard_trees import LABELS, heads, trees, unary_chain

from treelm.errors import CorpusFormatError, UnsupportedTask, UsageError
from treelm.transforms.markovize import annotate_parents, undo_annotate_parents
from treelm.transforms.unary_chains import (
    DisambiguateTags,
    Keep,
    MergeUnaryChains,
    disambiguate_tags,
    merge_unary_chains,
    undo_disambiguate_tags,
    undo_merge_unary_chains,
)
from treelm.trees.label import Label
from treelm.trees.tree import Tree

STOP = "(ROOT (S (VP (VB Stop)) (. .)))"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(ROOT (S (VP (VB Stop))))", "(ROOT (S+VP+VB Stop))"),
        ("(S (VP (VB Stop)))", "(S+VP+VB Stop)"),
        ("(ROOT (NN x))", "(ROOT (NN x))"),
        ("(ROOT (S (VP (VB a) (NP (NN b)))))", "(ROOT (S+VP (VB a) (NP+NN b)))"),
        (r"(ROOT (X (SYM-\+ +)))", r"(ROOT (X+SYM-\+ +))"),
    ],
)
def test_unary_chains_all_joins_labels(before: str, after: str) -> None:
    assert str(merge_unary_chains(Tree.from_string(before))) == after
    assert undo_merge_unary_chains(Tree.from_string(after)) == Tree.from_string(before)


def test_unary_chains_annotation_is_written_once_at_the_end() -> None:
    tree = annotate_parents(Tree.from_string("(ROOT (S (VP (VB Stop))))"), vertical_order=2)
    assert str(merge_unary_chains(tree)) == "(ROOT (S+VP+VB^ROOT Stop))"


def test_unary_chains_children_keep_the_annotation_of_their_real_parent() -> None:
    tree = annotate_parents(
        Tree.from_string("(ROOT (S (VP (VB a) (NP (NN b)))))"), vertical_order=2
    )
    merged = merge_unary_chains(tree)
    assert str(merged) == "(ROOT (S+VP^ROOT (VB^VP a) (NP+NN^VP b)))"
    assert merged[0].label.parent == "ROOT"


@pytest.mark.parametrize(
    ("keep", "after"),
    [
        ("top", "(ROOT (S (NP~T He) (VP (VB a) (NP~T b))))"),
        ("tag", "(ROOT (S (PRP He) (VP (VB a) (NN b))))"),
    ],
)
def test_unary_chains_top_and_tag_keep_one_label(keep: Keep, after: str) -> None:
    tree = Tree.from_string("(ROOT (S (NP (PRP He)) (VP (VP (VB a) (NP (NX (NN b)))))))")
    assert str(merge_unary_chains(tree, keep=keep)) == after


def test_unary_chains_tag_drops_phrases_over_a_tag() -> None:
    assert str(merge_unary_chains(Tree.from_string("(NP (NN x))"), keep="tag")) == "(NN x)"


def test_unary_chains_top_writes_the_annotation_last() -> None:
    tree = annotate_parents(Tree.from_string("(ROOT (S (NP (NN b)) (VB a)))"), vertical_order=2)
    assert str(merge_unary_chains(tree, keep="top")) == "(ROOT (S^ROOT (NP~T^S b) (VB^S a)))"


def test_unary_chains_other_root_never_joins() -> None:
    assert (
        str(merge_unary_chains(Tree.from_string("(TOP (S (X w)))"), root="TOP")) == "(TOP (S+X w))"
    )
    assert (
        str(merge_unary_chains(Tree.from_string("(ROOT (S (X w)))"), root="TOP")) == "(ROOT+S+X w)"
    )


def test_unary_chains_keeps_the_structured_top_label() -> None:
    tree = Tree(Label("NP", "NN", parent="S"), [Tree("NX", [Tree("A", "a"), Tree("B", "b")])])
    assert merge_unary_chains(tree, keep="tag").label.head == "NN"


def test_unary_chains_keeps_the_head_of_the_lowest_node() -> None:
    pair = Tree("VP", [Tree("A", "a"), Tree("B", "b")], head=1)
    merged = merge_unary_chains(Tree("S", [pair], head=0))
    assert merged.head == 1
    assert heads(undo_merge_unary_chains(merged)) == [0, 1]


@given(trees())
def test_unary_chains_undo_restores_the_tree(tree: Tree) -> None:
    merged = merge_unary_chains(tree)
    assert undo_merge_unary_chains(merged) == tree
    assert heads(undo_merge_unary_chains(merged)) == heads(tree)


@given(trees(), st.integers(1, 4))
def test_unary_chains_undo_restores_an_annotated_tree_up_to_its_annotation(
    tree: Tree, order: int
) -> None:
    merged = merge_unary_chains(annotate_parents(tree, vertical_order=order))
    assert undo_annotate_parents(undo_merge_unary_chains(merged)) == tree


@given(trees(), st.sampled_from(["all", "top", "tag"]))
def test_unary_chains_leaves_no_unary_but_root(tree: Tree, keep: Keep) -> None:
    merged = merge_unary_chains(tree, keep=keep)
    assert all(len(node) != 1 or node.label == "ROOT" for node in merged.preorder())
    assert merged.words == tree.words


@given(trees(), st.sampled_from(["top", "tag"]))
def test_unary_chains_top_and_tag_are_idempotent(tree: Tree, keep: Keep) -> None:
    merged = merge_unary_chains(tree, keep=keep)
    assert merge_unary_chains(merged, keep=keep) == merged


@given(trees())
def test_unary_chains_tag_keeps_the_tags(tree: Tree) -> None:
    assert merge_unary_chains(tree, keep="tag").tags == tree.tags


@pytest.mark.parametrize("keep", ["all", "top", "tag"])
def test_unary_chains_deep(keep: Keep) -> None:
    tree = unary_chain(3000)
    merged = merge_unary_chains(tree, keep=keep)
    assert merged.is_preterminal
    if keep == "all":
        assert undo_merge_unary_chains(merged) == tree


@pytest.mark.parametrize("label", ["A+B", "@A", "A\\B", "A\\"])
def test_unary_chains_all_refuses_its_marks_in_a_category(label: str) -> None:
    with pytest.raises(CorpusFormatError) as error:
        merge_unary_chains(Tree("S", [Tree(label, "w"), Tree("B", "w")]))
    assert error.value.code == "E_RESERVED_CHAR"
    merge_unary_chains(Tree("S", [Tree(label, "w")]), keep="tag")


def test_unary_chains_top_refuses_a_tilde_in_a_phrase_label() -> None:
    with pytest.raises(CorpusFormatError) as error:
        merge_unary_chains(Tree.from_string("(A~T (B b) (C c))"), keep="top")
    assert error.value.code == "E_RESERVED_CHAR"


def test_unary_chains_undo_leaves_intermediate_nodes_alone() -> None:
    tree = Tree.from_string("(S (A a) (@S>B+C_D (B+C b) (D d)))")
    assert str(undo_merge_unary_chains(tree)) == "(S (A a) (@S>B+C_D (B (C b)) (D d)))"


def test_unary_chains_disambiguates_tags_that_are_phrases() -> None:
    tree = Tree.from_string("(NP (NP Friday) (NN x))")
    assert str(disambiguate_tags(tree, ["NP"])) == "(NP (NP~T Friday) (NN x))"
    annotated = annotate_parents(tree, vertical_order=2)
    assert str(disambiguate_tags(annotated, {"NP^NP"})) == "(NP (NP~T^NP Friday) (NN^NP x))"
    assert disambiguate_tags(annotated, {"NP"}) == annotated


@given(trees(), st.sets(st.sampled_from(LABELS)))
def test_unary_chains_disambiguation_is_idempotent_and_undone(tree: Tree, tags: set[str]) -> None:
    marked = disambiguate_tags(tree, tags)
    assert disambiguate_tags(marked, tags) == marked
    assert not tags & set(marked.tags)
    assert undo_disambiguate_tags(marked) == tree


def test_unary_chains_class_declares_what_it_can_undo() -> None:
    tree = Tree.from_string(STOP)
    assert MergeUnaryChains().undo(MergeUnaryChains().apply(tree)) == tree
    for keep in ("top", "tag"):
        transform = MergeUnaryChains(keep=keep)
        assert not transform.invertible
        with pytest.raises(UnsupportedTask, match="merge_unary_chains"):
            transform.undo(transform.apply(tree))


def test_unary_chains_rejects_unknown_options() -> None:
    with pytest.raises(UsageError, match="all, top, tag"):
        MergeUnaryChains(keep="bottom")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="all, top, tag"):
        merge_unary_chains(Tree.from_string(STOP), keep="bottom")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="string"):
        DisambiguateTags(tags="NP")
