"""Mixtures of models, and how their weights are found."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.hhmm_cases import sample_model
from tests.models.ngram_models import small_ngram
from tests.models.toy_model import SENTENCES, TOY_SYSTEMS, ToyModel, ToySentences
from tests.models.tree_models import LEFT, RIGHT, SHORT, ListParser, NodeConfig, NodeModel
from tests.models.treelet_models import corpus_of

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import (
    EstimationError,
    ModelFileError,
    TreelmWarning,
    UnsupportedTask,
    UsageError,
    VocabularyError,
)
from treelm.models.interface.model import Task
from treelm.models.interface.states import Context
from treelm.models.mixture.config import InterpolatedConfig
from treelm.models.mixture.model import InterpolatedModel, InterpolatedSentences, interpolate
from treelm.models.mixture.train import fit_interpolation
from treelm.models.mixture.weights import check_weights, fit_weights
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.models.registry import SYSTEMS, load, train


@pytest.fixture(autouse=True)
def _toys_are_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    for system in TOY_SYSTEMS:
        monkeypatch.setitem(SYSTEMS, system.name, system)


def text_of(sentences: Iterable[str]) -> TextCorpus:
    return TextCorpus.of_sentences([sentence.split() for sentence in sentences])


def toys() -> tuple[ToyModel, ToyModel]:
    one = ToyModel.of()
    return one, ToyModel.of(["left the boat", "the harbour"], one.vocabulary, added=0.1)


def mixture(*weights: float) -> InterpolatedModel:
    found = interpolate(toys(), weights)
    assert isinstance(found, InterpolatedModel)
    return found


def test_worked_example_of_the_specification() -> None:
    half = ToyModel.of(["a", "b"], added=0.0)
    quarter = ToyModel.of(["a", "b", "b", "b"], half.vocabulary, added=0.0)
    mixed = interpolate([half, quarter], [0.5, 0.5])
    assert isinstance(mixed, InterpolatedModel)
    log_prob = mixed.advance(mixed.initial(), "a").log_prob
    assert log_prob == pytest.approx(-0.9808292530117262, abs=1e-15)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (1.0, 0.0), (0.25, 0.75)])
def test_every_word_is_a_weighted_sum(weights: tuple[float, float]) -> None:
    parts = toys()
    mixed = mixture(*weights)
    for sentence in (*SENTENCES, "", "the ship sank"):
        rows = [part.score_batch([sentence]).log_probs for part in parts]
        expected = np.log(sum(w * np.exp(row) for w, row in zip(weights, rows, strict=True)))
        assert mixed.score_batch([sentence]).log_probs == pytest.approx(expected)
        assert mixed.score(sentence).log_prob == pytest.approx(float(expected.sum()))


def test_zero_weights_and_impossible_words_give_no_nan() -> None:
    one = ToyModel.of(["a b"], added=0.0)
    two = ToyModel.of(["b a"], one.vocabulary, added=0.0)
    mixed = interpolate([one, two], [1.0, 0.0])
    assert mixed.score("b a").log_prob == -math.inf
    assert mixed.score("a b").log_prob == 0.0
    assert mixed.sentence_log_probs(["b a", "b b", "a b"]).tolist() == [-math.inf, -math.inf, 0.0]


def test_info_is_that_of_the_parts() -> None:
    mixed = mixture(0.5, 0.5)
    assert mixed.info.order == 2
    assert mixed.info.normalized
    assert mixed.info.exactness == "exact"
    assert len(mixed.corpora) == 1
    assert mixed.parts[0].system == "toy"


def test_estimate_mixes_what_the_parts_expect() -> None:
    class Expects(ToyModel):
        def estimate(self, words: object) -> float:
            return len(words) * math.log(0.5)  # type: ignore[arg-type]

    one = Expects.of()
    mixed = interpolate([one, ToyModel.of(vocabulary=one.vocabulary)], [0.5, 0.5])
    assert isinstance(mixed, InterpolatedModel)
    assert mixed.estimate("the boat") == pytest.approx(2 * math.log(0.75))
    assert mixed.estimate("") == 0.0


def test_contexts_are_those_of_the_parts() -> None:
    mixed = mixture(0.5, 0.5)
    state = mixed.score_phrase(mixed.initial(Context("news")), "the boat").state
    context = mixed.end_sentence(state)
    assert context == Context(parts=(Context(), Context()))
    assert mixed.initial(context) == mixed.initial()


@pytest.mark.parametrize(
    "weights", [(0.5,), (0.5, 0.6), (-0.5, 1.5), (math.nan, 1.0), (0.5, 0.5, 0.0), (math.inf, 0.0)]
)
def test_weights_off_the_simplex_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        interpolate(toys(), weights)
    assert caught.value.code == "E_WEIGHTS"


def test_weights_may_be_off_by_a_rounding_error() -> None:
    assert math.fsum(check_weights([0.3333333, 0.3333333, 0.3333333], 3)) == pytest.approx(
        1, abs=1e-15
    )


def test_models_of_different_words_are_refused() -> None:
    with pytest.raises(VocabularyError) as caught:
        interpolate([ToyModel.of(), ToyModel.of(["other words"])], [0.5, 0.5])
    assert caught.value.code == "E_VOCABULARY_MISMATCH"
    assert "Only the other knows: other words." in str(caught.value)
    with pytest.raises(UsageError, match="at least one"):
        interpolate([], [])


def test_mixture_survives_saving_and_pickling(tmp_path: Path) -> None:
    mixed = interpolate([mixture(0.5, 0.5), toys()[0]], [0.3, 0.7])
    assert isinstance(mixed, InterpolatedModel)
    mixed.save(tmp_path / "mixture")
    again = load(tmp_path / "mixture", verify=True)
    assert isinstance(again, InterpolatedModel)
    assert again.weights == mixed.weights
    assert (tmp_path / "mixture/parts/0/parts/1/manifest.json").is_file()
    state = mixed.score_phrase(mixed.initial(), "the old").state
    for other in (again, pickle.loads(pickle.dumps(mixed))):
        assert other.fingerprint == mixed.fingerprint
        assert other.finish(other.state_from_bytes(state.to_bytes())) == mixed.finish(state)


def test_states_of_other_mixtures_and_damaged_ones_are_refused() -> None:
    one, two = mixture(0.5, 0.5), mixture(0.4, 0.6)
    data = one.initial().to_bytes()
    with pytest.raises(UsageError) as caught:
        two.advance(one.initial(), "the")
    assert caught.value.code == "E_STATE_MODEL"
    for damaged in (data[:-1], data + b"\x01", data[:9]):
        with pytest.raises(UsageError) as caught:
            one.state_from_bytes(damaged)
        assert caught.value.code == "E_STATE_BYTES"


def test_mixture_with_damaged_weights_is_not_loaded(tmp_path: Path) -> None:
    mixture(0.5, 0.5).save(tmp_path / "mixture")
    manifest = tmp_path / "mixture/manifest.json"
    manifest.write_text(manifest.read_text().replace("0.5", "0.6", 1))
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path / "mixture")
    assert caught.value.code == "E_MANIFEST"


def test_whole_sentence_parts_make_a_mixture_of_sentences(tmp_path: Path) -> None:
    one, two = toys()
    mixed = interpolate([ToySentences(one), two], [0.25, 0.75])
    assert isinstance(mixed, InterpolatedSentences)
    scores = [part.score("the boat left").log_prob for part in (one, two)]
    expected = math.log(0.25 * math.exp(scores[0]) + 0.75 * math.exp(scores[1]))
    assert mixed.score("the boat left").log_prob == pytest.approx(expected)
    with pytest.raises(UnsupportedTask) as caught:
        mixed.initial()
    assert caught.value.code == "E_NOT_INCREMENTAL"
    mixed.save(tmp_path / "mixture")
    assert load(tmp_path / "mixture").score("the boat left").log_prob == pytest.approx(expected)
    with pytest.raises(UsageError, match="whole sentences only"):
        InterpolatedModel([ToySentences(one)], InterpolatedConfig(weights=(1.0,)))
    trained = train("interpolated", [ToySentences(one), two], held_out=text_of(SENTENCES))
    assert isinstance(trained, InterpolatedSentences)
    assert trained.weights[0] > 0.5


def trees_and_words() -> tuple[NodeModel, ToyModel]:
    """Return a model of trees whose parser lacks a tree of "b b", and one of the same words."""
    trees = NodeModel(NodeConfig()).with_parser(
        ListParser({"a b a": [LEFT, RIGHT], "a": [SHORT]}), k=10
    )
    return trees, ToyModel.of(["a b a", "a"], trees.vocabulary)


@pytest.mark.parametrize("weights", [(0.25, 0.75), (1.0, 0.0), (0.0, 1.0)])
def test_sentences_are_weighted_sums_with_the_trees_of_the_parts(
    weights: tuple[float, float],
) -> None:
    parts = trees_and_words()
    mixed = interpolate(parts, weights)
    assert isinstance(mixed, InterpolatedSentences)
    sentences = ["a b a", "a", "b b"] * 50  # more than a parser is given at once
    scores = list(mixed.score_many(sentences, threads=2))
    trees, words = (list(part.score_many(sentences)) for part in parts)
    for score, tree, word in zip(scores, trees, words, strict=True):
        expected = weights[0] * math.exp(tree.log_prob) + weights[1] * math.exp(word.log_prob)
        assert math.exp(score.log_prob) == pytest.approx(expected)
    counts = bool(weights[0])
    assert [score.trees for score in scores[:3]] == ([2, 1, 1] if counts else [None] * 3)
    assert [score.fallback for score in scores[:3]] == [False, False, counts]
    assert mixed.sums_over_trees is counts
    assert {score.exactness for score in scores} == {"lower_bound"}
    assert mixed.score("b b") == scores[2]
    values = mixed.sentence_log_probs(sentences, threads=2)
    assert values.tolist() == pytest.approx([score.log_prob for score in scores])


def test_trees_of_several_parts_add_up() -> None:
    trees, words = trees_and_words()
    mixed = interpolate([trees, words, trees.with_parser(trees.parser, 1)], [0.5, 0.25, 0.25])
    assert mixed.score("a b a").trees == 3
    nested = interpolate([mixed, words], [0.5, 0.5])
    assert (nested.score("a b a").trees, nested.score("b b").fallback) == (3, True)
    assert nested.sentences_at_once == 64


def test_parts_are_asked_in_batches_and_with_threads() -> None:
    asked: list[tuple[int, int]] = []

    class Watched(ToySentences):
        def score_many(self, sentences, *, eos=True, threads=1):  # type: ignore[no-untyped-def]
            given = list(sentences)
            asked.append((len(given), threads))
            return super().score_many(given, eos=eos, threads=threads)

    mixed = interpolate([Watched(ToyModel.of()), ToyModel.of()], [0.5, 0.5])
    assert len(list(mixed.score_many(SENTENCES * 10, threads=3))) == len(SENTENCES) * 10
    assert asked == [(len(SENTENCES) * 10, 3)]
    mixed.sentence_log_probs(list(SENTENCES), threads=2)
    assert asked[1:] == [(len(SENTENCES), 2)]


def test_sentences_without_a_parse_in_a_part_are_counted(tmp_path: Path) -> None:
    trees = ["(ROOT (S (A a) (B b)))", "(ROOT (S (A c) (B b)))"]
    grammar = train("pcfg", corpus_of(tmp_path, trees), lexicon="closed")
    ngram = ToyModel.of(["a b", "c b"], grammar.vocabulary)
    text = ["a b", "b a a"]
    assert grammar.perplexity(text).without_parse == 1
    mixed = interpolate([grammar, ngram], [0.5, 0.5])
    assert isinstance(mixed, InterpolatedModel)
    assert [score.fallback for score in mixed.score_many(text)] == [False, True]
    assert mixed.score(text[1]).fallback
    assert math.isfinite(mixed.score(text[1]).log_prob)
    assert mixed.perplexity(text).without_parse == 1
    assert interpolate([grammar, ngram], [0.0, 1.0]).perplexity(text).without_parse == 0
    sentences = interpolate([grammar.floored(), ngram], [0.5, 0.5])
    assert isinstance(sentences, InterpolatedSentences)
    assert sentences.perplexity(text).without_parse == 1


def test_surprisal_of_a_mixture_is_that_of_the_weighted_sum() -> None:
    parts = toys()
    rows = mixture(0.25, 0.75).surprisal("the boat left", eos=True)
    columns = [part.surprisal("the boat left", eos=True) for part in parts]
    for row, *own in zip(rows, *columns, strict=True):
        expected = 0.25 * 2 ** -own[0].surprisal + 0.75 * 2 ** -own[1].surprisal
        assert 2**-row.surprisal == pytest.approx(expected)


def test_parts_that_read_letters_get_words() -> None:
    hhmm = sample_model(depth=2, beam_width=50, observation="bayes")
    ngram = small_ngram(order=2, vocabulary=hhmm.vocabulary)
    mixed = interpolate([hhmm, ngram], [0.5, 0.5])
    assert isinstance(mixed, InterpolatedModel)
    for sentence in ("The zzzing ferry left .", "The zzzed ferry left ."):
        assert mixed.score(sentence).log_prob == pytest.approx(mixed.score_sentence(sentence))


def test_a_part_without_a_parser_keeps_the_mixture_from_scoring() -> None:
    trees, words = trees_and_words()
    mixed = interpolate([words, trees.without_parser()], [0.5, 0.5])
    assert not mixed.can(Task.SCORE)
    with pytest.raises(UnsupportedTask) as caught:
        mixed.score("a")
    assert caught.value.code == "E_NO_PARSER"


# -- weights --------------------------------------------------------------------------------


def test_trained_weights_are_no_worse_than_any_others() -> None:
    held_out = ("the boat left", "left the harbour", "the harbour")
    mixed = train("interpolated", toys(), held_out=text_of(held_out))
    assert isinstance(mixed, InterpolatedModel)
    best = sum(mixed.sentence_log_probs(held_out))
    assert mixed.config.log_likelihood == pytest.approx(best)
    for weight in np.linspace(0, 1, 21).tolist():
        other = mixture(weight, 1 - weight)
        assert sum(other.sentence_log_probs(held_out)) <= best + 1e-6


@given(
    st.lists(st.tuples(*[st.floats(1e-6, 1.0)] * 3), min_size=1, max_size=20).map(np.log),
)
def test_likelihood_never_falls(log_probs: np.ndarray) -> None:
    fit = fit_weights(log_probs)
    history = fit.log_likelihoods
    assert all(later >= earlier for earlier, later in pairwise(history))
    assert math.fsum(fit.weights) == pytest.approx(1.0)
    assert min(fit.weights) >= 0.0
    final = np.log(np.exp(log_probs) @ np.array(fit.weights)).sum()
    assert final == pytest.approx(history[-1])


def test_one_part_gets_all_the_weight() -> None:
    assert fit_weights(np.log(np.full((5, 1), 0.1))).weights == (1.0,)


def test_impossible_rows_count_nowhere() -> None:
    rows = np.array(
        [[-math.inf, -math.inf], [-1.0, -math.inf], [-math.inf, -2.0], [-1.0, -math.inf]]
    )
    fit = fit_weights(rows)
    assert fit.weights == pytest.approx((2 / 3, 1 / 3))
    assert math.isfinite(fit.log_likelihoods[-1])


def test_nothing_to_learn_from_is_refused() -> None:
    for rows in (np.zeros((0, 2)), np.full((3, 2), -math.inf)):
        with pytest.raises(EstimationError) as caught:
            fit_weights(rows)
        assert caught.value.code == "E_NO_DATA"
    with pytest.raises(EstimationError, match="NaN"):
        fit_weights(np.array([[math.nan, 0.0]]))
    with pytest.raises(EstimationError):
        fit_interpolation(toys(), [])


def test_a_mixture_counts_each_training_text_once(tmp_path: Path) -> None:
    texts = {"one": "a b\na\n", "two": "b b b\n"}
    vocabulary = Vocabulary.from_counts({"a": 2, "b": 4})
    models = {}
    for name, text in texts.items():
        path = tmp_path / f"{name}.txt"
        path.write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TreelmWarning)
            models[name] = train_ngram(
                TextCorpus((path,)), NgramConfig(order=2, smoothing="kn"), vocabulary=vocabulary
            )
    both = interpolate([models["one"], models["two"], models["one"]], [0.5, 0.25, 0.25])
    assert both.unigram_counts is not None
    by_symbol = dict(zip([*vocabulary.symbols, "</s>"], both.unigram_counts.tolist(), strict=True))
    assert by_symbol == {"<unk>": 0, "a": 2, "b": 4, "</s>": 3}
