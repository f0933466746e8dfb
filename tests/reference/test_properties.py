"""What holds of the oracle for any tree and any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import treelet
from tests.reference.bracket_reader import read
from tests.reference.heads import names
from tests.reference.nodes import Node, clone, postorder, words, write
from tests.reference.read_texts import TMP, raw, read_one

# -------------------------------------------------------------------------------- properties

PHRASE_NAMES = sorted(names("NP VP S SBAR NML PP CONJP PRN ADVP WHNP FRAG ROOT SQ QP"))
TAG_NAMES = sorted(
    names("NN NNS NNP DT CD CC , . : -LRB- RB VBZ MD POS HYPH SYM IN -NONE- CODE NNT")
)
WORDS = sorted(names("today Monday 1989 3.5 12 is the , . -LRB- 's \u2019s + | - a\\/b B-52 dog"))


def preterminals() -> st.SearchStrategy[Node]:
    """Random tags with random words."""
    return st.builds(
        lambda t, w: Node(t, word=w), st.sampled_from(TAG_NAMES), st.sampled_from(WORDS)
    )


def phrases(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Random phrases over these children."""
    kids = st.lists(children, min_size=1, max_size=5)
    return st.builds(lambda b, c: Node(b, list(c)), st.sampled_from(PHRASE_NAMES), kids)


def trees() -> st.SearchStrategy[Node]:
    """Random trees below a ROOT, without shared nodes."""
    below = st.recursive(preterminals(), phrases, max_leaves=25)
    roots = st.lists(below, min_size=1, max_size=3)
    # Going through text makes sure that no node occurs twice.
    return roots.map(lambda kids: raw(write(Node("ROOT", kids))))


@settings(max_examples=60)
@given(trees())
def test_transform_properties(tree: Node) -> None:
    result = treelet.apply(tree, TMP)
    assert words(result) == words(tree)
    for node in postorder(result):
        assert node is result or node.is_preterminal or len(node.children) > 1
    assert write(raw(write(result))) == write(result)


@settings(max_examples=60)
@given(trees())
def test_idempotence(tree: Node) -> None:
    treelet.t2(tree)
    for transform in (treelet.t3, treelet.t6, treelet.t9):
        once = transform(clone(tree))
        assert write(transform(clone(once))) == write(once)


@settings(max_examples=60)
@given(trees())
def test_reading_is_idempotent(tree: Node) -> None:
    result = read(write(tree))
    assert len(result.trees) + result.dropped == 1
    for once in result.trees:
        assert read_one(write(once)) == write(once)


@settings(max_examples=60)
@given(st.text(alphabet="()ab-\\/* \n\u00e9", max_size=40))
def test_reader_never_fails_and_good_trees_round_trip(text: str) -> None:
    for tree in read(text, strip=False, unescape=False).trees:
        assert write(raw(write(tree))) == write(tree)
