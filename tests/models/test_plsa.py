"""PLSA and n-gram/PLSA models."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tests.models.plsa_models import ANIMALS, STARS, sample_topics, train_small, two_topics

from treelm import _native
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import encode_sentences, encode_text
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, ModelFileError, UsageError
from treelm.models.interface.states import Context, State
from treelm.models.mixture.model import interpolate
from treelm.models.plsa.check_text import check_overlap, part_of, split_text
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.em import (
    document_words,
    fit_plsa,
    keep_topics,
    start_plsa,
)
from treelm.models.plsa.model import PlsaModel
from treelm.models.plsa.trainer import PlsaTrainer
from treelm.models.run import Run
from treelm.tasks.inspect.topics import draw_topics, inspect_topics
from treelm.tasks.surprisal.surprisal import surprisal_rows


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=1, max_size=6),
    st.integers(1, 11),
)
def test_plsa_never_loses_likelihood_and_ignores_threads(
    documents: list[list[int]], topics: int
) -> None:
    ids = np.array([word for document in documents for word in document], np.uint32)
    starts = np.cumsum([0, *map(len, documents)]).astype(np.uint64)
    counts = _native.DocumentWords(ids, starts, 6)
    start = start_plsa(6, len(documents), topics, seed=3)
    found = fit_plsa(counts, start, iterations=6, tolerance=0)
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(found.history))
    assert found.document_topics.sum(axis=1).tolist() == pytest.approx([1] * len(documents))
    sums = found.word_topics.sum(axis=0)
    assert np.all((np.abs(sums - 1) < 1e-9) | (sums == 0))
    again = fit_plsa(counts, start, iterations=6, tolerance=0, run=Run(threads=2))
    assert again.word_topics.tobytes() == found.word_topics.tobytes()
    assert again.document_topics.tobytes() == found.document_topics.tobytes()
    assert again.history == found.history
    reference = _plain_plsa(documents, start.word_topics, start.document_topics)
    one = fit_plsa(counts, start, iterations=1)
    assert one.word_topics == pytest.approx(reference[0], abs=1e-7)
    assert one.document_topics == pytest.approx(reference[1], abs=1e-7)


def _plain_plsa(documents, words, mixtures):  # type: ignore[no-untyped-def]
    """One step as equation (3) has it."""
    word_counts = np.zeros_like(words)
    mixture_counts = np.zeros_like(mixtures)
    for d, document in enumerate(documents):
        for word in document:
            joint = words[word] * mixtures[d]
            word_counts[word] += joint / joint.sum()
            mixture_counts[d] += joint / joint.sum()
    sums = word_counts.sum(axis=0)
    return (
        word_counts / np.where(sums > 0, sums, 1),
        mixture_counts / mixture_counts.sum(axis=1, keepdims=True),
    )


def test_plsa_finds_two_topics() -> None:
    model = train_small(two_topics(), topics=2, seed=1)
    counts = model.topic_table().counts
    rows = {word: counts[model.vocabulary.ids_of([word])[0]] for word in (*ANIMALS, *STARS)}
    animal = int(np.argmax(rows["cat"]))
    assert all(rows[word][animal] > 100 * rows[word][1 - animal] for word in ANIMALS)
    assert all(rows[word][1 - animal] > 100 * rows[word][animal] for word in STARS)
    assert counts.sum() / 2**30 == pytest.approx(model.unigram_counts.sum(), abs=1e-3)


def test_topics_of_a_document_predict_its_words(tmp_path: Path) -> None:
    model = train_small(two_topics(210), topics=2, order=2, seed=1)
    fast = model.with_options(eta=0.2)
    context = Context()
    for _ in range(3):
        state: State = fast.initial(context)
        for word in ["the", "moon", "rises", "sun", "."]:
            state = fast.advance(state, word).state
        context = fast.end_sentence(state)
    known = fast.score_sentence("the star sets .", context)
    unknown = fast.score_sentence("the star sets .")
    assert known > unknown + 0.4
    fixed = model.with_options(adapt=False)
    assert fixed.score_sentence("the dog .", fixed.end_sentence(fixed.initial())) == (
        fixed.score_sentence("the dog .")
    )
    with pytest.raises(UsageError):
        model.with_options(order=3)
    with pytest.raises(UsageError) as caught:
        model.initial(Context(memory=(0.0, 1.0)))
    assert caught.value.code == "E_STATE_MODEL"

    text = tmp_path / "test.txt"
    text.write_text(two_topics(4, seed=9), encoding="utf-8")
    corpus = TextCorpus((text,))
    by_kernel = fast.score_documents(encode_text(corpus, fast.vocabulary))
    total = 0.0
    before = None
    for document, words in corpus.with_documents():
        start = None if document != before else context
        state = fast.initial(start)
        for word in words:
            log_prob, state = fast.advance(state, word)
            total += log_prob
        total += fast.finish(state)
        context, before = fast.end_sentence(state), document
    assert by_kernel.log_probs.sum() == pytest.approx(total)
    found = fast.perplexity(corpus)
    assert found.log_prob == pytest.approx(total)
    rows = [row for rows in surprisal_rows(fast, corpus.with_documents(), eos=True) for row in rows]
    assert sum(row.log_prob for row in rows) == pytest.approx(total)
    mixed = interpolate([fast, fixed], [0.5, 0.5])
    assert mixed.perplexity(corpus).log_prob > fixed.perplexity(corpus).log_prob


@pytest.mark.parametrize("order", [1, 2, 3])
def test_topic_models_do_not_depend_on_threads(order: int, tmp_path: Path) -> None:
    one = train_small(two_topics(), topics=3, order=order, iterations=3)
    two = train_small(two_topics(), topics=3, order=order, iterations=3, threads=2)
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    name = "tables.safetensors"
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    again = PlsaModel.load(tmp_path / "one")
    assert again.score_sentence("the cat barks .") == one.score_sentence("the cat barks .")
    assert again.fingerprint == one.fingerprint


@pytest.mark.parametrize("cutoff", [0.0, 0.01])
def test_topic_em_counts_every_word_once(tmp_path: Path, cutoff: float) -> None:
    path = tmp_path / "text.txt"
    path.write_text(two_topics(), encoding="utf-8")
    vocabulary = Vocabulary.from_counts(dict.fromkeys([*ANIMALS, *STARS, "the", "."], 9))
    text = encode_text(path, vocabulary)
    config = PlsaConfig(topics=4, order=2, keep_topics=2, cutoff=cutoff)
    trainer = PlsaTrainer(*split_text(text), config, len(vocabulary))
    plsa = fit_plsa(
        document_words(trainer.text, len(vocabulary)),
        start_plsa(len(vocabulary), len(trainer.text.document_starts) - 1, 4, seed=0),
    )
    trainer.count(plsa)
    trainer.refit()
    likelihoods = []
    for _ in range(4):
        likelihood, counts, kept = trainer.expect()
        likelihoods.append(likelihood)
        # Every contribution is off by 2^-31 at most.
        assert counts.sum() / 2**30 == pytest.approx(trainer.events, abs=trainer.events * 2**-29)
        assert kept.shares.sum(axis=1).tolist() == pytest.approx([1] * len(kept.shares))
        trainer.tables.refill(counts)
        trainer.kept = kept
        trainer.used = trainer.tables.cut(cutoff)
    if not cutoff:  # the same weights: smoothing hardly disturbs it
        assert all(
            later >= earlier - 1e-6 * abs(earlier) for earlier, later in pairwise(likelihoods)
        )
    assert trainer.kept is not None
    assert 0.5 < trainer.kept.mass <= 1


def test_topics_zero_is_the_chain_of_words() -> None:
    model = train_small(two_topics(), topics=0, order=2)
    assert not model.remembers_documents
    assert model.score_sentence("the cat .") == pytest.approx(model.score("the cat .").log_prob)


def test_keep_topics_takes_the_first_of_equals() -> None:
    kept = keep_topics(np.full((1, 4), 0.25), 2)
    assert kept.topics.tolist() == [[0, 1]]
    assert kept.mass == 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"order": 0},
        {"topics": -1},
        {"topics": 3, "keep_topics": 4},
        {"eta": 0.0},
        {"eta": 1.0},
        {"cutoff": -0.1},
    ],
)
def test_topic_options_must_be_possible(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        PlsaModel.make_config(options)


def test_held_out_text_must_be_another(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_counts({"a": 1, "b": 1})
    long = [("a", "b") * 5, ("b", "a") * 5]
    text = encode_sentences(long, vocabulary)
    with pytest.raises(EstimationError) as caught:
        check_overlap(text, text)
    assert caught.value.code == "E_OVERLAP"
    check_overlap(text, encode_sentences([("a", "a") * 5], vocabulary))
    with pytest.raises(EstimationError) as caught:
        check_overlap(text, encode_sentences([], vocabulary))
    assert caught.value.code == "E_NO_DATA"
    path = tmp_path / "text.txt"
    path.write_text(two_topics(45), encoding="utf-8")
    whole = encode_text(path, vocabulary)
    train, check = split_text(whole)
    assert len(check.document_starts) - 1 == 2
    assert len(train) + len(check) == len(whole)
    some = part_of(whole, np.arange(45) == 19)
    assert some.ids.tolist() == check.ids[: len(some.ids)].tolist()


def test_topics_are_shown_with_their_words(tmp_path: Path) -> None:
    train_small(two_topics(), topics=2, seed=1).save(tmp_path / "model")
    topics = inspect_topics(tmp_path / "model", words=6)
    assert sum(topic.share for topic in topics) == pytest.approx(1)
    shown = {frozenset(word for word, _ in topic.words) for topic in topics}
    assert shown == {frozenset(ANIMALS), frozenset(STARS)}
    assert "<svg" in draw_topics(topics)


def test_damaged_topic_models_are_refused(tmp_path: Path) -> None:
    from treelm.store.tables import open_tables, write_tables

    model = sample_topics(order=2)
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "tables.safetensors"
    tensors = {name: np.array(array) for name, array in open_tables(path).items()}
    for name in tensors:
        broken = {key: array for key, array in tensors.items() if key != name}
        write_tables(path, broken)
        with pytest.raises(ModelFileError):
            PlsaModel.load(tmp_path / "model")
