"""Trees that the tests of the transforms share: hard labels, hard words, deep shapes."""

from __future__ import annotations

from hypothesis import strategies as st

from treelm.trees.label import Label
from treelm.trees.tree import Tree

LABELS: list[str] = [
    *("NP", "S", "VP", "-LRB-", "PRP$", "S.NF.P", "名詞", "É", "A/B", "A/A", "X[Y]", "A_B"),
    *("A>B<C", r"SYM-\+", Label("SYM", "+"), Label("S", "VBD", gap=True), Label("X", "^@\\")),
]
WORDS = ["the", "a/b", "[x]", "\\", "C++", "@me", "^", "~T", "犬", "-LRB-", r"a\]b"]


def trees() -> st.SearchStrategy[Tree]:
    """Random trees of up to six children a node, all heads set, with or without ROOT."""
    labels = st.sampled_from(LABELS) | st.text("ABÉ名-=$.,:/[]_<>", min_size=1, max_size=4)

    def phrase(label: str, children: list[Tree], head: int) -> Tree:
        return Tree(label, children, head=head % len(children))

    body = st.recursive(
        st.builds(Tree, labels, st.sampled_from(WORDS)),
        lambda below: st.builds(
            phrase, labels, st.lists(below, min_size=1, max_size=6), st.integers(0, 5)
        ),
        max_leaves=25,
    )
    return body | body.map(lambda tree: Tree("ROOT", [tree], head=0))


def heads(tree: Tree) -> list[int | None]:
    """The head indices of phrases in preorder."""
    return [node.head for node in tree.preorder() if node.is_phrasal]


def right_branching(depth: int) -> Tree:
    """A tree in which every right child branches again."""
    tree = Tree("X", "w")
    for _ in range(depth):
        tree = Tree("S", [Tree("Y", "w"), tree], head=1)
    return tree


def unary_chain(depth: int) -> Tree:
    """One word under so many phrases."""
    tree = Tree("X", "w")
    for _ in range(depth):
        tree = Tree("S", [tree], head=0)
    return tree
