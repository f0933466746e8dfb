"""Head-lexicalised models beside a slow reference, and their files."""

from __future__ import annotations

import math
import pickle
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.treelet_models import (
    head_events,
    sample_trees,
    small_headlex,
    trees_of,
)
from tests.reference import backoff as reference

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import UsageError
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.events import KINDS
from treelm.models.headlex.model import HeadlexModel
from treelm.models.headlex.train import train_headlex
from treelm.models.registry import load
from treelm.models.run import Run
from treelm.parallel.memory import MemoryLimit
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

pytestmark = pytest.mark.filterwarnings("ignore:no discount can be estimated")


class ReferenceHeadlex:
    """treelet.md 5 over dictionaries and fractions, every discount one half."""

    def __init__(self, trees: list[Tree]) -> None:
        events = defaultdict(list)
        for tree in trees:
            for kind, context, outcome in head_events(tree):
                events[kind].append((context, outcome))
        children = {str(x.label) for tree in trees for x in tree.preorder()} - {"ROOT"}
        words = reference.UniformBase({*(w for t in trees for w in t.words), reference.UNKNOWN})
        symbols = {*children, reference.USYM}
        self.symbols = symbols
        bases: dict[str, Any] = {
            "top_label": reference.UniformBase(symbols, reference.USYM),
            "head_label": reference.UniformBase(symbols, reference.USYM),
            "modifier": reference.UniformBase({*symbols, "STOP."}, reference.USYM),
            "top_word": words,
            "word": words,
        }
        self.models = {}
        for kind, (columns, widths) in KINDS.items():
            levels = tuple(tuple(range(width)) for width in widths)
            pads = {i: "START" for i, name in enumerate(columns) if name == "label before"}
            chain = reference.Chain(levels, pads)
            own = [(context, self._outcome(kind, x)) for context, x in events[kind]]
            half = [Fraction(1, 2)] * len(levels)
            self.models[kind] = reference.fixed_discounts(own, chain, bases[kind], half)

    @staticmethod
    def _outcome(kind: str, outcome: str) -> str:
        # The reference keeps the sentinel STOP for itself.
        return "STOP." if kind == "modifier" and outcome == "STOP" else outcome

    def log_prob(self, tree: Tree) -> float:
        return sum(
            math.log(self.models[kind].probability(context, self._outcome(kind, outcome)))
            for kind, context, outcome in head_events(tree)
        )


def with_heads(trees: list[Tree]) -> list[Tree]:
    from treelm.trees.packed import PackedTrees

    packed = PackedTrees.from_trees(trees)
    return list(packed.trees(packed.native.find_heads(load_profile("english").native)))


def test_trees_are_scored_as_by_the_reference(tmp_path: Path) -> None:
    trees = sample_trees(12)
    model = small_headlex(tmp_path, trees, discount=0.5, precision="double")
    reference_model = ReferenceHeadlex(with_heads(trees))
    odd = trees_of(["(ROOT (QQQ (ZZ the) (NN week)) (NN the))"])
    wanted = [*trees[:5], *sample_trees(15)[12:], *odd]
    expected = [reference_model.log_prob(tree) for tree in with_heads(wanted)]
    assert model.tree_log_probs(wanted) == pytest.approx(expected, abs=1e-9)


def test_every_word_is_drawn_once() -> None:
    for tree in with_heads(sample_trees(30)):
        drawn = [outcome for kind, _, outcome in head_events(tree) if kind in ("top_word", "word")]
        assert sorted(drawn) == sorted(tree.words)


def test_threads_and_memory_change_nothing(tmp_path: Path) -> None:
    one = train_headlex(TreeCorpus((sample_path(),)), HeadlexConfig())
    many = train_headlex(
        TreeCorpus((sample_path(),), threads=3),
        HeadlexConfig(),
        run=Run(threads=3, memory=MemoryLimit(64 << 20, tmp_path)),
    )
    for name, array in one._tensors().items():
        assert np.array_equal(array, many._tensors()[name]), name


def test_saved_and_pickled_models_agree(tmp_path: Path) -> None:
    model = small_headlex(tmp_path, smoothing="mkn")
    trees = sample_trees(70)
    expected = model.tree_log_probs(trees)
    assert np.isfinite(expected).all()
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, HeadlexModel)
    assert (loaded.tree_log_probs(trees) == expected).all()
    assert (pickle.loads(pickle.dumps(model)).tree_log_probs(trees) == expected).all()
    assert loaded.unigram_counts.sum() == sum(len(tree.words) for tree in trees[:60]) + 60
    assert loaded.usual_tags(["the"]) == ["DT"]


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        HeadlexModel.make_config({"smoothing": "mkn", "discount": 0.5})


def load_config() -> Any:
    from treelm.models.treelet.config import TreeletConfig

    return TreeletConfig()
