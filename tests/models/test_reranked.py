"""Reranked parsers: the order of brute force, whatever the parser and the model of trees."""

from __future__ import annotations

import pickle
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from tests.models.latent_models import QUICK, sample_corpus, small_latent
from tests.models.ngram_models import small_ngram

from treelm.errors import UnsupportedTask, UsageError
from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.reranked import RerankedParser
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.models.registry import train

SENTENCES = [
    ("The", "old", "boat", "left", "the", "harbour", "."),
    ("Birds", "sing", "in", "the", "morning", "."),
    ("Open", "the", "door"),
]


@cache
def treelets() -> TreeScorer:
    made = train("treelet", sample_corpus())
    assert isinstance(made, TreeScorer)
    return made


@cache
def plain() -> TreeScorer:
    made = train("pcfg", sample_corpus())
    assert isinstance(made, TreeScorer)
    return made


@cache
def other_seed() -> TreeScorer:
    return train_pcfg_la(sample_corpus(), PcfgLaConfig(seed=2, **QUICK))  # type: ignore[arg-type]


def brute_force(
    parser: LanguageModel, reranker: TreeScorer, words: tuple[str, ...], weight: float, k: int
) -> list[tuple[float, str]]:
    """Return all trees of the parser's list by falling score, the parser's order among equals."""
    found = []
    for place, each in enumerate(parser.parse(words, k)):
        score = each.score + weight * float(reranker.tree_log_probs([each.tree])[0])
        found.append((-score, place, str(each.tree)))
    return [(-score, tree) for score, _, tree in sorted(found)]


@pytest.mark.parametrize("weight", [0.01, 0.75, 5.0])
@pytest.mark.parametrize("model", ["treelet", "pcfg"])
def test_reranking_gives_the_order_of_brute_force(weight: float, model: str) -> None:
    reranker = treelets() if model == "treelet" else plain()
    parser = small_latent()
    ranked = parser.with_reranker(reranker, weight=weight, k=20)
    for words in SENTENCES:
        expected = brute_force(parser, reranker, words, weight, 20)
        found = ranked.parse(words, 20)
        assert [str(each.tree) for each in found] == [tree for _, tree in expected]
        np.testing.assert_allclose([each.score for each in found], [s for s, _ in expected])
        assert all(a.score >= b.score for a, b in pairwise(found))


def test_several_models_multiply() -> None:
    parser = small_latent()
    weights = (0.3, 1.5, 0.6)
    others = (plain(), treelets(), other_seed())
    ranked = parser.with_reranker(*others, weight=weights, k=20)
    for words in SENTENCES:
        found = []
        for place, each in enumerate(parser.parse(words, 20)):
            values = [float(other.tree_log_probs([each.tree])[0]) for other in others]
            score = each.score + sum(w * value for w, value in zip(weights, values, strict=True))
            found.append((-score, place, str(each.tree)))
        assert [str(each.tree) for each in ranked.parse(words, 20)] == [
            t for *_, t in sorted(found)
        ]
        best = ranked.parse(words)[0].score
        assert best == pytest.approx(-min(found)[0])
    assert ranked.meaning_of_scores.count("natural log probability") == len(others)


def test_one_weight_is_that_of_all_models() -> None:
    some = small_latent().with_reranker(plain(), treelets(), weight=0.5, k=20)
    same = small_latent().with_reranker(plain(), treelets(), weight=[0.5, 0.5], k=20)
    assert some.weights == same.weights == (0.5, 0.5)
    assert some.parse(SENTENCES[0], 20) == same.parse(SENTENCES[0], 20)


def test_another_number_of_weights_than_of_models_is_refused() -> None:
    with pytest.raises(UsageError, match="2 models to rerank with and 3 weights"):
        small_latent().with_reranker(plain(), treelets(), weight=[0.5, 0.5, 1.0])
    with pytest.raises(UsageError, match="no model"):
        small_latent().with_reranker()


def test_trees_of_batches_have_the_probabilities_of_trees() -> None:
    lists = small_latent().k_best_many(SENTENCES, 7)
    trees = [each.tree for found in lists for each in found or ()]
    packed = [found.packed for found in lists if found is not None]
    for model in (plain(), treelets(), other_seed()):
        expected = model.tree_log_probs(trees)
        np.testing.assert_allclose(model.packed_log_probs(packed), expected, rtol=1e-12)


