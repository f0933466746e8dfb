"""The n-gram model around its table; the table itself is tested with the estimators."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from tests.models.ngram_models import sample_sentences, small_ngram

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError, UsageError, VocabularyError
from treelm.models.interface.states import pack_numbers, state_bytes
from treelm.models.ngram.arpa import read_arpa
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.state import NgramState
from treelm.models.ngram.train import train_ngram
from treelm.models.registry import load
from treelm.store.folder import save_folder


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return small_ngram(order=3)


def test_unigram_counts_are_those_of_the_text(model: NgramModel) -> None:
    sentences = sample_sentences()
    words = [word for sentence in sentences for word in sentence.split()]
    assert int(model.unigram_counts[-1]) == len(sentences)
    assert int(model.unigram_counts.sum()) == len(words) + len(sentences)
    the = model.vocabulary.symbols.index("the")
    assert int(model.unigram_counts[the]) == words.count("the")
    (record,) = model.corpora
    assert (record.sentences, record.tokens) == (len(sentences), len(words))


def test_states_keep_no_more_words_than_the_table_knows(model: NgramModel) -> None:
    start = model.initial()
    unseen = model.score_phrase(start, "frumious Bandersnatch").state
    assert unseen == model.score_phrase(start, "vorpal Bandersnatch").state
    assert model.key(unseen) == model.key(model.score_phrase(start, "a b c frumious").state)
    the = model.score_phrase(start, "Bandersnatch the").state
    assert len(getattr(the, "context")) == 1  # noqa: B009 (states are opaque to their type)


def test_states_of_unigrams_are_all_the_same() -> None:
    model = small_ngram(["a b", "b c"] * 3, order=1)
    assert model.initial() == model.score_phrase(model.initial(), "a b c").state


def test_first_word_may_have_another_signature() -> None:
    vocabulary = Vocabulary.from_counts(
        {"boat": 2, "the": 1}, signatures={"UNK-INITC": 1, "UNK-CAPS": 5, "UNK-LC": 1}
    )
    text = ["Ruth saw the boat", "the boat saw Ruth Ruth"] * 4
    for order in (1, 2, 3):
        model = small_ngram(text, order=order, vocabulary=vocabulary)
        first, later = model.score("Ruth Ruth").words or ()
        step = model.advance(model.initial(), "Ruth")
        assert step.log_prob == first.log_prob
        assert model.advance(step.state, "Ruth").log_prob == later.log_prob
        assert first.log_prob != later.log_prob


def test_estimate_is_unigram_bigram_and_so_on(model: NgramModel) -> None:
    the = model.advance(model.score_phrase(model.initial(), "Bandersnatch").state, "the")
    bigram = model.advance(the.state, "old")
    assert model.estimate("the") == pytest.approx(the.log_prob)
    assert model.estimate("the old") == pytest.approx(the.log_prob + bigram.log_prob)
    third = model.advance(bigram.state, "ferry")
    expected = the.log_prob + bigram.log_prob + third.log_prob
    assert model.estimate("the old ferry") == pytest.approx(expected)
    assert model.estimate("") == 0.0
    assert model.estimate(["the"]) == model.estimate("the")


def test_batches_do_not_depend_on_threads(model: NgramModel) -> None:
    sentences = [*sample_sentences()[:50], "", "frumious"]
    one, four = (model.score_batch(sentences, threads=threads) for threads in (1, 4))
    assert one.log_probs.tolist() == four.log_probs.tolist()
    assert one.oov.sum() == 1
    assert len(one) == 52
    for index, sentence in enumerate(sentences):
        assert one.sentence_log_probs()[index] == pytest.approx(model.score_sentence(sentence))
    assert len(model.score_batch([])) == 0


def test_advance_many_is_bit_equal(model: NgramModel) -> None:
    state = model.initial()
    words = ["the", "old", "frumious", "the"]
    steps = model.advance_many([state] * 4, words)
    assert [model.advance(state, word) for word in words] == list(
        zip(steps.log_probs.tolist(), steps.states, strict=True)
    )
    assert steps.states[0] is steps.states[3]
    assert model.advance_many([], []).states == []


STRINGS = (
    *("", " \t ", "ferry", "  the old\tferry  left ", "the ferry\nleft"),
    *("\ufeffthe ferry", "frumious caf\u00e9 na\u00efve", "the " * 300),
)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_one_sentence_has_the_score_it_has_among_many(order: int) -> None:
    model = small_ngram(order=order)
    sentences = [*sample_sentences()[:40], *STRINGS]
    for eos in (True, False):
        many = list(model.score_many(sentences, eos=eos))
        assert [model.score(each, eos=eos) for each in sentences] == many  # to the last bit
        assert [model.score(each.split(), eos=eos) for each in sample_sentences()[:40]] == many[:40]


def test_one_sentence_refuses_what_many_refuse(model: NgramModel) -> None:
    for sentence in ("a <s> b", ["a b", "c"], ["a", ""], ["</s>"]):
        with pytest.raises(VocabularyError) as alone:
            model.score(sentence)
        with pytest.raises(VocabularyError) as among:
            list(model.score_many([sentence]))
        assert (alone.value.code, str(alone.value)) == (among.value.code, str(among.value))


def test_one_sentence_without_a_probability_for_unknown_words(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<s>\t-0.3\n-0.5\t</s>\n"
    text += "-0.5\ta\t-0.2\n-0.7\tb\n\n\\2-grams:\n-0.1\t<s> a\n-0.2\ta b\n\n\\end\\\n"
    (tmp_path / "small.arpa").write_text(text, encoding="utf-8")
    plain = read_arpa(tmp_path / "small.arpa", oov_log_prob=None)
    for model in (plain, plain.with_oov_log_prob(-9.0)):
        for sentence in ("a b", "a x b", "x x", "a x"):
            for eos in (True, False):
                many = next(model.score_many([sentence], eos=eos))
                assert model.score(sentence, eos=eos) == many
            words = sentence.split()
            rows = model.score(sentence).words or ()
            state = model.initial()
            for word, row in zip(words, rows, strict=True):
                many_steps = model.advance_many([state, state], [word, "a"])
                log_prob, state = model.advance(state, word)
                assert log_prob == many_steps.log_probs[0]
                assert log_prob == pytest.approx(row.log_prob, rel=1e-12)
    assert plain.score("a x").log_prob == -math.inf
    assert plain.with_oov_log_prob(-9.0).score("a x").log_prob > -math.inf


def test_states_are_values(model: NgramModel) -> None:
    state = model.score_phrase(model.initial(), "the old ferry").state
    assert isinstance(state, NgramState)
    again = NgramState(state.context, state.first, state.model)  # not asked of any table yet
    assert {again, state} == {state}
    assert again != model.initial()
    assert state != state.to_bytes()
    assert repr(again) == repr(state)
    assert state.to_bytes() == state_bytes(
        model.fingerprint, pack_numbers((int(state.first), *state.context))
    )
    assert model.advance(again, "left") == model.advance(state, "left")
    assert model.finish(again) == model.finish(state)
    twin = pickle.loads(pickle.dumps(model))  # another table with the same content
    assert twin.advance(state, "left") == model.advance(state, "left")


def test_counters_tell_how_many_words_were_read(model: NgramModel) -> None:
    model.reset_stats()
    state = model.advance(model.initial(), "the").state
    model.advance_many([state, state, model.initial()], ["old", "old", "old"])
    assert model.stats() == {"advances": 3, "cache_hits": 1}
    model.reset_stats()
    assert model.stats() == {}


def test_words_may_be_any_kind_of_number(model: NgramModel) -> None:
    state = model.initial()
    ferry = model.vocabulary.symbols.index("ferry")
    for same in (ferry, np.uint32(ferry), np.int64(ferry)):
        assert model.advance(state, same) == model.advance(state, "ferry")  # type: ignore[arg-type]
    for wrong in (-1, len(model.vocabulary) + 5, 1 << 70):
        with pytest.raises(VocabularyError):
            model.advance(state, wrong)


def test_best_words_with_equal_probabilities_come_in_the_order_of_ids() -> None:
    model = small_ngram(["a b c d e f g h"], order=1, smoothing="kn")
    log_probs = model.distribution(model.initial())
    expected = np.argsort(-log_probs, kind="stable")
    names = (*model.vocabulary.symbols, "</s>")
    for n in range(1, len(names) + 2):
        assert [row.word for row in model.top(n)] == [names[id_] for id_ in expected[:n]]


def test_samples_are_sentences_of_the_model(model: NgramModel) -> None:
    drawn = model.sample(20, seed=5)
    assert model.sample(5, seed=5, first=15) == drawn[15:]
    assert model.sample(20, seed=6) != drawn
    assert model.sample(0, seed=1) == []
    for each in drawn:
        assert each.complete
        if "<unk>" not in each.words:
            assert each.log_prob == pytest.approx(model.score(each.words).log_prob)
    cut = model.sample(20, seed=5, max_words=3)
    assert [each.words for each in cut] == [each.words[:3] for each in drawn]
    assert [each.complete for each in cut] == [len(each.words) <= 3 for each in drawn]


def test_first_words_of_samples_follow_the_distribution(model: NgramModel) -> None:
    expected = np.exp(model.distribution(model.initial()))
    drawn = model.sample(4000, seed=1, max_words=1)
    the = model.vocabulary.symbols.index("The")
    share = sum(each.words == ("The",) for each in drawn) / len(drawn)
    error = math.sqrt(expected[the] * (1 - expected[the]) / len(drawn))
    assert share == pytest.approx(float(expected[the]), abs=4 * error)


def test_model_survives_saving_and_pickling(model: NgramModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", verify=True)
    assert isinstance(again, NgramModel)
    assert again.config == model.config
    assert again.vocabulary.entries == model.vocabulary.entries
    assert again.vocabulary.fingerprint == model.vocabulary.fingerprint
    assert again.corpora == model.corpora
    assert again.unigram_counts.tolist() == model.unigram_counts.tolist()
    state = model.score_phrase(model.initial(), "the old").state
    for other in (again, pickle.loads(pickle.dumps(again))):
        assert other.fingerprint == model.fingerprint
        assert other.advance(state, "ferry") == model.advance(state, "ferry")
        sentences = sample_sentences()[:20]
        ours, theirs = model.score_batch(sentences), other.score_batch(sentences)
        assert ours.log_probs.tolist() == theirs.log_probs.tolist()
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "README.md",
        "manifest.json",
        "tables.safetensors",
        "words.txt",
    ]


def test_files_of_two_models_are_not_mixed(model: NgramModel, tmp_path: Path) -> None:
    other_words = small_ngram(["a b c"] * 5, order=3)
    other_order = small_ngram(order=2, vocabulary=model.vocabulary)
    # A forger who fixes the checksums is caught by what the files say about each other.
    for other in (other_words, other_order):
        save_folder(tmp_path / "forged", model.description(), other.write_files)
        with pytest.raises(ModelFileError) as caught:
            load(tmp_path / "forged")
        assert caught.value.code == "E_MODEL_TABLES"


def test_config_that_is_none_is_refused_on_loading(model: NgramModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    manifest = tmp_path / "model/manifest.json"
    manifest.write_text(manifest.read_text().replace('"mkn"', '"magic"'))
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path / "model")
    assert caught.value.code == "E_MANIFEST"


def test_damaged_state_bytes_are_refused(model: NgramModel) -> None:
    data = model.initial().to_bytes()
    for damaged in (
        data[:9],
        data[:9] + b"\x07",
        data + b"\x01\x01\x01",
        data + b"\xff\xff\xff\x7f",
    ):
        with pytest.raises(UsageError) as caught:
            model.state_from_bytes(damaged)
        assert caught.value.code == "E_STATE_BYTES"


def test_state_of_another_training_text_is_refused(model: NgramModel) -> None:
    other = small_ngram(sample_sentences()[:-1], order=3, vocabulary=model.vocabulary)
    with pytest.raises(UsageError) as caught:
        other.advance(model.initial(), "the")
    assert caught.value.code == "E_STATE_MODEL"


@pytest.mark.parametrize(
    "options",
    [
        {"order": 0},
        {"order": 99},
        {"smoothing": "none"},
        {"min_count": ()},
        {"min_count": (2,)},
        {"min_count": (1, 3, 2)},
        {"order": 2, "min_count": (1, 1, 1)},
        {"smoothing": "kn", "lmplz": True},
        {"seed": -1},
        {"depth": 3},
    ],
)
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NgramConfig.model_validate(options)


def test_arpa_is_no_smoothing_to_train_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose kn"):
        train_ngram(TextCorpus((tmp_path,)), NgramConfig(smoothing="arpa"))


def test_training_does_not_depend_on_threads() -> None:
    one, three = (small_ngram(order=4, threads=threads) for threads in (1, 3))
    assert one.fingerprint == three.fingerprint
