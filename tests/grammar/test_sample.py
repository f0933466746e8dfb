"""Sentences drawn from grammars come as often as their probabilities say."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from tests.grammar.small_grammars import make_grammar, make_lexicon
from tests.models.latent_models import QUICK, sample_corpus, small_latent

from treelm.errors import UnsupportedTask
from treelm.grammar.chart import ChartParser
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.sample import GrammarSampler
from treelm.models.pcfg.model import PcfgModel
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.models.registry import train

COUNT = 4000


def two_trees() -> tuple[Grammar, Lexicon]:
    """The grammar of the specification: four sentences of two words."""
    grammar = make_grammar(["ROOT", "A", "B"], 1, {}, {(0, 1, 2): 0.6, (0, 2, 1): 0.4})
    scores = {("a", 1): 0.7, ("b", 1): 0.3, ("a", 2): 0.5, ("b", 2): 0.5}
    return grammar, make_lexicon(grammar, scores, normalized=True)


def latent() -> tuple[Grammar, Lexicon]:
    """Subcategories decide which words go together, and how long sentences are."""
    grammar = make_grammar(
        ["ROOT", "@X", "X", "A"],
        3,
        {(0, 2): [0.5, 0.5], (1, 3): [1.0, 0.0], (2, 3): [0.4, 0.1, 0.0, 0.3]},
        {(2, 1, 3): [0.1, 0.4, 0.4, 0.3]},
        [1, 1, 2, 2],
        [[0, 1, 2, 2, 3, 3]],
    )
    return grammar, make_lexicon(
        grammar, {("a", 3): [0.9, 0.2], ("b", 3): [0.1, 0.8]}, normalized=True
    )


@pytest.mark.parametrize("case", [two_trees, latent])
def test_frequencies_are_probabilities(case) -> None:  # type: ignore[no-untyped-def]
    grammar, lexicon = case()
    sampler = GrammarSampler(grammar, lexicon)
    drawn = Counter(sampler.draw(7, number, 50)[1] for number in range(COUNT))
    exact = np.exp(ChartParser(grammar, lexicon).log_probs(list(drawn)))
    for (words, count), probability in zip(drawn.items(), exact.tolist(), strict=True):
        error = math.sqrt(probability * (1 - probability) / COUNT)
        assert abs(count / COUNT - probability) < 4.5 * error + 1e-9, words
    assert float(exact.sum()) == pytest.approx(1.0, abs=1e-6)


def test_trees_have_no_intermediate_nodes() -> None:
    grammar, lexicon = latent()
    sampler = GrammarSampler(grammar, lexicon)
    trees = {str(sampler.draw(1, number, 50)[0]) for number in range(200)}
    assert "(ROOT (X (A a)))" in trees
    assert "(ROOT (X (A a) (A b)))" in trees
    assert not any("@" in tree for tree in trees)


def test_a_sentence_depends_on_its_number_alone_and_long_ones_are_given_up() -> None:
    grammar = make_grammar(["ROOT", "X", "A"], 2, {(0, 1): 1.0, (1, 2): 0.4}, {(1, 1, 1): 0.6})
    sampler = GrammarSampler(grammar, make_lexicon(grammar, {("a", 2): 1.0}, normalized=True))
    results = [sampler.draw(3, number, 20) for number in range(100)]
    assert [sampler.draw(3, number, 20) for number in reversed(range(100))] == results[::-1]
    lost = [words for tree, words in results if tree is None]
    assert lost  # every third sentence or so never ends
    assert all(len(words) <= 20 for words in lost)
    assert {tree.words == words for tree, words in results if tree is not None} == {True}


@pytest.mark.parametrize("system", ["pcfg", "pcfg_la"])
def test_models_draw_what_they_then_find_possible(system: str) -> None:
    model: PcfgModel | PcfgLaModel
    if system == "pcfg":
        made = train("pcfg", sample_corpus(), lexicon="closed", vertical_order=2, merge_unary=True)
        assert isinstance(made, PcfgModel)
        model = made
    else:
        model = train_pcfg_la(
            sample_corpus(),
            PcfgLaConfig(seed=1, lexicon="closed", **{**QUICK, "cycles": 1}),  # type: ignore[arg-type]
        )
    samples = model.sample(30, seed=1, max_words=40)
    assert model.sample(5, seed=1, first=10, max_words=40) == samples[10:15]
    whole = [sample for sample in samples if sample.complete]
    assert len(whole) > 10
    sums = model.sentence_log_probs([sample.words for sample in whole])
    for sample, total in zip(whole, sums.tolist(), strict=True):
        assert sample.tree is not None
        assert sample.tree.words == sample.words
        assert str(sample.tree.label) == "ROOT"
        assert -math.inf < sample.log_prob <= total + 1e-9
    assert all(sample.tree is None for sample in samples if not sample.complete)


def test_an_open_lexicon_cannot_be_drawn_from() -> None:
    with pytest.raises(UnsupportedTask, match='lexicon="closed"') as caught:
        small_latent().sample(1, seed=0)
    assert caught.value.code == "E_NOT_NORMALIZED"
