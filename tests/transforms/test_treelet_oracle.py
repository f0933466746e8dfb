"""The treelet transforms against the slow oracle, and the laws of the specification."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.reference import heads
from tests.reference import treelet as oracle
from tests.reference.conversion import parts_of_node, parts_of_tree, to_node

from treelm.corpus.brackets import ReadOptions, read_packed, read_trees
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.testing.strategies import PHRASES, TAGS, english_trees, labels, trees
from treelm.transforms.clean import clean
from treelm.transforms.treelet import TREELET_TRANSFORMS, Treelet, VerbLabel, treelet
from treelm.trees.label import Label
from treelm.trees.tree import Tree

# Most tests here are not about T1 and give it no temporal nouns.
pytestmark = pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")

T3, T6, T9 = TREELET_TRANSFORMS[2], TREELET_TRANSFORMS[5], TREELET_TRANSFORMS[8]
PUNCTUATION = sorted(heads.PUNCTUATION)
TEMPORAL = ("today", "monday", "week", "months", "dog", "année", "ölpreis", "é", "1990s", "'s")

subsets = st.sets(st.integers(1, 9)) | st.just(set(range(1, 10)))
lexicons = st.frozensets(st.sampled_from(TEMPORAL))
verb_labels = st.sampled_from(["lowest", "highest"])
rooted = trees(labels=labels()).map(lambda tree: Tree("ROOT", [tree]))
some_trees = english_trees(annotated=False) | rooted


def names(numbers: Collection[int]) -> frozenset[str]:
    """The names of transforms given by number."""
    return frozenset(TREELET_TRANSFORMS[number - 1] for number in numbers)


def check(
    tree: Tree, numbers: Collection[int], temporal: frozenset[str], vp_label: VerbLabel
) -> None:
    """Compare the kernel with the oracle, label parts and all."""
    found = treelet(tree, temporal=temporal, transforms=names(numbers), vp_label=vp_label)
    expected = oracle.apply(to_node(tree), temporal, numbers, vp_label)
    assert parts_of_tree(found) == parts_of_node(expected)


@settings(max_examples=80)
@given(english_trees(annotated=False), subsets, lexicons, verb_labels)
def test_treelet_oracle_english_trees(
    tree: Tree, numbers: set[int], temporal: frozenset[str], vp_label: VerbLabel
) -> None:
    check(tree, numbers, temporal, vp_label)


@settings(max_examples=100)
@given(rooted, subsets, lexicons, verb_labels)
@example(Tree("ROOT", [Tree("SYM", "\\^@|+")]), {2}, frozenset(), "lowest")
def test_treelet_oracle_any_trees(
    tree: Tree, numbers: set[int], temporal: frozenset[str], vp_label: VerbLabel
) -> None:
    check(tree, numbers, temporal, vp_label)


@settings(max_examples=2)
@given(english_trees(annotated=False))
def test_treelet_oracle_all_subsets(tree: Tree) -> None:
    temporal = frozenset(TEMPORAL)
    for size in range(10):
        for numbers in combinations(range(1, 10), size):
            for vp_label in ("lowest", "highest") if 6 in numbers else ("lowest",):
                check(tree, numbers, temporal, vp_label)


# -- small cases, all of them ----------------------------------------------------------------

# Number of the transform, parents, and the children that it looks at.
CASES: list[tuple[int, str, list[str]]] = [
    (3, "NP", ["NP", *PUNCTUATION, "CC", "CONJP", "RB", "ADVP", "PRN", "NN", "PP"]),
    (3, "NX", ["NP", ",", "CC"]),
    (5, "SBAR", ["S", "SBAR", "SINV", "IN", "CC"]),
    (5, "SBARQ", ["S", "SBAR", "IN"]),
    (6, "VP", ["VP", "VBD", "CC", "CONJP", "NP", *PUNCTUATION]),
    (7, "S", ["NP", "VP", "WHNP", "VBD", "SBAR"]),
    (7, "SBAR", ["NP", "VP", "WHNP", "VBD", "S"]),
    (7, "SQ", ["NP", "VP"]),
    (8, "VP", ["VP", "NP", "VBD"]),
]


def small_phrase(label: str) -> Tree:
    """A node of this label: a phrase over two words where phrases have it, else a tag."""
    if label not in PHRASES:
        return Tree(label, label)
    return Tree(Label(label, f"of{label}"), [Tree("DT", "the"), Tree("NN", "dog")])


@pytest.mark.parametrize(("number", "parent", "children"), CASES)
def test_treelet_oracle_every_small_phrase(number: int, parent: str, children: list[str]) -> None:
    rows = [row for size in (1, 2, 3) for row in product(children, repeat=size)]
    first = children[:1]
    between = [label for label in children if label == "," or label not in PUNCTUATION]
    rows += [(*first, *row, *first) for row in product(between, repeat=2)]
    batch = [
        Tree(
            "ROOT", [Tree("X", [Tree(Label(parent, "h"), map(small_phrase, row)), Tree("Y", "y")])]
        )
        for row in rows
    ]
    for numbers, vp_label in (([number], "lowest"), ([2, number], "highest")):
        transform = Treelet(transforms=names(numbers), vp_label=vp_label)
        for tree, found in zip(batch, transform.apply_all(batch), strict=True):
            expected = oracle.apply(to_node(tree), None, numbers, vp_label)
            assert parts_of_tree(found) == parts_of_node(expected)


def test_treelet_oracle_every_closed_word_and_number() -> None:
    tags = [*TAGS, "NNT", "VBP", "AUXG", "PDT", "WP$", "-LSB-", "-RSB-", "-LCB-", "-RCB-", "ZZZ"]
    words = [
        *heads.CLOSED_VERBS,
        "The",
        "’S",
        "‘re",
        "-LRB-",
        "-lrb-",
        "+",
        "10",
        "1.5",
        "x",
        "Was",
    ]
    leaves = [Tree(tag, word) for tag in tags for word in (*sorted(words), tag)]
    for numbers in ([2], [2, 4], [1, 2]):
        check(Tree("ROOT", leaves), numbers, frozenset({"the", "x", "was"}), "lowest")


@settings(max_examples=40)
@given(st.lists(english_trees(), min_size=1, max_size=4), lexicons, verb_labels)
def test_treelet_oracle_while_reading(
    batch: list[Tree], temporal: frozenset[str], vp_label: VerbLabel
) -> None:
    """Reading and transforming in one go is reading, then transforming."""
    text = "\n".join(map(str, batch))
    recipe = ReadOptions().recipe(
        treelet=0b111111111, lowest_verb_label=vp_label == "lowest", temporal=temporal
    )
    together = [
        tree
        for packed in read_packed([text.encode()], recipe=recipe, on_error="skip")
        for tree in packed
    ]
    transform = Treelet(temporal=temporal, vp_label=vp_label)
    one_by_one = [transform.apply(tree) for tree in read_trees([text], on_error="skip")]
    assert [parts_of_tree(tree) for tree in together] == [parts_of_tree(t) for t in one_by_one]
    assert list(transform.apply_all(read_trees([text], on_error="skip"))) == one_by_one


@settings(max_examples=50)
@given(english_trees())
def test_treelet_oracle_after_cleaning(tree: Tree) -> None:
    for cleaned in read_trees([str(tree)], ReadOptions(unescape=False)):
        assert cleaned == clean(tree)
        check(cleaned, range(1, 10), frozenset(TEMPORAL), "lowest")


# -- laws of the end of section 6 -----------------------------------------------------------


@settings(max_examples=80)
@given(some_trees, lexicons, verb_labels)
def test_treelet_oracle_words_stay_and_unaries_go(
    tree: Tree, temporal: frozenset[str], vp_label: VerbLabel
) -> None:
    result = treelet(tree, temporal=temporal, vp_label=vp_label)
    assert result.words == tree.words
    assert result.label == "ROOT"
    for child in result.children:
        assert all(node.is_preterminal or len(node) > 1 for node in child.preorder())


@settings(max_examples=80)
@given(some_trees, verb_labels, st.booleans())
def test_treelet_oracle_idempotent_transforms(
    tree: Tree, vp_label: VerbLabel, annotated: bool
) -> None:
    if annotated:
        tree = treelet(tree, temporal=(), transforms=names(range(1, 3)))
    for transform in (T3, T6, T9):
        once = treelet(tree, temporal=(), transforms=[transform], vp_label=vp_label)
        assert treelet(once, temporal=(), transforms=[transform], vp_label=vp_label) == once


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["S", "NP", "VP", "SBAR", "FRAG", "ROOT"]), max_size=6))
def test_treelet_oracle_a_single_word_survives(chain: list[str]) -> None:
    tree = Tree("NN", "Hello")
    for label in chain:
        tree = Tree(label, [tree])
    parent = "" if chain else "^ROOT"
    assert str(treelet(Tree("ROOT", [tree]), temporal=())) == f"(ROOT (NN{parent} Hello))"


@settings(max_examples=60)
@given(some_trees, lexicons)
def test_treelet_oracle_transformed_trees_round_trip(tree: Tree, temporal: frozenset[str]) -> None:
    result = treelet(tree, temporal=temporal)
    assert list(read_trees([str(result)], ReadOptions(strip=False, unescape=False))) == [result]


@pytest.mark.parametrize("mark", "@+^|\\")
def test_treelet_oracle_reserved_characters_in_categories(mark: str) -> None:
    tree = Tree("ROOT", [Tree(f"NP{mark}X", [Tree("NN", "dog")])])
    with pytest.raises(CorpusFormatError) as caught:
        treelet(tree, temporal=())
    assert caught.value.code == "E_RESERVED_CHAR"


def test_treelet_without_temporal_nouns_warns_unless_that_is_meant() -> None:
    tree = Tree.from_string("(ROOT (NN today))")
    with pytest.warns(TreelmWarning, match="T1"):
        treelet(tree)
    assert (
        treelet(tree, temporal=())
        == treelet(tree, profile="neutral")
        == tree.replace(content=[Tree(Label("NN", parent="ROOT"), "today")])
    )


def test_treelet_of_a_tree_without_root_treats_its_top_like_any_node() -> None:
    tree = Tree.from_string("(S (NP (PRP He)) (VP (VBD left) (NP (NN home))))")
    assert str(treelet(tree, temporal=())) == "(S-VBD (PRP-he He) (VP-VBD^S (VBD left) (NN home)))"


def test_treelet_temporal_nouns_are_words_in_any_case() -> None:
    tree = Tree.from_string("(ROOT (NNP Monday))")
    assert str(treelet(tree, temporal={"MONDAY"})) == "(ROOT (NNTP^ROOT Monday))"
    with pytest.raises(UsageError, match="not a string"):
        treelet(tree, temporal="monday")
