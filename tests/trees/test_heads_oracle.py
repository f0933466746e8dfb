"""Head finding against the slow oracle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import heads as oracle
from tests.reference.conversion import to_node
from tests.reference.nodes import Node, postorder

from treelm.testing.strategies import PHRASES, TAGS, english_trees, labels, trees
from treelm.trees.heads import find_heads, find_heads_all, lexical_head
from treelm.trees.tree import Tree

TEMPORAL_TAGS = ("NNT", "NNTS", "NNTP", "NNTPS")
CATEGORIES = [*PHRASES, *TAGS, *TEMPORAL_TAGS, "ROOT", "ZZZ", "NP-SBJ"]
EVERYTHING = sorted(
    {*CATEGORIES}.union(*(step.categories for row in oracle.TABLE.values() for step in row.steps))
)
# Besides what a row lists: what the defaults and the coordination repair look at.
OTHERS = sorted({*oracle.PUNCTUATION, *TEMPORAL_TAGS, "CC", "CONJP", "HYPH", "NN", "ZZZ"})


def phrasal(tree: Tree) -> list[Tree]:
    """The phrases in preorder."""
    return [node for node in tree.preorder() if node.is_phrasal]


def check(tree: Tree) -> None:
    """Compare the head of every phrase, and the lexical heads."""
    found = find_heads(tree)
    assert found == tree
    for node in phrasal(found):
        expected: Node = to_node(node)
        assert node.head == oracle.head_index(expected)
        assert lexical_head(node).word == oracle.lexical_head(expected).word
    for node in found.preorder():
        assert node.is_phrasal or node.head is None


def listed(parent: str) -> list[str]:
    """The categories in the row of a parent."""
    steps = oracle.TABLE.get(parent, oracle.UNLISTED_ROW).steps
    return sorted({category for step in steps for category in step.categories})


def check_flat(parent: str, sequences: Iterable[Sequence[str]]) -> None:
    """Compare the heads of phrases over preterminals."""
    trees = [Tree(parent, [Tree(category, "w") for category in row]) for row in sequences]
    found = [tree.head for tree in find_heads_all(trees)]
    assert found == [oracle.head_index(to_node(tree)) for tree in trees]


@pytest.mark.parametrize("parent", [*sorted(oracle.TABLE), "ZZZ"])
def test_heads_oracle_every_pair_of_children(parent: str) -> None:
    of_row = listed(parent)
    check_flat(parent, product(of_row, of_row + OTHERS))
    check_flat(parent, product(OTHERS, of_row))
    check_flat(parent, product(EVERYTHING, ["ZZZ"]))
    check_flat(parent, product(["ZZZ"], EVERYTHING))
    if parent in ("NP", "FRAG", "PRN", "ZZZ"):
        check_flat(parent, product(OTHERS, OTHERS))


@pytest.mark.parametrize("parent", [*sorted(oracle.TABLE), "ZZZ"])
def test_heads_oracle_every_coordination(parent: str) -> None:
    categories = [*listed(parent), "ZZZ"]
    check_flat(parent, ((a, "CC", b) for a, b in product(categories, categories)))
    between = ["HYPH", ",", "CONJP", "ZZZ"]
    ends = [*listed(parent)[:3], "ZZZ"]
    check_flat(parent, product(ends, between, ["CC", "CONJP"], ends))


@settings(max_examples=80)
@given(st.sampled_from(sorted(oracle.TABLE)), st.lists(st.sampled_from(CATEGORIES), min_size=1))
def test_heads_oracle_one_phrase(parent: str, categories: list[str]) -> None:
    check_flat(parent, [categories])


@settings(max_examples=80)
@given(english_trees(annotated=False) | english_trees())
def test_heads_oracle_english_trees(tree: Tree) -> None:
    check(tree)


@settings(max_examples=80)
@given(trees(labels=st.sampled_from(CATEGORIES)) | trees(labels=labels(reserved=True)))
def test_heads_oracle_any_trees(tree: Tree) -> None:
    check(tree)


@settings(max_examples=25)
@given(st.lists(english_trees(max_depth=3), max_size=4))
def test_heads_oracle_many_trees_at_once(batch: list[Tree]) -> None:
    together = [[node.head for node in phrasal(tree)] for tree in find_heads_all(batch)]
    assert together == [[node.head for node in phrasal(find_heads(tree))] for tree in batch]


@settings(max_examples=50)
@given(english_trees(annotated=False))
def test_heads_oracle_neutral_profile_takes_the_leftmost_word(tree: Tree) -> None:
    for node in phrasal(find_heads(tree, "neutral")):
        is_mark = [
            child.word is not None and not any(char.isalnum() for char in child.word)
            for child in node.children
        ]
        assert node.head == (0 if all(is_mark) else is_mark.index(False))


def test_heads_oracle_does_not_share_nodes() -> None:
    tree = Tree("NP", [Tree("NN", "a"), Tree("NN", "b")])
    assert len(postorder(to_node(Tree("NP", [tree, tree])))) == 7
    check(Tree("NP", [tree, tree]))
