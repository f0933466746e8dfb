"""Parsers that decide together: the trees of all, by brute force."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from tests.models.latent_models import QUICK, sample_corpus, small_latent
from tests.models.ngram_models import small_ngram

from treelm.errors import UnsupportedTask, UsageError
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.consensus import ConsensusParser, expected_f1
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.models.registry import train
from treelm.tasks.evaluate.parse_accuracy import score_parse

SENTENCES = [
    ("The", "old", "boat", "left", "the", "harbour", "."),
    ("Birds", "sing", "in", "the", "morning", "."),
    ("Open", "the", "door"),
]


@cache
def other_seed() -> PcfgLaModel:
    return train_pcfg_la(sample_corpus(), PcfgLaConfig(seed=2, **QUICK))  # type: ignore[arg-type]


@cache
def treelets() -> TreeScorer:
    made = train("treelet", sample_corpus())
    assert isinstance(made, TreeScorer)
    return made


def test_expected_f1_is_the_mean_over_trees_of_what_evaluation_counts() -> None:
    trees = [each.tree for each in small_latent().parse(SENTENCES[2], 12)]
    shares = np.random.default_rng(1).dirichlet(np.ones(len(trees)))
    found = expected_f1(trees, np.log(shares))
    for tree, value in zip(trees, found.tolist(), strict=True):
        # The root, which evaluation leaves out, is common to all of them.
        pairs = [score_parse(other, tree) for other in trees]
        matched = sum(s * (pair.matched + 1) for s, pair in zip(shares, pairs, strict=True))
        gold = sum(s * (pair.gold + 1) for s, pair in zip(shares, pairs, strict=True))
        assert value == pytest.approx(2 * matched / (gold + pairs[0].guessed + 1))


def test_a_tree_that_is_certain_has_an_f1_of_one() -> None:
    trees = [each.tree for each in small_latent().parse(SENTENCES[0], 5)]
    certain = np.array([0.0, -np.inf, -np.inf, -np.inf, -np.inf])
    assert expected_f1(trees, certain)[0] == 1.0
    assert expected_f1(trees, np.full(5, -np.inf)) == pytest.approx(expected_f1(trees, np.zeros(5)))


def test_all_parsers_propose_and_all_models_score() -> None:
    parser, others, weights = small_latent(), (other_seed(), treelets()), (0.5, 2.0)
    made = parser.with_consensus(*others, weight=weights, k=6)
    proposed = 0
    for words in SENTENCES:
        lists = [model.parse(words, 6) for model in (parser, other_seed())]
        trees = list(dict.fromkeys(each.tree for found in lists for each in found))
        proposed += len(trees)
        log_probs = sum(
            weight * model.tree_log_probs(trees)
            for weight, model in zip((1.0, *weights), (parser, *others), strict=True)
        )
        values = expected_f1(trees, 0.75 * log_probs / 3.5)
        found = made.parse(words, 6)
        np.testing.assert_allclose([each.score for each in found], np.sort(values)[::-1][:6])
        for each in found:
            assert values[trees.index(each.tree)] == pytest.approx(each.score)
        assert made.parse(words)[0].tree == found[0].tree
    assert proposed > 6 * len(SENTENCES)


def test_with_itself_a_parser_proposes_nothing_else() -> None:
    made = small_latent().with_consensus(small_latent(), k=4)
    own = {each.tree for each in small_latent().parse(SENTENCES[0], 4)}
    assert {each.tree for each in made.parse(SENTENCES[0], 4)} == own


def test_sentences_without_a_parse_keep_what_the_parser_gives() -> None:
    options = ParserOptions(max_words=3, long="flat")
    made = small_latent().with_consensus(other_seed())
    found = made.k_best_many([(), SENTENCES[0]], 1, options=options)
    own = small_latent().k_best_many([(), SENTENCES[0]], 1, options=options)
    assert found[0] is None
    assert found[1] is not None
    assert own[1] is not None
    assert found[1][0].tree == own[1][0].tree
    assert found[1][0].is_fallback


def test_a_tree_that_a_model_cannot_derive_comes_last() -> None:
    first = small_latent().parse(SENTENCES[0])[0].tree

    class Choosy(type(treelets())):  # type: ignore[misc]
        def packed_log_probs(self, batches, *, threads=1):  # type: ignore[no-untyped-def]
            del threads
            trees = [tree for batch in batches for tree in batch]
            return np.where([tree == first for tree in trees], -np.inf, -1.0)

    choosy = object.__new__(Choosy)
    choosy.__dict__.update(treelets().__dict__)
    found = small_latent().with_consensus(choosy, k=4).parse(SENTENCES[0], 4)
    assert [each.tree == first for each in found] == [False, False, False, True]


def test_it_travels_and_says_what_scores_are() -> None:
    made = small_latent().with_consensus(other_seed(), treelets(), k=5)
    again = pickle.loads(pickle.dumps(made))
    assert isinstance(again, ConsensusParser)
    assert again.weights == (1.0, 1.0, 1.0)
    assert again.parse(SENTENCES[1], 3) == made.parse(SENTENCES[1], 3)
    assert "expected F1 in the opinion of 3 models" in made.meaning_of_scores


def test_impossible_uses_are_refused() -> None:
    with pytest.raises(UsageError, match="weight"):
        small_latent().with_consensus(treelets(), weight=-1.0)
    with pytest.raises(UsageError, match="no model"):
        small_latent().with_consensus()
    with pytest.raises(UnsupportedTask, match="give trees probabilities"):
        small_latent().with_consensus(small_ngram())
