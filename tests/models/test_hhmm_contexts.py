"""HHMMs that remember words, against the definition of their steps."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.hhmm_cases import sample_model
from tests.reference.hhmm_steps import ReferenceHhmm

import treelm
from treelm.corpus.corpus import TreeCorpus
from treelm.errors import EstimationError, ModelFileError, UsageError
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.train import train_hhmm

LENGTHS = [(1, 0), (2, 0), (0, 1), (2, 2), (1, 3), (4, 4)]

pytestmark = pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")


def small_trees(numbers: list[int]) -> TreeCorpus:
    """Return some of the shorter trees of the sample."""
    short = [tree for tree in treelm.sample_treebank() if len(tree.words) <= 9]
    return TreeCorpus.of_trees([short[number % len(short)] for number in numbers])


def exact(corpus: TreeCorpus, words: int, tags: int, **options: object) -> HhmmModel:
    """Return a model in which nothing is pruned or rounded."""
    config = {
        "depth": 3,
        "beam_width": None,
        "robust_epsilon": 0.0,
        "precision": "exact",
        "min_count": 1,
        "word_context": words,
        "tag_context": tags,
        **options,
    }
    return train_hhmm(corpus, HhmmConfig.model_validate(config))


@pytest.mark.parametrize(("words", "tags"), LENGTHS)
@given(st.lists(st.integers(0, 60), min_size=3, max_size=6))
@settings(max_examples=4, deadline=None)
def test_hhmm_contexts_follow_the_definition(words: int, tags: int, numbers: list[int]) -> None:
    corpus = small_trees(numbers)
    model = exact(corpus, words, tags)
    for tree in list(corpus)[:2]:
        ids = list(map(int, model.word_ids.sentence(tree.words)))
        masses = ReferenceHhmm(model).read(ids)
        logs = model.score_batch([tree.words]).log_probs
        np.testing.assert_allclose(np.exp(np.cumsum(logs)), masses, rtol=1e-9)
        best = model.parse(tree.words)[0]
        expected = ReferenceHhmm(model, max).read(ids)[-1]
        assert np.exp(best.tree_log_prob) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("words", "tags"), LENGTHS)
def test_hhmm_contexts_distributions_sum_to_one(words: int, tags: int) -> None:
    model = exact(small_trees(list(range(20))), words, tags, robust_epsilon=1e-4)
    state = model.initial()
    for word in ["The", "old", "zebra", "left"]:
        log_probs = model.distribution(state)
        assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-9)
        step = model.advance(state, word)
        known = model.word_ids.word(word, first=state.initial)
        assert step.log_prob == pytest.approx(log_probs[known], abs=1e-9)
        assert sum(model.next_tags(state).values()) == pytest.approx(1, abs=1e-9)
        state = step.state


def words_model(**options: object) -> HhmmModel:
    """Return a model of the sample that remembers two words."""
    return sample_model(word_context=2, tag_context=1, beam_width=50, **options)


def test_hhmm_contexts_scores_are_those_of_steps_whatever_the_threads() -> None:
    model = words_model()
    sentences = [tree.words for tree in list(treelm.sample_treebank())[:12]]
    scores = model.score_batch(sentences)
    assert (model.score_batch(sentences, threads=3).log_probs == scores.log_probs).all()
    steps = []
    for words in sentences:
        state = model.initial()
        for word in words:
            log_prob, state = model.advance(state, word)
            steps.append(log_prob)
        steps.append(model.finish(state))
    np.testing.assert_allclose(scores.log_probs, steps, rtol=0, atol=1e-12)
    for one, three in zip(
        model.parse_many(sentences), model.parse_many(sentences, threads=3), strict=True
    ):
        assert one is not None
        assert three is not None
        assert (str(one.tree), one.score) == (str(three.tree), three.score)


def test_hhmm_contexts_states_remember_words() -> None:
    model = words_model()
    one, two = (
        model.advance(model.advance(model.initial(), first).state, "harbour").state
        for first in ("The", "the")
    )
    assert one != two
    assert model.key(one) != model.key(two)
    for state in (model.initial(), one):
        assert model.state_from_bytes(state.to_bytes()) == state
        assert pickle.loads(pickle.dumps(state)) == state
    other = sample_model(word_context=1, tag_context=1, beam_width=50)
    with pytest.raises(UsageError):
        other.advance(one, "left")


def test_hhmm_contexts_survive_the_model_folder(tmp_path: Path) -> None:
    model = words_model(context_min_count=2)
    model.save(tmp_path / "model")
    loaded = treelm.load(tmp_path / "model")
    assert isinstance(loaded, HhmmModel)
    assert loaded.fingerprint == model.fingerprint
    sentences = [tree.words for tree in list(treelm.sample_treebank())[:5]]
    expected = model.score_batch(sentences).log_probs
    assert (loaded.score_batch(sentences).log_probs == expected).all()
    assert (pickle.loads(pickle.dumps(model)).score_batch(sentences).log_probs == expected).all()


def test_hhmm_contexts_of_other_options_are_refused(tmp_path: Path) -> None:
    words_model().save(tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    text = manifest.read_text()
    assert '"word_context": 2' in text
    for other in ("1", "3"):
        manifest.write_text(text.replace('"word_context": 2', f'"word_context": {other}'))
        with pytest.raises(ModelFileError):
            treelm.load(tmp_path / "model")


def test_hhmm_contexts_cannot_remember_words_without_ids() -> None:
    with pytest.raises(UsageError, match="observation bayes"):
        treelm.train("hhmm", treelm.sample_treebank(), observation="bayes", word_context=1)


def test_hhmm_contexts_predict_words_better() -> None:
    trees = list(treelm.sample_treebank())
    train, held_out = trees[: len(trees) * 4 // 5], trees[len(trees) * 4 // 5 :]
    sentences = [tree.words for tree in held_out]
    bits = [
        treelm.train("hhmm", train, beam_width=100, **options).score_batch(sentences).bits().mean()
        for options in ({}, {"word_context": 1}, {"word_context": 1, "tag_context": 1})
    ]
    assert bits[0] > bits[1] > bits[2]


def test_hhmm_leaves_out_rare_rules() -> None:
    whole, cut = (sample_model(rule_min_count=least) for least in (1, 3))
    assert len(cut.tables.rules.rules) < len(whole.tables.rules.rules) / 2
    assert len(cut.tables.rules.symbols) < len(whole.tables.rules.symbols)
    cut.tables.check()
    state = cut.initial()
    for word in ["The", "old", "ferry"]:
        assert np.exp(cut.distribution(state)).sum() == pytest.approx(1, abs=1e-6)
        state = cut.advance(state, word).state
    with pytest.raises(EstimationError, match="rule_min_count"):
        sample_model(rule_min_count=10**6)
    counted = sample_model(rule_min_count=3, estimation="counts", word_context=1)
    assert np.exp(counted.distribution(counted.initial())).sum() == pytest.approx(1, abs=1e-6)


def test_hhmm_with_agreement_parses_into_plain_labels() -> None:
    model = sample_model(annotation="agreement", word_context=1, beam_width=100)
    assert any("NP^pl" in name for name in model.tables.rules.symbols)
    for tree in list(treelm.sample_treebank())[:10]:
        parsed = model.parse(tree.words)[0].tree
        assert parsed.words == tree.words
        assert "^" not in str(parsed)
    with pytest.raises(UsageError, match="vertical_order"):
        treelm.train("hhmm", treelm.sample_treebank(), annotation="agreement", vertical_order=2)
