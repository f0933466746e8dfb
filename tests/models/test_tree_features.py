"""Classifiers by features of trees: what is counted, fragments, training, files."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import product
from math import log
from pathlib import Path

import numpy as np
import pytest

from treelm import _native
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.sample_treebank import sample_path, sample_treebank
from treelm.errors import ModelFileError, UnsupportedTask
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.registry import load, train
from treelm.models.tree_features.config import TreeFeaturesConfig
from treelm.models.tree_features.features import length_class, tree_features
from treelm.models.tree_features.fragments import FragmentGrammar, rule_of
from treelm.models.tree_features.model import TreeFeaturesModel
from treelm.models.tree_features.rerank import placed_features, rerank_features
from treelm.models.tree_features.train import train_tree_features
from treelm.trees.heads import find_heads
from treelm.trees.tree import Tree

TREES = list(sample_treebank())
SENTENCE = Tree.from_string(
    "(ROOT (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NN cats) (CC and) (NN dogs))) (. .)))"
)


def test_rules_of_a_tree() -> None:
    counts = next(
        tree_features([ScoredTree(SENTENCE, 0.0, 0.0)], TreeFeaturesConfig(features="cfg"), None)
    )
    assert counts["NP -> DT NN"] == counts["DT => the"] == counts[length_class(7)] == 1
    assert counts.total() == 7 + 5 + 1


def test_rerank_features_of_a_tree() -> None:
    counts = rerank_features(find_heads(SENTENCE), -15.5)
    expected = {
        "rule NP -> DT NN": 1,
        "rule^1 S NP -> DT NN": 1,
        "rule^2 ROOT S NP -> DT NN": 1,
        "children NP [ DT": 1,
        "children NP DT NN ]": 1,
        "tags NP L NN DT": 1,
        "words L sees dog": 1,
        "word+2 the DT NP S": 1,
        "parallel 0 True": 1,
        "heavy NP 2 4-5": 1,
        "right-branch": 4,  # ROOT, S, VP and the NP at its end
        "off-right-branch": 1,
        "tags-2 [ DT": 1,
        "tags-5 NN VBZ NN CC NN": 1,
        "www [ the dog": 1,
        "w--w the - - cats": 1,
        "tttw NN CC NN .": 1,
        "joint NN NP / S / VBZ VP": 1,
        "joint-left dog NN NP / S / VBZ VP": 1,
        "joint-depth 1 NP 1": 3,
        "heads DT NN VBZ": 1,
        "heads-words the NN sees": 1,
        "log-prob -12": 1,  # 15.5 / 7 = 2.2 nats a word
        "log-prob-length -5 6-10": 1,
    }
    assert {name: counts[name] for name in expected} == expected


def test_features_stand_at_the_smallest_part_of_the_tree_they_are_about() -> None:
    tree = find_heads(SENTENCE)
    nodes = list(tree.preorder())
    placed = [(str(nodes[number].label), name) for number, name in placed_features(tree)]
    expected = [
        ("NP", "rule NP -> DT NN"),
        ("DT", "word the"),
        ("NP", "parallel 0 True"),
        ("DT", "tags-2 [ DT"),
        ("NP", "tags-2 DT NN"),
        ("NP", "www [ the dog"),
        ("S", "joint NN NP / S / VBZ VP"),
        ("VP", "ww sees cats"),
        ("S", "ww dogs ."),
        (".", "ww . ]"),
        ("DT", "heads DT NN VBZ"),
    ]
    assert set(expected) <= set(placed)
    # All but what is about the sentence as a whole.
    counted = rerank_features(tree)
    whole = Counter({name: counted[name] for name in ("right-branch", "off-right-branch")})
    assert Counter(name for _, name in placed) == counted - whole


def test_a_chance_that_is_not_known_is_no_feature() -> None:
    counts = rerank_features(find_heads(SENTENCE))
    assert not [name for name in counts if name.startswith("log-prob")]


def brute_force(grammar: FragmentGrammar, tree: Tree) -> float:
    """Return the log probability of the best cut, by trying all sets of cut nodes."""
    nodes = list(tree.preorder())
    place = {id(node): number for number, node in enumerate(nodes)}
    totals: Counter[str] = Counter()
    scores = {}
    for number, count in enumerate(grammar.counts.tolist()):
        totals[grammar.text(number).split(" ", 1)[0]] += count
    for number, count in enumerate(grammar.counts.tolist()):
        text = grammar.text(number)
        scores[text] = log(count / totals[text.split(" ", 1)[0]])

    def written(node: Tree, cut: tuple[bool, ...]) -> str:
        below = ("*" if cut[place[id(child)]] else written(child, cut) for child in node.children)
        return " | ".join([rule_of(node), *below])

    best = -np.inf
    for rest in product((False, True), repeat=len(nodes) - 1):
        cut = (True, *rest)
        pieces = [written(node, cut) for node in nodes if cut[place[id(node)]]]
        if all(piece in scores for piece in pieces):
            best = max(best, sum(scores[piece] for piece in pieces))
    return best


def test_best_cut_is_that_of_all_cuts() -> None:
    trees = [
        Tree.from_string("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NN cats))))"),
        Tree.from_string("(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (NN dogs))))"),
    ]
    config = TreeFeaturesConfig(features="tsg", sweeps=5, stop=0.3, concentration=1.0)
    grammar = FragmentGrammar.sample(trees * 6, config)
    assert any("|" in grammar.text(number) for number in range(len(grammar)))
    for tree in trees:
        counts = grammar.features([tree])[0]
        found = sum(
            count * log(grammar.counts[number] / _total(grammar, number))
            for number in range(len(grammar))
            if (count := counts[f"fragment {number}"])
        )
        assert found == pytest.approx(brute_force(grammar, tree))


def _total(grammar: FragmentGrammar, number: int) -> int:
    label = grammar.text(number).split(" ", 1)[0]
    same = (n for n in range(len(grammar)) if grammar.text(n).split(" ", 1)[0] == label)
    return sum(int(grammar.counts[n]) for n in same)


def test_fragments_are_the_same_for_any_number_of_threads_and_every_time() -> None:
    config = TreeFeaturesConfig(features="tsg", sweeps=3)
    first, second = (FragmentGrammar.sample(TREES, config) for _ in range(2))
    assert first.tokens.tolist() == second.tokens.tolist()
    assert first.features(TREES, threads=1) == second.features(TREES, threads=2)
    # The rules of all fragments together are those of the trees.
    nodes = sum(1 for tree in TREES for _ in tree.preorder())
    sizes = [int((first.tokens[a:b] >= 0).sum()) for a, b in _ranges(first)]
    used = Counter(
        int(name.split()[1])
        for counts in first.features(TREES)
        for name in counts.elements()
        if name.startswith("fragment ")
    )
    assert sum(sizes[number] * count for number, count in used.items()) == nodes


def _ranges(grammar: FragmentGrammar) -> list[tuple[int, int]]:
    return list(zip(grammar.starts[:-1].tolist(), grammar.starts[1:].tolist(), strict=True))


def test_an_unknown_rule_is_a_fragment_of_its_own() -> None:
    grammar = FragmentGrammar.sample(TREES, TreeFeaturesConfig(features="tsg", sweeps=0))
    counts = grammar.features([Tree.from_string("(ROOT (XYZ (NN zebra) (ZZ qq)))")])[0]
    assert counts["unknown rule"] == 4


def test_forged_fragments_are_refused() -> None:
    good = {
        "starts": np.array([0, 2], np.int64),
        "tokens": np.array([0, -1], np.int32),
        "counts": np.array([1], np.uint64),
        "rule_labels": np.array([0], np.int32),
        "label_count": 1,
    }
    assert _native.FragmentCover(**good) is not None
    for change in (
        {"starts": np.array([0, 9], np.int64)},
        {"tokens": np.array([5, -1], np.int32)},
        {"tokens": np.array([-1, -1], np.int32)},
        {"counts": np.array([0], np.uint64)},
        {"rule_labels": np.array([3], np.int32)},
    ):
        with pytest.raises(_native.KernelError, match="E_ARGUMENT"):
            _native.FragmentCover(**{**good, **change})
    cover = _native.FragmentCover(**good)
    tree = {
        "starts": np.array([0, 2], np.int64),
        "rules": np.array([0, 0], np.int32),
        "labels": np.array([0, 0], np.int32),
        "sizes": np.array([2, 1], np.int32),
    }
    assert len(cover.derive(**tree, threads=1)[1]) == 2
    for change in (
        {"sizes": np.array([3, 1], np.int32)},
        {"sizes": np.array([1, 1], np.int32)},
        {"rules": np.array([4, 0], np.int32)},
        {"labels": np.array([0, 7], np.int32)},
        {"starts": np.array([1, 2], np.int64)},
    ):
        with pytest.raises(_native.KernelError, match="E_ARGUMENT"):
            cover.derive(**{**tree, **change}, threads=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> LabelledSentences:
    folder = tmp_path_factory.mktemp("sentences")
    good = [" ".join(tree.words) for tree in TREES if len(tree.words) > 4][:120]
    bad = [" ".join(line.split()[::-1]) for line in good]
    for name, lines in (("good", good), ("bad", bad)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return LabelledSentences(TextCorpus((folder / "good",)), TextCorpus((folder / "bad",)))


@pytest.mark.parametrize("features", ["cfg", "tsg", "rerank"])
def test_training_tells_sentences_apart(
    tmp_path: Path, data: LabelledSentences, features: str
) -> None:
    parser = train("pcfg", TreeCorpus((sample_path(),)))
    options = {"features": features, "sweeps": 2, "min_sentences": 2}
    config = TreeFeaturesConfig.model_validate(options)
    model = train_tree_features(data, config, parser=parser)  # type: ignore[arg-type]
    assert model.accuracy > 0.8
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, TreeFeaturesModel)
    given = data.sentences[:20]
    margins = model.margins(given).tolist()
    assert again.margins(given, threads=2).tolist() == margins
    assert again.margins([(), *given[:2], ()]).tolist() == [-np.inf, *margins[:2], -np.inf]
    assert pickle.loads(pickle.dumps(again)).margins(given).tolist() == margins
    if features != "tsg":
        explained = again.explain(given[0])
        assert explained is not None
        assert explained.elsewhere is not None
        assert len(explained.weights) == len(list(explained.tree.preorder()))
        whole = sum(explained.weights) + explained.elsewhere
        assert whole == pytest.approx(again.decision(given[0]))
        if features == "cfg":
            length = again.weight_of(ScoredTree(explained.tree, 0.0, 0.0)).get(
                length_class(len(given[0])), 0.0
            )
            assert explained.elsewhere == pytest.approx(length + again.offset)
    else:
        with pytest.raises(UnsupportedTask):
            again.explain(given[0])
    with pytest.raises(UnsupportedTask) as caught:
        again.without_parser().margins(given)
    assert caught.value.code == "E_NO_PARSER"
    # Folders with other numbers are refused.
    for place, value in (
        ("weights", np.full(len(model.names), np.nan)),
        ("names", model.names[1:]),
    ):
        forged = model.without_parser()
        setattr(forged, place, value)
        forged.save(tmp_path / f"forged-{place}")
        with pytest.raises(ModelFileError):
            load(tmp_path / f"forged-{place}")
    if features == "tsg":
        assert model.grammar is not None
        forged = model.without_parser()
        tokens = model.grammar.tokens.copy()
        tokens[0] = -1
        forged.grammar = FragmentGrammar(
            model.grammar.rules, model.grammar.starts, tokens, model.grammar.counts
        )
        forged.save(tmp_path / "forged-tokens")
        with pytest.raises(ModelFileError):
            load(tmp_path / "forged-tokens")
