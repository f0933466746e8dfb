"""Pruned scores are lower bounds, floored ones are never impossible, and both say so."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.models.latent_models import QUICK, sample_corpus

from treelm.corpus.brackets import read_trees
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UnsupportedTask, UsageError
from treelm.models.interface.scoring_views import FlooredScores, PrunedScores
from treelm.models.ngram.arpa import read_arpa, write_arpa
from treelm.models.pcfg.model import PcfgModel
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.models.registry import load, train


@cache
def grammar() -> PcfgModel:
    model = train("pcfg", sample_corpus(), lexicon="closed")
    assert isinstance(model, PcfgModel)
    return model


@cache
def latent() -> PcfgLaModel:
    options = {**QUICK, "cycles": 2}
    return train_pcfg_la(
        sample_corpus(),
        PcfgLaConfig(seed=1, lexicon="closed", **options),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("model", [grammar, latent])
def test_pruned_scores_are_lower_bounds(model, sample_file: Path) -> None:  # type: ignore[no-untyped-def]
    model = model()
    sentences = [tree.words for tree in read_trees(sample_file)][:60]
    exact = model.sentence_log_probs(sentences)
    losses = []
    for pruning in ("accurate", "default", "fast"):
        view = model.pruned(pruning)
        found = list(view.score_many(sentences))
        assert {score.exactness for score in found} == {"lower_bound"}
        assert view.info.exactness == "lower_bound"
        values = np.array([score.log_prob for score in found])
        assert (values <= exact + 1e-4).all()
        losses.append(float((exact - values).sum()))
    assert losses[0] <= losses[1] + 1e-3
    assert losses[1] <= losses[2] + 1e-3
    assert losses[0] < 0.01 * len(sentences)


def test_an_empty_sentence_has_no_parse() -> None:
    for view in (grammar(), latent(), grammar().pruned(), latent().pruned()):
        score = next(iter(view.score_many([()])))
        assert score.log_prob == -math.inf
        assert score.fallback


def test_floors_make_everything_possible() -> None:
    model = grammar()
    view = FlooredScores(model, 0.01)
    exact = model.score("the boat left .").log_prob
    found = view.score("the boat left .")
    assert found.log_prob >= math.log(0.99) + exact
    assert not found.fallback
    empty = view.score("")
    assert empty.fallback
    counts = model.unigram_counts + 1.0
    assert empty.log_prob == pytest.approx(math.log(0.01 * counts[-1] / counts.sum()))
    bound = FlooredScores(model.pruned(), 0.01).score("the boat left .")
    assert bound.exactness == "lower_bound"
    assert bound.log_prob <= found.log_prob + 1e-4


def test_views_are_of_the_same_model(tmp_path: Path) -> None:
    model = grammar()
    view = FlooredScores(model.pruned("fast"))
    assert view.system == "pcfg"
    assert view.vocabulary is model.vocabulary
    assert view.corpora == model.corpora
    assert view.config is model.config
    view.save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model"), PcfgModel)


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    model = grammar()
    with pytest.raises(UsageError, match="fast, default or accurate"):
        PrunedScores(model, "none")
    with pytest.raises(UsageError, match="between 0 and 1"):
        FlooredScores(model, 1.0)
    with pytest.raises(UnsupportedTask, match="whole sentences"):
        model.pruned().score("the boat", eos=False)
    with pytest.raises(UnsupportedTask, match="whole sentences"):
        latent().score("the boat", eos=False)
    ngram = train("ngram", sample_corpus(), order=2)
    write_arpa(ngram, tmp_path / "model.arpa")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedTask) as caught:
        FlooredScores(read_arpa(tmp_path / "model.arpa"))
    assert caught.value.code == "E_NO_COUNTS"


def test_perplexity_says_how_exact_it_is(sample_file: Path) -> None:
    sentences = [tree.words for tree in read_trees(sample_file)][:30]
    exact = latent().perplexity(sentences, allow_overlap=True)
    assert (exact.exactness, exact.without_parse) == ("exact", 0)
    bound = latent().pruned("fast").perplexity(sentences, allow_overlap=True)
    assert bound.exactness == "lower_bound"
    assert bound.perplexity >= exact.perplexity - 1e-6
    words = grammar().perplexity(sentences, allow_overlap=True)
    assert words.exactness == "exact"
    assert words.perplexity_without_eos is not None
    lost = latent().perplexity([*sentences, ()], allow_overlap=True)
    assert (lost.perplexity, lost.without_parse) == (math.inf, 1)
    floored = FlooredScores(latent()).perplexity([*sentences, ()], allow_overlap=True)
    assert (math.isfinite(floored.perplexity), floored.without_parse) == (True, 1)
    assert "floor:0.001" in floored.signature
    assert "pruning:fast" in bound.signature


def test_words_of_a_closed_lexicon_add_up(sample_file: Path) -> None:
    vocabulary = Vocabulary.from_counts({"the": 9, "boat": 3, ".": 9})
    model = train("pcfg", sample_corpus(), lexicon="closed", vocabulary=vocabulary)
    assert isinstance(model, PcfgModel)
    model.lexicon.check_normalized()
    state = model.advance(model.initial(), "the").state
    assert float(np.exp(model.distribution(state)).sum()) == pytest.approx(1.0)
