"""Head finding against the slow oracle."""

from __future__ import annotations

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
# In rows of the table the categories that its lists and the coordination repair look at are common.
ROW_CHILDREN = {
    parent: [
        *{category for step in row.steps for category in step.categories},
        *("CC", "CONJP", "HYPH", ",", ".", "ZZZ", *TEMPORAL_TAGS),
    ]
    for parent, row in oracle.TABLE.items()
}


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


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_heads_oracle_one_phrase_of_every_row(data: st.DataObject) -> None:
    parent = data.draw(st.sampled_from(sorted(oracle.TABLE)))
    child = st.sampled_from(sorted(set(ROW_CHILDREN[parent]))) | st.sampled_from(CATEGORIES)
    categories = data.draw(st.lists(child, min_size=1, max_size=7))
    tree = Tree(parent, [Tree(category, "w") for category in categories])
    assert find_heads(tree).head == oracle.head_index(to_node(tree))


@settings(deadline=None, max_examples=200)
@given(english_trees(annotated=False) | english_trees())
def test_heads_oracle_english_trees(tree: Tree) -> None:
    check(tree)


@settings(deadline=None, max_examples=150)
@given(trees(labels=st.sampled_from(CATEGORIES)) | trees(labels=labels(reserved=True)))
def test_heads_oracle_any_trees(tree: Tree) -> None:
    check(tree)


@settings(deadline=None, max_examples=50)
@given(st.lists(english_trees(max_depth=3), max_size=4))
def test_heads_oracle_many_trees_at_once(batch: list[Tree]) -> None:
    together = [[node.head for node in phrasal(tree)] for tree in find_heads_all(batch)]
    assert together == [[node.head for node in phrasal(find_heads(tree))] for tree in batch]


@settings(deadline=None, max_examples=100)
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
