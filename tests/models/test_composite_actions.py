"""Trees as action strings, and treebanks as the composite model reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_treebank
from treelm.errors import CorpusFormatError, EstimationError, UsageError
from treelm.models.composite.actions import ActionCodes, actions_of, codes_of, trees_of
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parsed_text import joined, prepare, whole_sentence
from treelm.trees.heads import find_heads
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree


def binary_trees(depth: int = 3) -> st.SearchStrategy[Tree]:
    leaves = st.builds(Tree, st.sampled_from(["N", "V"]), st.sampled_from(["dogs", "bark"]))
    return st.recursive(
        leaves,
        lambda below: st.builds(
            lambda label, left, right, head: Tree(label, [left, right], head=head),
            st.sampled_from(["NP", "S"]),
            below,
            below,
            st.integers(0, 1),
        ),
        max_leaves=depth * 3,
    )


@given(binary_trees())
@settings(max_examples=60)
def test_every_binary_tree_has_one_string(tree: Tree) -> None:
    codes = ActionCodes(("N", "V"), ("NP", "S"))
    actions = actions_of(tree, codes)
    back = trees_of(actions, tree.words, codes)
    assert back == [tree]
    assert [node.head for node in back[0].preorder()] == [node.head for node in tree.preorder()]
    assert len(actions) == 2 * len(tree.words) + len(tree.words) - 1


def test_left_siblings_are_adjoined_last() -> None:
    tree = find_heads(
        Tree.from_string("(VP (ADVP (RB often)) (VBZ eats) (NP (NN fish)) (PP (IN at) (NN sea)))")
    )
    made = CompositeConfig(heads=2).pipeline().apply(tree)
    assert str(made) == "(VP (RB often) (@VP (@VP (VBZ eats) (NN fish)) (PP (IN at) (NN sea))))"
    codes = codes_of([made])
    moves = [codes.moves[move] for move in actions_of(made, codes) if move]
    assert "adjoin-right VP" in moves


def test_unary_moves() -> None:
    tree = Tree.from_string("(S (NP (NN dogs)) (VP (VBP bark)))")
    made = CompositeConfig(heads=2, unary_moves=True).pipeline().apply(find_heads(tree))
    codes = codes_of([made], unary_moves=True)
    actions = actions_of(made, codes)
    assert [codes.moves[a] for a in actions[1:3]] == ["unary NP", "null"]
    assert trees_of(actions, tree.words, codes) == [made]


def test_what_is_no_binary_tree_is_refused() -> None:
    codes = ActionCodes(("N",), ("S", "X"))
    leaf = Tree("N", "dogs")
    for tree in (
        Tree("S", [leaf, leaf, leaf], head=0),
        Tree("S", [leaf]),
        Tree("S", [Tree("X", [leaf]), leaf], head=0),
    ):
        with pytest.raises(UsageError, match="cannot be built by moves") as caught:
            actions_of(tree, codes)
        assert caught.value.code == "E_NOT_BINARY"
    with pytest.raises(UsageError, match="head") as caught:
        actions_of(Tree("S", [leaf, leaf]), codes)
    assert caught.value.code == "E_NO_HEAD"
    with pytest.raises(CorpusFormatError, match="closed") as wrong:
        actions_of(Tree("Q", [leaf, leaf], head=0), codes)
    assert wrong.value.code == "E_NEW_LABEL"
    with pytest.raises(ValueError, match="not a string of actions"):
        trees_of([0, 2], ["dogs"], codes)


def test_prepared_treebank_is_that_of_its_trees() -> None:
    config = CompositeConfig(heads=2)
    prepared = prepare(sample_treebank(), config)
    text = prepared.text
    profile = load_profile(sample_treebank().options.profile)
    found = [
        (config.pipeline().apply(whole_sentence(tree)), tree.words)
        for batch in sample_treebank().batches()
        for tree in batch.trees(batch.native.find_heads(profile.native))
    ]
    assert len(found) == len(text) == len(list(sample_treebank()))
    for sentence in (0, 7, len(text) - 1):
        first, last = (int(place) for place in text.action_starts[sentence : sentence + 2])
        assert text.actions[first:last].tolist() == actions_of(found[sentence][0], prepared.codes)
        assert trees_of(text.actions[first:last].tolist(), found[sentence][1], prepared.codes) == [
            found[sentence][0]
        ]
    assert len(np.unique(text.documents)) > 1
    assert np.all(np.diff(text.documents) >= 0)


def test_sentences_with_new_labels_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "new.mrg"
    path.write_text("(ROOT (S (NP (NN dogs)) (VP (VBP bark))))\n(ROOT (QQ (NN dogs) (NN dogs)))\n")
    config = CompositeConfig(heads=2)
    known = prepare(sample_treebank(), config)
    made = prepare(TreeCorpus((path,)), config, vocabulary=known.vocabulary, codes=known.codes)
    assert len(made.text) == 1


def test_punctuation_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "trees.mrg"
    path.write_text("(ROOT (S (NP (NN dogs)) (, ,) (VP (VBP bark)) (. .)))\n(ROOT (X (. .)))\n")
    config = CompositeConfig(heads=2, punctuation="remove", min_count=1)
    made = prepare(TreeCorpus((path,)), config)
    assert made.text.starts.tolist() == [0, 2]
    assert set(made.vocabulary.symbols) == {"<unk>", "dogs", "bark"}


def test_parts_and_joins_of_a_text() -> None:
    text = prepare(sample_treebank(), CompositeConfig(heads=2)).text
    halves = [text.part(0, 100), text.part(100, len(text))]
    whole = joined(halves)
    for name in ("ids", "starts", "actions", "action_starts"):
        assert np.array_equal(getattr(whole, name), getattr(text, name))


def test_phrases_without_a_head_rule_can_be_refused(tmp_path: Path) -> None:
    trees = tmp_path / "trees.mrg"
    trees.write_text("(S (NP-SBJ (NN rain)) (VP (VBZ falls)))\n")
    strict = CompositeConfig(heads=1, strict_heads=True, min_count=1)
    assert len(prepare(TreeCorpus((trees,)), strict).text) == 1
    trees.write_text("(S (NP (NN rain)) (ODD (VBZ falls) (RB here)))\n")
    assert len(prepare(TreeCorpus((trees,)), CompositeConfig(heads=1)).text) == 1
    with pytest.raises(EstimationError, match="ODD") as caught:
        prepare(TreeCorpus((trees,)), strict)
    assert caught.value.code == "E_NO_HEAD_RULE"
