"""Markovization: the examples of trees-and-transforms.md section 7, and the inverse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transforms.hard_trees import heads, right_branching, trees, unary_chain

from treelm.errors import CorpusFormatError, UsageError
from treelm.transforms.binarize import undo_binarize
from treelm.transforms.markovize import (
    AnnotateParents,
    BinarizeHeadOutward,
    Markovize,
    annotate_parents,
    binarize_head_outward,
    markovize,
    undo_annotate_parents,
    undo_markovize,
)
from treelm.trees.heads import lexical_head
from treelm.trees.label import Label
from treelm.trees.tree import Tree

VERB_PHRASE = Tree.from_string("(VP (ADVP a) (VBZ b) (NP c) (PP d) (PP e))").replace(head=1)
NOUN_PHRASE = Tree.from_string("(NP (DT a) (JJ b) (NN c) (PP d))").replace(head=2)
ORDERS = st.none() | st.integers(0, 4)


def intermediates(tree: Tree) -> list[str]:
    """Intermediate labels inside out."""
    return [str(node.label) for node in tree.preorder() if node.label.startswith("@")][::-1]


def test_markovize_head_outward_verb_phrase() -> None:
    assert str(binarize_head_outward(VERB_PHRASE, horizontal_order=1)) == (
        "(VP (ADVP a) (@VP[VBZ]>PP (@VP[VBZ]>PP (@VP[VBZ]>NP (VBZ b) (NP c)) (PP d)) (PP e)))"
    )


def test_markovize_head_outward_order_two_names() -> None:
    after = binarize_head_outward(VERB_PHRASE, horizontal_order=2)
    assert intermediates(after) == ["@VP[VBZ]>NP", "@VP[VBZ]>NP_PP", "@VP[VBZ]>PP_PP"]


def test_markovize_head_outward_noun_phrase() -> None:
    assert str(binarize_head_outward(NOUN_PHRASE, horizontal_order=1)) == (
        "(NP (DT a) (@NP[NN]<JJ (JJ b) (@NP[NN]>PP (NN c) (PP d))))"
    )


@pytest.mark.parametrize(
    ("order", "labels"),
    [
        (0, ["@X[H]>", "@X[H]>", "@X[H]<", "@X[H]<"]),
        (1, ["@X[H]>R1", "@X[H]>R2", "@X[H]<L1", "@X[H]<L2"]),
        (2, ["@X[H]>R1", "@X[H]>R1_R2", "@X[H]<L1", "@X[H]<L1_L2"]),
        (None, ["@X[H]>R1", "@X[H]>R1_R2", "@X[H]<L1", "@X[H]<L1_L2"]),
    ],
)
def test_markovize_head_outward_names_sisters_oldest_first(
    order: int | None, labels: list[str]
) -> None:
    tree = Tree.from_string("(X (L3 a) (L2 b) (L1 c) (H d) (R1 e) (R2 f))").replace(head=3)
    assert intermediates(binarize_head_outward(tree, horizontal_order=order)) == labels


@pytest.mark.parametrize("head", [0, 2])
def test_markovize_head_outward_head_at_an_end(head: int) -> None:
    after = binarize_head_outward(Tree.from_string("(X (A a) (B b) (C c))").replace(head=head))
    expected = {0: "(X (@X[A]>B (A a) (B b)) (C c))", 2: "(X (A a) (@X[C]<B (B b) (C c)))"}
    assert str(after) == expected[head]


def test_markovize_intermediates_carry_the_annotation_of_the_parent_only() -> None:
    tree = Tree.from_string("(S (VP (VBZ b) (NP c) (PP d)))")
    tree = tree.replace(content=[tree[0].replace(head=0)])
    annotated = annotate_parents(tree, vertical_order=2)
    assert intermediates(binarize_head_outward(annotated)) == ["@VP^S[VBZ]>NP"]


def test_markovize_vertical_orders() -> None:
    tree = Tree.from_string("(ROOT (S (NP (PRP He)) (VP (VB ran))))")
    assert annotate_parents(tree, vertical_order=1) == tree
    assert str(annotate_parents(tree, vertical_order=2)) == (
        "(ROOT (S^ROOT (NP^S (PRP^NP He)) (VP^S (VB^VP ran))))"
    )
    assert str(annotate_parents(tree, vertical_order=3)) == (
        "(ROOT (S^ROOT (NP^S^ROOT (PRP^NP^S He)) (VP^S^ROOT (VB^VP^S ran))))"
    )


def test_markovize_annotation_is_a_part_of_the_label() -> None:
    tree = Tree("ROOT", [Tree(Label("S", "VBD"), [Tree("VBD", "ran")])])
    annotated = annotate_parents(tree, vertical_order=2)
    assert annotated[0].label == "S-VBD^ROOT"
    assert (annotated[0].label.base, annotated[0].label.parent) == ("S", "ROOT")
    assert annotated[0][0].label == "VBD^S-VBD"
    assert undo_annotate_parents(annotated)[0].label.head == "VBD"


def test_markovize_merged_chain_example() -> None:
    assert (
        str(markovize(Tree.from_string("(ROOT (S (VP (VB Stop))))")))
        == "(ROOT (S+VP+VB^ROOT Stop))"
    )


def test_markovize_all_steps_with_heads() -> None:
    tree = Tree.from_string("(ROOT (S (VP (VBZ b) (NP (NN c)) (S (VP (VB d))) (PP e))))")
    phrase = tree[0][0].replace(head=0)
    tree = Tree("ROOT", [Tree("S", [phrase])])
    assert str(markovize(tree, horizontal_order=2)) == (
        "(ROOT (S+VP^ROOT (@S+VP^ROOT[VBZ]>NP+NN_S+VP+VB (@S+VP^ROOT[VBZ]>NP+NN (VBZ^VP b) "
        "(NP+NN^VP c)) (S+VP+VB^VP d)) (PP^VP e)))"
    )


@given(trees(), ORDERS, st.integers(1, 4))
def test_markovize_undo_restores_tree_and_heads(
    tree: Tree, horizontal: int | None, vertical: int
) -> None:
    after = markovize(tree, horizontal_order=horizontal, vertical_order=vertical)
    assert undo_markovize(after) == tree
    assert heads(undo_markovize(after)) == heads(tree)
    assert undo_markovize(Tree.from_string(str(after))) == tree


@given(trees(), ORDERS, st.integers(1, 3))
def test_markovize_leaves_lexical_binary_and_start_productions(
    tree: Tree, horizontal: int | None, vertical: int
) -> None:
    after = markovize(tree, horizontal_order=horizontal, vertical_order=vertical)
    assert after.words == tree.words
    assert lexical_head(after).word == lexical_head(tree).word
    for node in after.preorder():
        assert node.is_preterminal or len(node) == 2 or node.label == "ROOT"


@given(trees(), st.integers(1, 4))
def test_markovize_annotation_undo_restores_tree_and_heads(tree: Tree, order: int) -> None:
    after = annotate_parents(tree, vertical_order=order)
    assert undo_annotate_parents(after) == tree
    assert heads(after) == heads(tree)
    assert undo_annotate_parents(after) == undo_annotate_parents(Tree.from_string(str(after)))


@given(trees(), ORDERS)
def test_markovize_head_outward_undo_restores_tree_and_heads(tree: Tree, order: int | None) -> None:
    after = binarize_head_outward(tree, horizontal_order=order)
    assert all(len(node) <= 2 for node in after.preorder())
    assert lexical_head(after) is lexical_head(tree)
    assert undo_binarize(after) == tree
    assert heads(undo_binarize(after)) == heads(tree)


def test_markovize_shared_subtrees_get_their_own_annotation() -> None:
    shared = Tree("X", "w")
    tree = Tree("S", [Tree("A", [shared]), Tree("B", [shared])])
    assert str(annotate_parents(tree, vertical_order=2)) == "(S (A^S (X^A w)) (B^S (X^B w)))"


@pytest.mark.parametrize("tree", [right_branching(3000), unary_chain(3000)])
def test_markovize_deep(tree: Tree) -> None:
    after = markovize(tree, vertical_order=3)
    assert undo_markovize(after) == tree


@pytest.mark.parametrize("label", ["A^B", "A\\", Label("A", parent="B")])
@pytest.mark.parametrize("order", [1, 2])
def test_markovize_refuses_a_second_annotation(label: str, order: int) -> None:
    with pytest.raises(CorpusFormatError) as error:
        annotate_parents(Tree("S", [Tree(label, "w")]), vertical_order=order)
    assert error.value.code == "E_RESERVED_CHAR"


@pytest.mark.parametrize("label", ["@A", "A+B", "A^B", "A\\B"])
def test_markovize_refuses_marks_in_a_category(label: str) -> None:
    with pytest.raises(CorpusFormatError) as error:
        markovize(Tree("S", [Tree(label, "w")]))
    assert error.value.code == "E_RESERVED_CHAR"


def test_markovize_needs_heads_of_wide_nodes() -> None:
    with pytest.raises(UsageError) as error:
        markovize(Tree.from_string("(S (A a) (B b) (C c))"))
    assert error.value.code == "E_NO_HEAD"


def test_markovize_rejects_wrong_orders() -> None:
    with pytest.raises(UsageError, match="vertical_order is 0"):
        AnnotateParents(vertical_order=0)
    with pytest.raises(UsageError, match="vertical_order is None"):
        Markovize(vertical_order=None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="horizontal_order is -1"):
        BinarizeHeadOutward(horizontal_order=-1)


@pytest.mark.parametrize(
    "transform",
    [AnnotateParents(vertical_order=3), BinarizeHeadOutward(), Markovize(horizontal_order=None)],
)
def test_markovize_classes_wrap_the_functions(
    transform: AnnotateParents | BinarizeHeadOutward | Markovize,
) -> None:
    assert transform.invertible
    assert transform.apply(VERB_PHRASE) != VERB_PHRASE
    assert transform.undo(transform.apply(VERB_PHRASE)) == VERB_PHRASE
