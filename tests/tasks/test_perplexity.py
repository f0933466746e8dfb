"""Perplexity of texts."""

from __future__ import annotations

import math

import pytest
from tests.models.toy_model import SENTENCES, ToyModel, ToySentences

from treelm.errors import CorpusFormatError, UnsupportedTask
from treelm.models.interface.model import ModelInfo
from treelm.models.mixture.model import interpolate

HOUSES = ("the house", "the dog", "a house dog", "a dog")


def test_worked_example() -> None:
    model = ToyModel.of(HOUSES, added=0.0)
    found = model.perplexity(["the house"])
    # Two words and an end, 1/2 each.
    assert found.perplexity == pytest.approx(2.0)
    assert found.perplexity_without_eos == pytest.approx(2.0)
    assert found.bits_per_word == pytest.approx(1.0)
    assert found.log_prob == pytest.approx(-2.0794415416798357)
    assert (found.tokens, found.sentences, found.oov) == (2, 1, 0)


def test_perplexity_is_that_of_all_words_and_ends() -> None:
    model = ToyModel.of()
    text = [*SENTENCES, "the ship left", "ship ship"] * 300  # more than one batch
    found = model.perplexity(text)
    scores = [model.score(sentence) for sentence in text]
    words = [row for score in scores for row in score.words or ()]
    total = math.fsum(score.log_prob for score in scores)
    assert found.tokens == len(words)
    assert found.sentences == len(text)
    assert found.oov == 3 * 300
    assert found.oov_rate == pytest.approx(found.oov / found.tokens)
    assert found.perplexity == pytest.approx(math.exp(-total / (len(words) + len(text))))
    word_total = math.fsum(row.log_prob for row in words)
    assert found.perplexity_without_eos == pytest.approx(math.exp(-word_total / len(words)))


def test_unknown_words_can_be_left_out() -> None:
    model = ToyModel.of()
    found = model.perplexity(["the ship left"], oov_mode="skip")
    the, _, left = model.score("the ship left").words or ()
    end = model.score("the ship left").end or 0.0
    assert found.perplexity == pytest.approx(math.exp(-(the.log_prob + left.log_prob + end) / 3))
    assert found.perplexity_without_eos == pytest.approx(
        math.exp(-(the.log_prob + left.log_prob) / 2)
    )
    assert (found.tokens, found.oov, found.oov_mode) == (3, 1, "skip")
    unknown = model.perplexity(["ship"], oov_mode="skip")
    assert unknown.perplexity_without_eos is None


def test_impossible_text_has_infinite_perplexity() -> None:
    found = ToyModel.of(HOUSES, added=0.0).perplexity(["dog the", "the house"])
    assert found.perplexity == math.inf


def test_signature_says_what_made_the_number() -> None:
    model = ToyModel.of()
    name = model.perplexity(SENTENCES).signature
    vocabulary = model.vocabulary.fingerprint[:6]
    start = f"treelm|task:perplexity|sys:toy|train:ababab|order:2|vocab:{vocabulary}|eos:yes|oov:include"
    assert name.startswith(start)
    mixed = interpolate([model, model], [0.5, 0.5])
    assert "|sys:interpolated|train:ababab|" in mixed.perplexity(SENTENCES).signature


def test_whole_sentence_models_have_a_perplexity_but_none_of_words() -> None:
    model = ToyModel.of()
    whole, by_word = (
        each.perplexity([*SENTENCES, "the ship"]) for each in (ToySentences(model), model)
    )
    assert whole.perplexity == pytest.approx(by_word.perplexity)
    assert whole.perplexity_without_eos is None
    assert whole.oov == by_word.oov == 1
    with pytest.raises(UnsupportedTask) as caught:
        ToySentences(model).perplexity(SENTENCES, oov_mode="skip")
    assert caught.value.code == "E_NOT_INCREMENTAL"


def test_models_without_probabilities_are_refused() -> None:
    class Improper(ToyModel):
        @property
        def info(self) -> ModelInfo:
            return ModelInfo(exactness="margin", normalized=False, vocabulary="x")

    with pytest.raises(UnsupportedTask) as caught:
        Improper.of().perplexity(SENTENCES)
    assert caught.value.code == "E_NOT_NORMALIZED"


def test_empty_text_has_no_perplexity() -> None:
    with pytest.raises(CorpusFormatError) as caught:
        ToyModel.of().perplexity([])
    assert caught.value.code == "E_NO_DATA"
