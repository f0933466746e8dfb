"""Training copies: what they look like, how many there are, and what a grammar learns from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import ModelFileError
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.train import train_pcfg
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.models.registry import load
from treelm.testing.strategies import trees as any_trees
from treelm.transforms.clean import clean
from treelm.transforms.copies import Copy, copied, with_copies
from treelm.trees.packed import PackedTrees
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

KINDS: tuple[Copy, ...] = ("unpunctuated", "lowercase", "bare")
ENGLISH = load_profile("english")


def copy_of(tree: Tree, kind: Copy, profile: str = "english") -> list[str]:
    made = copied(PackedTrees.from_trees([tree]), kind, load_profile(profile))
    return [str(each) for each in made]


def slow_copy(tree: Tree, kind: Copy) -> Tree | None:
    """Return a copy as one would make it by hand: from the end, leaf by leaf."""
    leaves = [node for node in tree.preorder() if node.is_preterminal]
    gone: set[int] = set()
    if kind != "lowercase":
        for leaf in range(len(leaves) - 1, -1, -1):
            word = leaves[leaf].word or ""
            if word in ("''", '"', "'", ")", "-RRB-"):
                continue
            if leaves[leaf].label.base not in ENGLISH.punctuation.tags:
                break
            gone.add(leaf)
    number = iter(range(len(leaves)))

    def build(node: Tree) -> Tree | None:
        if node.word is not None:
            if next(number) in gone:
                return None
            lower = kind != "unpunctuated" and not node.word.startswith("-")
            return Tree(node.label, node.word.lower() if lower else node.word)
        children = [made for child in node if (made := build(child)) is not None]
        return Tree(node.label, children) if children else None

    made = build(tree)
    return None if made == tree else made


LEAVES = st.sampled_from(
    [
        Tree("NN", "Dog"),
        Tree("NN", "dog"),
        Tree("VB", "SIT"),
        Tree(".", "."),
        Tree(".", "?"),
        Tree(",", ","),
        Tree("''", "''"),
        Tree("-RRB-", "-RRB-"),
    ]
)
PHRASES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        Tree, st.sampled_from(["S", "NP", "X"]), st.lists(inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(PHRASES.map(lambda tree: Tree("ROOT", [tree])), min_size=1, max_size=5))
def test_copies_are_those_made_by_hand(trees: list[Tree]) -> None:
    for kind in KINDS:
        expected = [made for tree in trees if (made := slow_copy(tree, kind)) is not None]
        assert list(copied(PackedTrees.from_trees(trees), kind, ENGLISH)) == expected


@given(any_trees())
def test_copies_of_any_tree_can_be_read_again(tree: Tree) -> None:
    corpus = TreeCorpus.of_trees([tree])
    for kind in KINDS:
        originals, shown = list(corpus), list(with_copies(corpus, [kind], 1.0))
        assert shown[: len(originals)] == originals
        for copy in shown[len(originals) :]:
            assert [*TreeCorpus.of_trees([copy])] == [copy]
            assert clean(copy) == copy


def test_closing_quotes_and_brackets_stay() -> None:
    tree = Tree.from_string("(S (`` ``) (VP (VB Go)) (. .) ('' ''))")
    assert copy_of(tree, "unpunctuated") == ["(S (`` ``) (VP (VB Go)) ('' ''))"]
    tree = Tree.from_string("(S (-LRB- -LRB-) (VP (VB Go)) (. .) (-RRB- -RRB-))")
    assert copy_of(tree, "bare") == ["(S (-LRB- -LRB-) (VP (VB go)) (-RRB- -RRB-))"]


def test_a_tree_of_punctuation_and_one_without_it_are_not_copied() -> None:
    assert copy_of(Tree.from_string("(X (. .) (: --))"), "unpunctuated") == []
    assert copy_of(Tree.from_string("(S (VP (VB Go)))"), "unpunctuated") == []
    assert copy_of(Tree.from_string("(S (VP (VB go)))"), "lowercase") == []


def test_other_languages_tell_punctuation_by_the_word() -> None:
    tree = Tree.from_string("(S (V Kom) (Z !))")
    assert copy_of(tree, "bare", "neutral") == ["(S (V kom))"]
    assert copy_of(tree, "unpunctuated", "english") == []


def test_a_phrase_left_alone_below_its_own_label_becomes_one() -> None:
    corpus = TreeCorpus.of_trees([Tree.from_string("(S (S (VP (VB Go))) (. .))")])
    assert str(list(with_copies(corpus, ["unpunctuated"], 1.0))[1]) == "(ROOT (S (VP (VB Go))))"


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 1.0])
def test_a_share_of_the_trees_is_copied_evenly(share: float) -> None:
    tree = Tree.from_string("(S (VP (VB Go)) (. .))")
    corpus = TreeCorpus.of_trees([tree] * 200)
    for copies in (["bare"], ["unpunctuated", "lowercase"]):
        shown = list(with_copies(corpus, copies, share))  # type: ignore[arg-type]
        assert len(shown) == 200 + len(copies) * round(200 * share)
    assert with_copies(corpus, [], share) is corpus


def test_the_order_in_which_copies_are_named_does_not_matter() -> None:
    corpus = TreeCorpus((sample_path(),))
    one, other = (
        with_copies(corpus, kinds, 0.3) for kinds in (("bare", "lowercase"), ("lowercase", "bare"))
    )
    assert list(one) == list(other)


def test_an_imperative_without_a_full_stop_is_a_sentence() -> None:
    lines = ["(S (VP (VB Open) (NP (DT the) (NN door))) (. .))"] * 4
    lines += ["(VP (VB Open))"]
    corpus = TreeCorpus.of_trees(map(Tree.from_string, lines))
    found = []
    for config in (PcfgConfig(), PcfgConfig(copies=("unpunctuated",), copy_share=1.0)):
        parsed = train_pcfg(corpus, config).parse_many([["Open", "the", "door"]])[0]
        assert parsed is not None
        found.append(str(parsed.tree))
    assert found[0].startswith("(ROOT (VP")
    assert found[1] == "(ROOT (S (VP (VB Open) (NP (DT the) (NN door)))))"


@pytest.mark.parametrize("lexicon", ["berkeley", "closed"])
def test_latent_grammars_learn_from_copies(lexicon: str) -> None:
    corpus = TreeCorpus((sample_path(),))
    config = PcfgLaConfig.model_validate(
        {
            "seed": 1,
            "cycles": 1,
            "split_iterations": 2,
            "lexicon": lexicon,
            "copies": ("bare",),
            "copy_share": 1.0,
        }
    )
    model = train_pcfg_la(corpus, config)
    model.grammar.check_normalized()
    model.lexicon.check_normalized()
    # What a model says of its corpus is about the files.
    assert model.corpora[0].sentences == len(list(corpus))
    copies = list(with_copies(corpus, ("bare",), 1.0))
    assert int(model.unigram_counts[-1]) == len(copies)
    assert np.isfinite(model.tree_log_probs(copies)).all()


def test_models_from_before_copies_load_and_forged_ones_are_refused(tmp_path: Path) -> None:
    train_pcfg(TreeCorpus((sample_path(),)), PcfgConfig()).save(tmp_path / "m")
    manifest = tmp_path / "m" / "manifest.json"
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    assert facts["config"].pop("copies") == []
    facts["config"].pop("copy_share")
    manifest.write_text(json.dumps(facts), encoding="utf-8")
    old = load(tmp_path / "m")
    assert old.config == PcfgConfig()
    for forged in ({"copies": ["upside down"]}, {"copies": "bare"}, {"copy_share": 2.0}):
        wrong = {**facts, "config": {**facts["config"], **forged}}
        manifest.write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(ModelFileError) as caught:
            load(tmp_path / "m")
        assert caught.value.code == "E_MANIFEST"
