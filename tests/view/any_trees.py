"""Trees with any text in them, for pictures."""

from __future__ import annotations

from hypothesis import strategies as st

from treelm.trees.tree import Tree

_LABELS = st.text(st.characters(), max_size=8)
ANY_TREES = st.recursive(
    st.builds(Tree, _LABELS, st.text(st.characters(), min_size=1)),
    lambda trees: st.builds(Tree, _LABELS, st.lists(trees, min_size=1, max_size=5)),
)


def chain(length: int) -> Tree:
    """Return a tree of so many nodes, one above the other."""
    tree = Tree("NN", "dog")
    for _ in range(length - 1):
        tree = Tree("X", [tree])
    return tree
