"""Negatives drawn from a trigram model."""

from __future__ import annotations

import pytest
from tests.models.ngram_models import sample_sentences, small_ngram
from tests.models.toy_model import ToyModel

from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError
from treelm.models.ngram.model import NgramModel
from treelm.seeds import random_bits
from treelm.tasks.corrupt.trigram import TrigramNegatives


@pytest.fixture(scope="module")
def trigram() -> NgramModel:
    return small_ngram(order=3, smoothing="kn")


def test_negatives_are_the_first_fitting_draws(trigram: NgramModel) -> None:
    negatives = TrigramNegatives(trigram, seed=7, part="dev", min_words=8, max_words=12)
    found = list(negatives.draw(50))
    redraws = 0
    for index, sentence in enumerate(found):
        for attempt in range(1000):
            seed = random_bits(7, 1, attempt)
            (sample,) = trigram.sample(1, seed=seed, first=index, max_words=12)
            fits = sample.complete and len(sample.words) >= 8 and "<unk>" not in sample.words
            if fits:
                assert sentence == " ".join(sample.words)
                break
            redraws += 1
    assert sum(negatives.counts.redraws.values()) == redraws
    assert all(negatives.counts.redraws[reason] for reason in ("too_short", "too_long"))


def test_negatives_do_not_depend_on_how_they_are_drawn(trigram: NgramModel) -> None:
    whole = TrigramNegatives(trigram, seed=1)
    found = list(whole.draw(300))
    for block in (1, 7, 299):
        small = TrigramNegatives(trigram, seed=1, block=block)
        assert list(small.draw(300)) == found
        assert small.counts == whole.counts
    assert list(TrigramNegatives(trigram, seed=1).draw(10)) == found[:10]
    assert list(TrigramNegatives(trigram, seed=2).draw(300)) != found
    assert list(TrigramNegatives(trigram, seed=1, part="test").draw(300)) != found
    assert min(len(sentence.split()) for sentence in found) >= 5


def test_unknown_words_are_drawn_anew() -> None:
    vocabulary = Vocabulary.from_counts({"the": 9, "boat": 5}, signatures={"UNK-LC": 5})
    text = ["the boat", "the boat", "the rain", "the Rain", "boat the boat"]
    model = small_ngram(text, order=3, smoothing="kn", vocabulary=vocabulary)
    negatives = TrigramNegatives(model, min_words=1)
    words = {word for sentence in negatives.draw(50) for word in sentence.split()}
    assert words == {"the", "boat"}
    assert negatives.counts.redraws["unknown_word"] > 10


def test_negatives_of_the_corpus_and_duplicates_are_counted() -> None:
    text = ["a b c d e", "a b c d e", "a b x d e"]
    model = small_ngram(text, order=3, smoothing="kn")
    negatives = TrigramNegatives(model, seed=3)
    found = list(negatives.draw(200))
    assert negatives.counts.duplicates == 200 - len(set(found))
    expected = sum(sentence in text for sentence in found)
    assert negatives.look_up(sentence.split() for sentence in text) == expected > 0
    negatives.look_at_positives([("a", "b"), ("a", "q"), ("<unk>",)])
    summary = negatives.counts.summary()
    assert summary["in_corpus"] == expected
    assert summary["positives_with_unknown_word"] == 2
    assert summary["share_of_positives_with_unknown_word"] == pytest.approx(2 / 3)
    assert set(TrigramNegatives(model).counts.summary()) == {"sentences", "redraws", "duplicates"}


def test_any_model_that_samples_will_do() -> None:
    negatives = TrigramNegatives(ToyModel.of(sample_sentences()[:3]), min_words=3)
    assert all(len(sentence.split()) >= 3 for sentence in negatives.draw(5))


def test_what_cannot_be_is_refused(trigram: NgramModel) -> None:
    for options in ({"min_words": 0}, {"min_words": 9, "max_words": 8}, {"seed": -1}):
        with pytest.raises(UsageError):
            TrigramNegatives(trigram, **options)
    with pytest.raises(UsageError, match="part"):
        TrigramNegatives(trigram, part="held-out")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        list(TrigramNegatives(trigram).draw(-1))
    hopeless = TrigramNegatives(small_ngram(["a b"] * 3, order=3, smoothing="kn"), min_words=150)
    with pytest.raises(UsageError) as refused:
        list(hopeless.draw(1))
    assert refused.value.code == "E_REDRAWS"