def test_fewer_trees_are_the_first_of_more() -> None:
    ranked = small_latent().with_reranker(treelets(), k=20)
    whole = ranked.k_best_many(SENTENCES, 20)
    for k in (1, 3):
        for some, all_of_them in zip(ranked.k_best_many(SENTENCES, k), whole, strict=True):
            assert isinstance(some, KBest)
            assert all_of_them is not None
            assert some[:] == all_of_them[:k]
    assert ranked.parse_many(SENTENCES) == [found[0] for found in whole if found]


def test_reranking_can_change_the_best_tree() -> None:
    parser = small_latent()
    ranked = parser.with_reranker(treelets(), weight=100.0, k=20)
    assert [each and each.tree for each in ranked.parse_many(SENTENCES)] != [
        each and each.tree for each in parser.parse_many(SENTENCES)
    ]


class Listing(PcfgLaModel):
    """A parser that gives lists of objects, as those of other packages may."""

    def k_best_many(self, sentences, k, *, options=None, threads=1):  # type: ignore[no-untyped-def]
        lists = super().k_best_many(sentences, k, options=options, threads=threads)
        return [list(found or ()) for found in lists]


def test_a_parser_that_lists_objects_is_reranked_alike() -> None:
    parser = object.__new__(Listing)
    parser.__dict__.update(small_latent().__dict__)
    sentences = [*SENTENCES, ()]
    expected = small_latent().with_reranker(treelets(), k=8).k_best_many(sentences, 5)
    found = parser.with_reranker(treelets(), k=8).k_best_many(sentences, 5)
    assert [list(each) for each in found if each is not None] == [
        list(each or ()) for each in expected
    ]


def test_sentences_without_words_and_with_too_many_keep_what_the_parser_gives() -> None:
    options = ParserOptions(max_words=3)
    sentences = [(), SENTENCES[0]]
    own = small_latent().k_best_many(sentences, 1, options=options)
    found = small_latent().with_reranker(treelets()).k_best_many(sentences, 1, options=options)
    assert found[0] is own[0] is None
    assert found[1] is not None
    assert own[1] is not None
    assert found[1][0].tree == own[1][0].tree
    assert found[1][0].is_fallback


def test_a_tree_that_the_reranker_cannot_derive_comes_last() -> None:
    class Choosy(type(plain())):  # type: ignore[misc]
        def tree_log_probs(self, trees, *, threads=1):  # type: ignore[no-untyped-def]
            del threads
            return np.where([str(tree) == first for tree in trees], -np.inf, -1.0)

    choosy = object.__new__(Choosy)
    choosy.__dict__.update(plain().__dict__)
    parser = small_latent()
    first = str(parser.parse(SENTENCES[0])[0].tree)
    found = parser.with_reranker(choosy, k=4).parse(SENTENCES[0], 4)
    assert [str(each.tree) == first for each in found] == [False, False, False, True]
    assert found[-1].score == -np.inf


def test_a_reranked_parser_scores_like_its_parser_and_travels() -> None:
    ranked = small_latent().with_reranker(treelets(), weight=0.5, k=9)
    assert ranked.score(SENTENCES[0]).log_prob == small_latent().score(SENTENCES[0]).log_prob
    again = pickle.loads(pickle.dumps(ranked))
    assert isinstance(again, RerankedParser)
    assert (again.weights, again.k) == ((0.5,), 9)
    assert again.parse(SENTENCES[1], 3) == ranked.parse(SENTENCES[1], 3)
    assert ranked.can(Task.PARSE)
    assert "0.5 times" in ranked.meaning_of_scores


@pytest.mark.parametrize("weight", [0.0, -1.0, np.inf, np.nan])
def test_impossible_weights_are_refused(weight: float) -> None:
    with pytest.raises(UsageError, match="weight"):
        small_latent().with_reranker(treelets(), weight=weight)


def test_what_does_not_parse_or_does_not_score_trees_is_refused() -> None:
    with pytest.raises(UnsupportedTask):
        treelets().with_reranker(small_latent())
    words = small_ngram()
    with pytest.raises(UnsupportedTask, match="give trees probabilities"):
        small_latent().with_reranker(words)
    sums = train("pcfg", sample_corpus(), decoding="max_rule_sum")
    with pytest.raises(UsageError, match="not logarithms"):
        sums.with_reranker(treelets())
