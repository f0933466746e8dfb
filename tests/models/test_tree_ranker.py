"""Rankers of trees: features of the kernel, learning, choosing, and parsers that they help."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.latent_models import small_latent

from treelm import _native
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_treebank
from treelm.errors import EstimationError, ModelFileError, UnsupportedTask, UsageError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.registry import load, train
from treelm.models.run import Event, Run
from treelm.models.tree_features.rerank import rerank_features
from treelm.models.tree_ranker.config import GRID, TreeRankerConfig
from treelm.models.tree_ranker.lists import RankedLists
from treelm.models.tree_ranker.model import TreeRankerModel
from treelm.models.tree_ranker.train import Attempt, train_tree_ranker
from treelm.tasks.evaluate.parse_accuracy import score_parse
from treelm.testing.strategies import trees as random_trees
from treelm.trees.counted_brackets import bracket_counts
from treelm.trees.heads import find_heads_all
from treelm.trees.packed import PackedTrees
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

TREES = list(sample_treebank())
SENTENCE = "The old boat left the harbour ."
#: What all trees of a sentence share is not among the features of the kernel.
WORDS_ALONE = ("word ", "ww ", "www ", "w-w ", "w--w ")
PROFILE = load_profile("english")


def hashes(trees: Sequence[Tree]) -> list[Counter[int]]:
    starts, found = _native.rank_features(PackedTrees.from_trees(trees).native, PROFILE.native)
    bounds = starts.tolist()
    return [Counter(found[first:last].tolist()) for first, last in itertools.pairwise(bounds)]


def named(tree: Tree) -> Counter[int]:
    """Return the features by the definition in Python, with the names hashed."""
    found: Counter[int] = Counter()
    for name, count in rerank_features(tree).items():
        if not name.startswith(WORDS_ALONE):
            found[_native.rank_feature_hash(name)] += count
    return found


@cache
def grammar() -> LanguageModel:
    return train("pcfg", TREES[:250])


@cache
def ranker() -> TreeRankerModel:
    made = train("tree_ranker", TREES[:250], parser=grammar(), k=10, folds=3, min_sentences=2)
    assert isinstance(made, TreeRankerModel)
    return made


def test_features_are_those_of_the_definition() -> None:
    expected = [named(tree) for tree in find_heads_all(TREES)]
    assert hashes(TREES) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(random_trees(), min_size=1, max_size=4))
def test_features_of_any_tree_are_those_of_the_definition(trees: list[Tree]) -> None:
    assert hashes(trees) == [named(tree) for tree in find_heads_all(trees)]


def test_brackets_of_many_trees_are_counted_as_those_of_each() -> None:
    parser = small_latent()
    for gold in TREES[:40]:
        guesses = [each.tree for each in parser.parse(gold.words, 8)]
        guessed, matched = bracket_counts(gold, PackedTrees.from_trees(guesses), PROFILE)
        scores = [score_parse(gold, guess) for guess in guesses]
        assert guessed.tolist() == [score.guessed for score in scores]
        assert matched.tolist() == [score.matched for score in scores]


def small_lists(threads: int = 1) -> tuple[RankedLists, np.ndarray]:
    lists = RankedLists(PROFILE, threads)
    for gold in TREES[:60]:
        lists.add(gold, grammar().parse(gold.words, 6))
    features = lists.frequent(2)
    lists.keep(features)
    return lists, features


def test_gradient_is_the_slope_of_the_loss() -> None:
    lists, features = small_lists()
    random = np.random.default_rng(1)
    weights = random.normal(size=len(features)) / 10
    loss, slope = lists.loss(weights)
    assert loss > 0
    for place in random.choice(len(features), 12, replace=False):
        moved = np.zeros(len(features))
        moved[place] = 1e-5
        numeric = (lists.loss(weights + moved)[0] - lists.loss(weights - moved)[0]) / 2e-5
        assert slope[place] == pytest.approx(numeric, abs=1e-5)


def test_fitted_weights_are_a_minimum() -> None:
    lists, features = small_lists()
    weights = lists.fit(np.zeros(len(features)), 1.0, 200)

    def objective(at: np.ndarray) -> float:
        return lists.loss(at)[0] + 0.5 * float(at @ at)

    least = objective(weights)
    assert least < objective(np.zeros(len(features)))
    random = np.random.default_rng(2)
    for _ in range(10):
        away = random.normal(size=len(features)) * 0.02
        assert objective(weights + away) > least
    slope = lists.loss(weights)[1] + weights
    assert np.abs(slope).max() < 1e-2


def test_threads_change_nothing() -> None:
    (one, features), (three, same) = small_lists(), small_lists(3)
    assert (features == same).all()
    weights = np.linspace(-1, 1, len(features))
    assert one.loss(weights)[0] == three.loss(weights)[0]
    assert (one.loss(weights)[1] == three.loss(weights)[1]).all()
    assert (one.fit(weights, 1.0, 5) == three.fit(weights, 1.0, 5)).all()
    found = ranker().tree_ranks(TREES[:50], threads=3)
    assert (found == ranker().tree_ranks(TREES[:50])).all()


def test_ranker_learns_to_choose_better_trees() -> None:
    lists, features = small_lists()
    weights = lists.fit(np.zeros(len(features)), 0.3, 100)
    assert lists.f1(weights) > lists.f1() + 0.01
    assert lists.f1(np.zeros(len(features))) == lists.f1()


def test_training_tells_what_each_regularization_gave() -> None:
    events: list[object] = []
    run = Run(event=lambda event: events.append(event.value))
    config = TreeRankerConfig(k=5, folds=2, min_sentences=2, iterations=10)
    made = train_tree_ranker(
        TreeCorpus.of_trees([*TREES, *TREES]), config, parser=grammar(), run=run
    )
    tried = [each for each in events if isinstance(each, Attempt)]
    assert [each.regularization for each in tried] == sorted(GRID, reverse=True)
    best = min(tried, key=lambda each: each.tuning_loss)
    assert made.config.regularization == best.regularization
    assert made.f1[1] == best.f1 > 0.5


def test_ranks_are_sums_of_named_weights() -> None:
    found = grammar().parse(SENTENCE, 10)
    ranks = ranker().tree_ranks([each.tree for each in found])
    for each, rank in zip(found, ranks.tolist(), strict=True):
        assert sum(ranker().weights_of(each.tree).values()) == pytest.approx(rank, abs=1e-5)
    assert len(set(ranks.round(6).tolist())) > 1


def test_ranked_parser_gives_the_order_of_brute_force() -> None:
    found = grammar().parse(SENTENCE, 10)
    ranks = ranker().tree_ranks([each.tree for each in found]).tolist()
    expected = sorted(
        ((each.score + rank, str(each.tree)) for each, rank in zip(found, ranks, strict=True)),
        reverse=True,
    )
    own = ranker().parse(SENTENCE, 10)
    assert [str(each.tree) for each in own] == [tree for _, tree in expected]
    np.testing.assert_allclose([each.score for each in own], [score for score, _ in expected])
    beside = grammar().with_reranker(ranker(), k=10)
    assert [each.score for each in beside.parse(SENTENCE, 10)] == [each.score for each in own]
    doubled = grammar().with_reranker(ranker(), weight=2.0, k=10)
    assert doubled.parse(SENTENCE)[0].score == pytest.approx(
        max(each.score + 2 * rank for each, rank in zip(found, ranks, strict=True))
    )
    assert ranker().score(SENTENCE).log_prob == grammar().score(SENTENCE).log_prob


def test_rankers_join_a_consensus_without_proposing_trees() -> None:
    parsers = (small_latent(), grammar())
    proposed = {str(each.tree) for parser in parsers for each in parser.parse(SENTENCE, 10)}
    ranks = {tree: ranker().tree_ranks([Tree.from_string(tree)])[0] for tree in proposed}
    joined = small_latent().with_consensus(grammar(), ranker(), k=10)
    assert {str(each.tree) for each in joined.parse(SENTENCE, 10)} <= proposed
    strong = small_latent().with_consensus(grammar(), ranker(), weight=[1.0, 50.0], k=10)
    assert ranks[str(strong.parse(SENTENCE)[0].tree)] == pytest.approx(max(ranks.values()))


def test_folder_and_pickle(tmp_path: Path) -> None:
    ranker().save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(ranker()))):
        assert isinstance(again, TreeRankerModel)
        assert again.f1 == ranker().f1
        assert (again.tree_ranks(TREES[:20]) == ranker().tree_ranks(TREES[:20])).all()
        assert again.parse(SENTENCE) == ranker().parse(SENTENCE)


def test_a_ranker_without_a_parser_ranks_the_trees_of_others(tmp_path: Path) -> None:
    alone = ranker().without_parser()
    assert alone.abilities == ()
    with pytest.raises(UnsupportedTask, match="has no parser") as error:
        alone.parse(SENTENCE)
    assert error.value.code == "E_NO_PARSER"
    alone.save(tmp_path / "alone")
    again = load(tmp_path / "alone")
    assert small_latent().with_reranker(again).parse(SENTENCE)
    assert again.with_parser(grammar()).can(Task.PARSE)


def test_impossible_trainings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be a model folder"):
        train("tree_ranker", TREES[:20], parser=_Parser())
    with pytest.raises(UnsupportedTask, match="do not parse"):
        train(
            "tree_ranker",
            TREES[:20],
            parser=train("ngram", [tree.words for tree in TREES], order=2),
        )
    one = Tree.from_string("(ROOT (NP (NN rain)))")
    with pytest.raises(EstimationError, match="nothing to learn") as error:
        train("tree_ranker", [one, one], parser=train("pcfg", [one]), folds=1)
    assert error.value.code == "E_NO_DATA"


class _Parser:
    def parse(self, sentence: object, k: int = 1) -> list[object]:
        del sentence, k
        return []


def test_features_that_do_not_fit_their_weights_are_refused() -> None:
    made = ranker()

    def ranker_of(features: np.ndarray, weights: np.ndarray) -> TreeRankerModel:
        return TreeRankerModel(features, weights, made.config, vocabulary=made.vocabulary)

    with pytest.raises(EstimationError, match="must ascend"):
        ranker_of(made.features[::-1].copy(), made.weights)
    with pytest.raises(EstimationError, match="not every feature has a weight"):
        ranker_of(made.features, made.weights[:-1].copy())


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    ranker().save(tmp_path / "model")
    file = tmp_path / "model" / "tables.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_a_training_that_was_stopped_is_resumed_to_the_same_model(tmp_path: Path) -> None:
    config = TreeRankerConfig(k=4, folds=3, min_sentences=2, iterations=5, regularization=1.0)
    corpus = TreeCorpus.of_trees(TREES[:120])

    def trained(**how: object) -> TreeRankerModel:
        run = Run(checkpoint=tmp_path / "work", **how)  # type: ignore[arg-type]
        return train_tree_ranker(corpus, config, parser=grammar(), run=run)

    def stop(event: Event) -> None:
        raise KeyboardInterrupt

    expected = train_tree_ranker(corpus, config, parser=grammar())
    with pytest.raises(KeyboardInterrupt):
        trained(event=stop)  # all parts are parsed
    files = sorted((tmp_path / "work").glob("*.forest"))
    assert [file.name for file in files] == ["part-1.forest", "part-2.forest", "part-3.forest"]
    files[1].write_bytes(files[1].read_bytes()[:-40])  # as a kill leaves it
    files[2].unlink()
    before = files[0].stat()
    found = trained(resume=True)
    assert files[0].stat().st_mtime_ns == before.st_mtime_ns
    for made in (found, trained(resume=True), trained()):
        assert (made.features == expected.features).all()
        assert (made.weights == expected.weights).all()
    run = Run(checkpoint=tmp_path / "work", resume=True)
    with pytest.raises(UsageError, match="another training") as error:
        train_tree_ranker(TreeCorpus.of_trees(TREES[:100]), config, parser=grammar(), run=run)
    assert error.value.code == "E_CHECKPOINT"
