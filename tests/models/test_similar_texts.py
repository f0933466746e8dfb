"""Texts that have much in common get the very scores that they get one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treelm
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import VocabularyError
from treelm.models.ngram.model import NgramModel

WORDS = [
    "the",
    "boat",
    "ferry",
    "was",
    "late",
    "harbour",
    "extraordinarily",
    "extraordinarixy",
    "a",
    ".",
]
#: Short and long ones, some with the same first letters, control characters, and other scripts.
ODD = [
    *WORDS,
    "zz",
    "zzgrumpf",
    "zzgrumph",
    "zzgrumpfest",
    "船",
    "caf\u00e9",
    "x\x01y",
    "x\x01",
    "12345678",
]


@pytest.fixture(scope="module")
def models() -> list[NgramModel]:
    sentences = [[word.lower() for word in tree.words] for tree in treelm.sample_treebank()]
    sentences += [["extraordinarily", "late", "."], ["zzgrumpf", "was", "12345678"]]
    known = Vocabulary.from_counts({word: 1 for sentence in sentences for word in sentence})
    made = treelm.train("ngram", sentences, order=4, vocabulary=known)
    assert isinstance(made, NgramModel)
    return [made, made.compacted(), made.with_oov_log_prob(-30.0)]


@given(
    st.lists(
        st.lists(st.lists(st.sampled_from(ODD), max_size=12), max_size=12),
        max_size=4,
    ),
    st.sampled_from([" ", "  ", "\t", " \n "]),
)
@settings(max_examples=80)
def test_similar_texts_have_the_scores_of_sentences(
    models: list[NgramModel], lists: list[list[list[str]]], space: str
) -> None:
    texts = [[space.join(words) for words in each] for each in lists]
    flat = [words for each in lists for words in each]
    for model in models:
        found = model.score_similar(texts)
        assert found.tolist() == model.sentence_log_probs(flat).tolist()


def test_similar_texts_begin_alike_in_every_way(models: list[NgramModel]) -> None:
    base = "the boat was extraordinarily late . the ferry was a boat"
    texts = [base[:stop] for stop in range(len(base) + 1)]
    texts += [base, base, f" {base} ", base.replace(" ", "  "), base[::-1]]
    for model in models:
        found = model.score_similar([texts])
        assert found.tolist() == model.sentence_log_probs(texts).tolist()


def test_similar_texts_that_are_no_strings_or_have_boundaries_are_looked_at_one_by_one(
    models: list[NgramModel],
) -> None:
    words = ["the", "boat"]
    found = models[0].score_similar([[words, tuple(words)], []])
    assert found.tolist() == models[0].sentence_log_probs([words, words]).tolist()
    with pytest.raises(VocabularyError):
        models[0].score_similar([["the boat", "the </s> boat"]])
