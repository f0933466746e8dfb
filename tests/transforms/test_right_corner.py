"""The right-corner transform: hhmm.md sections 2.2 to 2.4."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from tests.transforms.hard_trees import LABELS, WORDS, right_branching, trees

from treelm.errors import CorpusFormatError
from treelm.transforms.binarize import Direction, binarize
from treelm.transforms.right_corner import (
    RightCorner,
    branch_depths,
    required_depth,
    right_corner,
    undo_right_corner,
)
from treelm.transforms.unary_chains import merge_unary_chains
from treelm.trees.tree import Tree

BEFORE = Tree.from_string("""
    (S (NP (DT The) (NN president))
       (VP (VP (VB meets) (NP (DT the) (NN board))) (PP (IN on) (NP~T Friday))))
""")
AFTER = Tree.from_string("""
    (S (S/NP~T (S/PP (S/VP (NP (NP/NN (DT The)) (NN president)))
                     (VP (VP/NN (VP/NP (VB meets)) (DT the)) (NN board)))
               (IN on))
       (NP~T Friday))
""")


def binary_trees(count: int, seed: int) -> list[Tree]:
    """Random binary trees of 1 to 20 words with odd labels."""
    generator = random.Random(seed)
    result = []
    for _ in range(count):
        nodes = [
            Tree(generator.choice(LABELS), generator.choice(WORDS))
            for _ in range(generator.randint(1, 20))
        ]
        while len(nodes) > 1:
            at = generator.randrange(len(nodes) - 1)
            nodes[at : at + 2] = [Tree(generator.choice(LABELS), nodes[at : at + 2])]
        result.append(nodes[0])
    return result


def stored_elements(transformed: Tree) -> int:
    """Phrases open at once in a right-corner tree: one more under each right child of an A/Y."""
    deepest = 0
    stack = [(transformed, 1, False)]
    while stack:
        node, depth, incomplete = stack.pop()
        if node.is_preterminal:
            continue
        deepest = max(deepest, depth)
        if len(node) == 1:
            stack.append((node[0], depth, False))
        else:
            stack.append((node[0], depth, True))
            stack.append((node[1], depth + 1 if incomplete else depth, False))
    return deepest


def test_right_corner_worked_example() -> None:
    assert str(right_corner(BEFORE)) == str(AFTER)
    assert undo_right_corner(AFTER) == BEFORE


def test_right_corner_under_root() -> None:
    assert right_corner(Tree("ROOT", [BEFORE])) == Tree("ROOT", [AFTER])
    assert undo_right_corner(Tree("ROOT", [AFTER])) == Tree("ROOT", [BEFORE])


@pytest.mark.parametrize("text", ["(S+VP+VB Stop)", "(ROOT (S+VP+VB Stop))"])
def test_right_corner_of_one_word_changes_nothing(text: str) -> None:
    assert right_corner(Tree.from_string(text)) == Tree.from_string(text)
    assert undo_right_corner(Tree.from_string(text)) == Tree.from_string(text)


def test_right_corner_undo_restores_500_random_binary_trees() -> None:
    for tree in binary_trees(500, seed=1):
        after = right_corner(tree)
        assert undo_right_corner(after) == tree
        assert after.words == tree.words
        assert undo_right_corner(right_corner(Tree("ROOT", [tree]))) == Tree("ROOT", [tree])


@given(trees())
def test_right_corner_undo_restores_normalized_trees(tree: Tree) -> None:
    binary = binarize(merge_unary_chains(tree), horizontal_order=2)
    assert undo_right_corner(right_corner(binary)) == binary


def test_right_corner_right_children_are_words_or_complete() -> None:
    for tree in binary_trees(100, seed=2):
        count = sum(node.is_phrasal for node in tree.preorder())
        after = right_corner(tree)
        assert after.tags == tree.tags
        assert sum(len(node) == 2 for node in after.preorder()) == count


@pytest.mark.parametrize(
    "text",
    ["(A/A (A a) (A/A (A/A b) (A c)))", "(A (B/A b) (A/B/A (A/B c) (B d)))", "(/ (/ a) (/ b))"],
)
def test_right_corner_categories_may_hold_slashes(text: str) -> None:
    assert undo_right_corner(right_corner(Tree.from_string(text))) == Tree.from_string(text)


def test_right_corner_depths_of_the_worked_example() -> None:
    assert [(str(p.node.label), p.side, p.depth) for p in branch_depths(BEFORE)] == [
        *(("S", "L", 1), ("NP", "L", 1), ("DT", "L", 1), ("NN", "R", 1)),
        *(("VP", "R", 1), ("VP", "L", 2), ("VB", "L", 2)),
        *(("NP", "R", 2), ("DT", "L", 3), ("NN", "R", 2)),
        *(("PP", "R", 1), ("IN", "L", 2), ("NP~T", "R", 1)),
    ]
    assert required_depth(BEFORE) == 2


def test_right_corner_depths_under_root() -> None:
    places = branch_depths(Tree("ROOT", [BEFORE]))
    assert (places[0].node.label, places[0].side, places[0].depth) == ("ROOT", "R", 0)
    assert places[1:] == branch_depths(BEFORE)
    assert required_depth(Tree("ROOT", [BEFORE])) == 2


@pytest.mark.parametrize(
    ("direction", "place", "depth"),
    [("right", ("L", 2), 1), ("left", ("R", 2), 2)],
)
def test_right_corner_depth_depends_on_binarization(
    direction: Direction, place: tuple[str, int], depth: int
) -> None:
    tree = Tree.from_string("(S (N a) (VP (V b) (NP~T c) (PP~T d)))")
    binary = binarize(tree, direction=direction)
    found = [p for p in branch_depths(binary) if p.node.label == "NP~T"]
    assert [(p.side, p.depth) for p in found] == [place]
    assert required_depth(binary) == depth


def test_right_corner_required_depth_of_one_word_is_zero() -> None:
    assert required_depth(Tree.from_string("(S+VP+VB Stop)")) == 0


def test_right_corner_required_depth_equals_the_open_elements_of_the_transform() -> None:
    for tree in binary_trees(300, seed=3):
        assert required_depth(tree) == stored_elements(right_corner(tree))


def test_right_corner_deep() -> None:
    right = right_branching(3000)
    assert undo_right_corner(right_corner(right)) == right
    assert required_depth(right) == 1
    left = Tree("X", "w")
    for _ in range(3000):
        left = Tree("S", [left, Tree("Y", "w")])
    assert undo_right_corner(right_corner(left)) == left
    assert required_depth(left) == 1
    zigzag = Tree("X", "w")
    for level in range(3000):
        pair = [zigzag, Tree("Y", "w")]
        zigzag = Tree("S", pair if level % 2 else pair[::-1])
    assert undo_right_corner(right_corner(zigzag)) == zigzag
    assert required_depth(zigzag) == 1500


@pytest.mark.parametrize("text", ["(S (A a) (B b) (C c))", "(S (A a) (B (C c)))", "(S (B (C c)))"])
def test_right_corner_refuses_nodes_that_are_not_binary(text: str) -> None:
    bad = "S" if text.startswith("(S (A a) (B b)") else "B"
    for function in (right_corner, required_depth, branch_depths):
        with pytest.raises(CorpusFormatError, match=f'node "{bad}"') as error:
            function(Tree.from_string(text))
        assert error.value.code == "E_NOT_BINARY"


@pytest.mark.parametrize(
    "text",
    [
        "(S (A a) (B b))",
        "(S (S/B (A a)) (C c))",
        "(S (X/B (A a)) (B b))",
        "(S (S/B (A a)) (B (B/C (A a)) (C c)))",
        "(S (S/B (A (A a))) (B b))",
        "(S (A a) (B b) (C c))",
        "(ROOT (S (A a)))",
    ],
)
def test_right_corner_undo_refuses_other_trees(text: str) -> None:
    with pytest.raises(CorpusFormatError) as error:
        undo_right_corner(Tree.from_string(text))
    assert error.value.code == "E_NOT_RIGHT_CORNER"


def test_right_corner_class_wraps_the_functions() -> None:
    assert RightCorner().apply(BEFORE) == AFTER
    assert RightCorner().undo(AFTER) == BEFORE
    assert RightCorner().to_config() == {"name": "right_corner"}
