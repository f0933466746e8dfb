"""Binarization: names and shapes of the specifications, and the laws of the inverse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transforms.hard_trees import heads, right_branching, trees

from treelm.errors import CorpusFormatError, UsageError
from treelm.transforms.binarize import Binarize, Direction, binarize, undo_binarize
from treelm.transforms.markovize import annotate_parents
from treelm.trees.heads import lexical_head
from treelm.trees.label import Label
from treelm.trees.tree import Tree

FIVE = "(A (Y1 a) (Y2 b) (Y3 c) (Y4 d) (Y5 e))"
DIRECTIONS = st.sampled_from(["right", "left", "head"])
ORDERS = st.none() | st.integers(0, 4)


@pytest.mark.parametrize(
    ("direction", "after"),
    [
        # trees-and-transforms.md section 8 calls these "right" and "left", by the peeled end
        ("left", "(X (@X (@X (A c1) (B c2)) (C c3)) (D c4))"),
        ("right", "(X (A c1) (@X (B c2) (@X (C c3) (D c4))))"),
    ],
)
def test_binarize_bare_intermediates(direction: Direction, after: str) -> None:
    tree = Tree.from_string("(X (A c1) (B c2) (C c3) (D c4))")
    assert str(binarize(tree, direction=direction, horizontal_order=0)) == after


@pytest.mark.parametrize(
    ("direction", "order", "after"),
    [
        ("right", 2, "(A (Y1 a) (@A>Y2_Y3 (Y2 b) (@A>Y3_Y4 (Y3 c) (@A>Y4_Y5 (Y4 d) (Y5 e)))))"),
        ("right", 1, "(A (Y1 a) (@A>Y2 (Y2 b) (@A>Y3 (Y3 c) (@A>Y4 (Y4 d) (Y5 e)))))"),
        (
            "right",
            None,
            "(A (Y1 a) (@A>Y2_Y3_Y4_Y5 (Y2 b) (@A>Y3_Y4_Y5 (Y3 c) (@A>Y4_Y5 (Y4 d) (Y5 e)))))",
        ),
        ("left", 2, "(A (@A<Y3_Y4 (@A<Y2_Y3 (@A<Y1_Y2 (Y1 a) (Y2 b)) (Y3 c)) (Y4 d)) (Y5 e))"),
        ("left", 1, "(A (@A<Y4 (@A<Y3 (@A<Y2 (Y1 a) (Y2 b)) (Y3 c)) (Y4 d)) (Y5 e))"),
        ("head", 2, "(A (Y1 a) (@A>Y2_Y3 (@A<Y3_Y4 (@A<Y2_Y3 (Y2 b) (Y3 c)) (Y4 d)) (Y5 e)))"),
        ("head", 0, "(A (Y1 a) (@A (@A (@A (Y2 b) (Y3 c)) (Y4 d)) (Y5 e)))"),
    ],
)
def test_binarize_names_covered_sisters(
    direction: Direction, order: int | None, after: str
) -> None:
    tree = Tree.from_string(FIVE).replace(head=1)
    assert str(binarize(tree, direction=direction, horizontal_order=order)) == after


def test_binarize_left_of_four_children_as_in_the_hhmm() -> None:
    tree = Tree.from_string("(A (Y1 a) (Y2 b) (Y3 c) (Y4 d))")
    after = binarize(tree, direction="left", horizontal_order=2)
    assert str(after) == "(A (@A<Y2_Y3 (@A<Y1_Y2 (Y1 a) (Y2 b)) (Y3 c)) (Y4 d))"


@pytest.mark.parametrize(("head", "same_as"), [(0, "left"), (4, "right")])
def test_binarize_head_at_an_end_is_left_or_right(head: int, same_as: Direction) -> None:
    tree = Tree.from_string(FIVE).replace(head=head)
    assert binarize(tree, direction="head", horizontal_order=2) == binarize(
        tree, direction=same_as, horizontal_order=2
    )


@pytest.mark.parametrize("structured", [True, False])
def test_binarize_intermediates_inherit_the_annotation(structured: bool) -> None:
    tree = annotate_parents(Tree.from_string("(P (A (B b) (C c) (D d)))"), vertical_order=2)
    if not structured:
        tree = Tree.from_string(str(tree))
    after = binarize(tree, horizontal_order=2)
    assert str(after) == "(P (A^P (B^A b) (@A^P>C_D (C^A c) (D^A d))))"


def test_binarize_names_merged_sisters_in_full() -> None:
    after = binarize(Tree.from_string("(A (B b) (S+VP^A c) (D d))"))
    assert str(after) == "(A (B b) (@A>S+VP_D (S+VP^A c) (D d)))"


def test_binarize_keeps_unary_nodes() -> None:
    tree = Tree.from_string("(ROOT (S (VP (VB Stop))))")
    assert binarize(tree) == tree


def test_binarize_keeps_label_parts_of_real_nodes() -> None:
    label = Label("S", "VBD", gap=True, parent="ROOT")
    tree = Tree(label, [Tree("A", "a"), Tree("B", "b"), Tree("C", "c")])
    assert binarize(tree).label.head == "VBD"
    assert undo_binarize(binarize(tree)).label.gap


@given(trees(), DIRECTIONS, ORDERS)
def test_binarize_undo_restores_tree_and_heads(
    tree: Tree, direction: Direction, order: int | None
) -> None:
    after = binarize(tree, direction=direction, horizontal_order=order)
    assert undo_binarize(after) == tree
    assert heads(undo_binarize(after)) == heads(tree)


@given(trees(), DIRECTIONS, ORDERS)
def test_binarize_is_binary_and_keeps_words_and_lexical_head(
    tree: Tree, direction: Direction, order: int | None
) -> None:
    after = binarize(tree, direction=direction, horizontal_order=order)
    assert all(len(node) <= 2 for node in after.preorder())
    assert after.words == tree.words
    assert after.tags == tree.tags
    assert lexical_head(after) is lexical_head(tree)


@given(st.integers(3, 7), st.integers(0, 6), DIRECTIONS, ORDERS)
def test_binarize_agrees_with_a_recursive_definition(
    size: int, head: int, direction: Direction, order: int | None
) -> None:
    names = [f"Y{index}" for index in range(size)]
    tree = Tree("A", [Tree(name, "w") for name in names], head=head % size)

    def reference(label: str, covered: list[str]) -> str:
        if len(covered) == 1:
            return f"({covered[0]} w)"
        if len(covered) == 2:
            return f"({label} ({covered[0]} w) ({covered[1]} w))"
        head_is_inside = names[head % size] in covered[1:]
        peel_left = direction == "right" or (direction == "head" and head_is_inside)
        rest = covered[1:] if peel_left else covered[:-1]
        kept = len(rest) if order is None else order
        named = rest[:kept] if peel_left else rest[max(len(rest) - kept, 0) :]
        below = "@A" + (("><"[not peel_left] + "_".join(named)) if order != 0 else "")
        if peel_left:
            return f"({label} ({covered[0]} w) {reference(below, rest)})"
        return f"({label} {reference(below, rest)} ({covered[-1]} w))"

    after = binarize(tree, direction=direction, horizontal_order=order)
    assert str(after) == reference("A", names)


@given(trees(), st.sampled_from(["right", "left"]), ORDERS)
def test_binarize_right_and_left_need_no_heads(
    tree: Tree, direction: Direction, order: int | None
) -> None:
    bare = tree.transform(lambda node, below: Tree(node.label, node.word or below))
    after = binarize(bare, direction=direction, horizontal_order=order)
    assert after == binarize(tree, direction=direction, horizontal_order=order)
    assert undo_binarize(after) == tree


@given(trees())
def test_binarize_undo_of_an_unbinarized_tree_changes_nothing(tree: Tree) -> None:
    assert undo_binarize(tree) == tree


@pytest.mark.parametrize("direction", ["right", "left", "head"])
def test_binarize_deep_and_wide(direction: Direction) -> None:
    deep = right_branching(3000)
    assert binarize(deep, direction=direction) == deep
    wide = Tree("S", [Tree("X", str(index)) for index in range(3000)], head=1500)
    after = binarize(wide, direction=direction, horizontal_order=2)
    assert after.height > 1500
    assert undo_binarize(after) == wide


def test_binarize_refuses_intermediate_mark_in_a_category() -> None:
    with pytest.raises(CorpusFormatError) as error:
        binarize(binarize(Tree.from_string(FIVE)))
    assert error.value.code == "E_RESERVED_CHAR"
    binarize(Tree("X", [Tree(r"\@", "w")]))


def test_binarize_undo_refuses_an_intermediate_root() -> None:
    with pytest.raises(CorpusFormatError) as error:
        undo_binarize(Tree.from_string("(@A (B b) (C c))"))
    assert error.value.code == "E_RESERVED_CHAR"


def test_binarize_head_needs_heads_only_where_children_are_many() -> None:
    assert binarize(Tree.from_string("(A (B b) (C c))"), direction="head") == Tree.from_string(
        "(A (B b) (C c))"
    )
    with pytest.raises(UsageError, match=r"find_heads\(tree, profile\)") as error:
        binarize(Tree.from_string(FIVE), direction="head")
    assert error.value.code == "E_NO_HEAD"


def test_binarize_rejects_unknown_options() -> None:
    with pytest.raises(UsageError, match="right, left, head"):
        Binarize(direction="up")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="horizontal_order is -1"):
        Binarize(horizontal_order=-1)
    with pytest.raises(UsageError, match=r"horizontal_order is 1\.5"):
        binarize(Tree.from_string(FIVE), horizontal_order=1.5)  # type: ignore[arg-type]


def test_binarize_class_wraps_the_functions() -> None:
    transform = Binarize(direction="left", horizontal_order=2)
    tree = Tree.from_string(FIVE)
    assert transform.apply(tree) == binarize(tree, direction="left", horizontal_order=2)
    assert transform.undo(transform.apply(tree)) == tree
    assert transform.to_config() == {"name": "binarize", "direction": "left", "horizontal_order": 2}
