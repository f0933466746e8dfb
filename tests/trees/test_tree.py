"""The immutable tree and its labels."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given

from treelm.errors import CorpusFormatError
from treelm.testing.strategies import trees
from treelm.trees.label import Label, escape_reserved
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.tree import Tree

DOG = Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")])


def chain(depth: int) -> Tree:
    tree = Tree("NN", "dog")
    for _ in range(depth):
        tree = Tree("NP", [tree])
    return tree


def test_label_renders_its_parts_and_equals_the_string() -> None:
    label = Label("S", "VBD", gap=True, parent="ROOT")
    assert label == "S-VBD-GAP^ROOT"
    assert (label.base, label.head, label.gap, label.parent) == ("S", "VBD", True, "ROOT")
    assert Label(":", "--") == ":---"
    assert {label: 1}["S-VBD-GAP^ROOT"] == 1


def test_label_escapes_reserved_characters_of_the_annotation_only() -> None:
    assert str(Label("SYM", "+")) == r"SYM-\+"
    assert str(Label("SYM", "|")) == r"SYM-\|"
    assert escape_reserved(r"a@b+c^d|e\f") == r"a\@b\+c\^d\|e\\f"


def test_label_survives_copy_and_pickle_with_its_parts() -> None:
    label = Label("VP", "is", gap=True, parent="S")
    for again in (copy.copy(label), copy.deepcopy(label), pickle.loads(pickle.dumps(label))):
        assert again == label
        assert (again.base, again.head, again.gap, again.parent) == ("VP", "is", True, "S")


def test_tree_is_immutable() -> None:
    with pytest.raises(AttributeError, match="replace"):
        DOG.label = Label("X")  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del DOG.children
    assert DOG.replace(label="NX").label == "NX"
    assert DOG.label == "NP"


@pytest.mark.parametrize("content", ["", [], ()])
def test_tree_refuses_nothing_below(content: object) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        Tree("NP", content)  # type: ignore[arg-type]
    assert caught.value.code == "E_NO_WORD"


def test_tree_properties() -> None:
    assert DOG.words == ("the", "dog")
    assert DOG.tags == ("DT", "NN")
    assert DOG.is_phrasal
    assert DOG[1].is_preterminal
    assert len(DOG) == 2
    assert [child.word for child in DOG] == ["the", "dog"]
    assert DOG.height == 2
    assert bool(DOG[0]), "a preterminal has no children, and is a tree all the same"


def test_trees_are_equal_by_what_is_written_and_heads_do_not_count() -> None:
    assert Tree("S", [DOG], head=0) == Tree("S", [DOG])
    assert hash(Tree("S", [DOG], head=0)) == hash(Tree("S", [DOG]))
    assert Tree(Label("S", "VBD"), [DOG]) == Tree("S-VBD", [DOG])
    assert Tree("NN", "a") != Tree("NN", "b")
    assert DOG != "(NP (DT the) (NN dog))"


@given(trees())
def test_tree_string_reads_back(tree: Tree) -> None:
    assert Tree.from_string(str(tree)) == tree


@given(trees(with_heads=True))
def test_tree_survives_pickle(tree: Tree) -> None:
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert [node.head for node in again.preorder()] == [node.head for node in tree.preorder()]


@given(trees())
def test_fold_visits_children_in_order(tree: Tree) -> None:
    def words(node: Tree, below: list[list[str]]) -> list[str]:
        return [node.word] if node.word is not None else [word for part in below for word in part]

    assert tuple(tree.fold(words)) == tree.words


def test_transform_splices_sequences() -> None:
    tree = Tree("S", [Tree("X", [DOG, Tree(".", ".")]), Tree("RB", "now")])
    flat = tree.transform(
        lambda node, below: below if node.label == "X" else node if node.word else Tree("S", below)
    )
    assert str(flat).startswith("(S (S (DT the)")
    with pytest.raises(ValueError, match="exactly one"):
        DOG.transform(lambda node, below: below if node.is_phrasal else node)


def test_deep_trees_need_no_recursion() -> None:
    tree = chain(20_000)
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert tree.height == 20_001
    assert len(str(tree)) == 20_000 * 5 + 8
    assert repr(tree).endswith("...)")
    assert tree.transform(lambda node, below: Tree("X", node.word or below)).label == "X"
    assert next(iter(PackedTrees.from_trees([tree]))) == tree


@given(trees(), trees())
def test_packed_trees_hold_the_same_trees(first: Tree, second: Tree) -> None:
    packed = PackedTrees.from_trees([first, second])
    assert list(packed) == [first, second]
    assert packed.to_brackets().decode() == f"{first}\n{second}\n"
    assert packed.token_count == len(first.words) + len(second.words)
    tags, phrases = packed.label_sets()
    assert tags == set(map(str, first.tags)) | set(map(str, second.tags))
    assert phrases == {str(n.label) for t in (first, second) for n in t.preorder() if n.is_phrasal}
    assert packed.node_word[0] == NO_WORD or first.is_preterminal


def test_packed_arrays_are_read_only_views_that_outlive_their_batch() -> None:
    sizes = PackedTrees.from_trees([DOG]).node_size
    assert sizes.tolist() == [3, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        sizes[0] = 7


def test_packed_keeps_the_parts_of_labels() -> None:
    tree = Tree(Label("S", "+", gap=True, parent="ROOT"), [DOG])
    label = next(iter(PackedTrees.from_trees([tree]))).label
    assert (label.base, label.head, label.gap, label.parent) == ("S", "+", True, "ROOT")


def test_empty_batch_is_legal() -> None:
    packed = PackedTrees.from_trees([])
    assert len(packed) == 0
    assert list(packed) == []
    assert packed.to_brackets() == b""


def test_tree_draws_itself_in_a_notebook() -> None:
    assert DOG._repr_svg_().startswith("<svg")
    assert "dog" in DOG.draw()


def test_head_must_be_one_of_the_children() -> None:
    with pytest.raises(ValueError, match="head 7"):
        Tree("NP", [Tree("NN", "a"), Tree("NN", "b")], head=7)
