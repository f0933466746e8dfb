"""Composite models with topics: counts, documents, and the two ways to read them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.composite_models import logged, sample_composite, sample_parts

from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.em import Data, n_best_step, posteriors
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parsed_text import ParsedText
from treelm.models.composite.parts import Mixtures
from treelm.models.composite.sentence_topics import (
    first_topics,
    largest_of,
    topics_so_far,
    word_shares,
)
from treelm.models.interface.document_reader import DocumentReader


def topical(**options: object) -> CompositeModel:
    settings = {"order": 2, "topics": 6, "keep_topics": 3, "test_topics": 2, "eta": 0.2}
    return sample_composite(**settings, **options)


def test_documents_read_by_the_kernel_and_word_by_word() -> None:
    model = topical()
    _, held_out = sample_parts()
    text = held_out.encoded
    assert len(text.document_starts) > 2
    kernel = model.score_documents(text).log_probs
    slow = DocumentReader(model).score(text).log_probs
    assert kernel == pytest.approx(slow, rel=1e-9)
    assert kernel.tobytes() == model.score_documents(text, threads=2).log_probs.tobytes()
    alone = model.score_ids(text.ids, text.starts).log_probs
    assert not np.allclose(alone, kernel)


def test_topics_that_do_not_adapt_make_sentences_independent() -> None:
    model = topical().with_search(adapt=False)
    assert not model.remembers_documents
    text = sample_parts()[1].encoded
    alone = model.score_ids(text.ids, text.starts).log_probs
    assert model.score_documents(text).log_probs.tobytes() == alone.tobytes()


def test_counts_of_topics_are_the_words() -> None:
    train, _ = sample_parts()
    text = train.text.part(0, 60)
    config = CompositeConfig(order=2, heads=1, topics=5, keep_topics=3, stack_size=4, n_best=3)
    topics, words = first_topics(text, len(train.vocabulary), config)
    assert topics.prior.sum() == pytest.approx(1)
    shares = word_shares(text, topics.mixtures(text), words)
    assert shares.reshape(-1, 3).sum(axis=1) == pytest.approx(np.ones(len(text.ids)))
    model = topical()
    mixtures = topics_of(model, text)
    lists = model.parts.best_parses(text, mixtures, count=3)
    rows, counts = model.parts.events(text, lists, posteriors(lists)[0], mixtures)
    rounding = 9 * text.tokens
    assert abs(int(counts.sum()) - (text.tokens << 30)) <= rounding
    assert abs(int(rows["predictor"][2].sum()) - (text.tokens << 30)) <= rounding


def test_topics_before_a_sentence_follow_the_words_before_it() -> None:
    """The kernel against the definition: online EM with what PLSA says of each word."""
    _, held_out = sample_parts()
    config = CompositeConfig(topics=4, keep_topics=4, test_topics=4, eta=0.3)
    generator = np.random.default_rng(1)
    words = int(held_out.ids.max()) + 1
    word_topics = generator.dirichlet(np.ones(words), size=4).T.copy()
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    found = topics_so_far(held_out, prior, word_topics, config)
    shares = found.shares.reshape(-1, 4)
    numbers = held_out.document_numbers
    for sentence in range(len(held_out)):
        if sentence == 0 or numbers[sentence] != numbers[sentence - 1]:
            expected = prior
        assert shares[sentence] == pytest.approx(expected, rel=1e-9)
        first, last = (int(place) for place in held_out.starts[sentence : sentence + 2])
        for word in held_out.ids[first:last].tolist():
            gamma = expected * (word_topics[word] + 1e-12)
            expected = 0.7 * expected + 0.3 * gamma / gamma.sum()
    again = topics_so_far(held_out, prior, word_topics, config, threads=2)
    assert again.shares.tobytes() == found.shares.tobytes()


def topics_of(model: CompositeModel, text: ParsedText) -> Mixtures:
    rows = np.tile(model.prior, (len(text), 1))
    return largest_of(rows, 3)


def test_em_with_topics() -> None:
    config = CompositeConfig(
        order=2, heads=1, topics=4, keep_topics=2, stack_size=3, n_best=3, iterations=2, tolerance=0
    )
    model, log = logged(config)
    n_best = [step.log_likelihood for step in log if step.kind == "n-best"]
    assert n_best[1] > n_best[0]
    assert model.prior.sum() == pytest.approx(1)
    again, _ = logged(config, threads=2)
    assert again.fingerprint == model.fingerprint


def test_one_round_with_topics_and_no_parses() -> None:
    model = topical(heads=0)
    train, _ = sample_parts()
    text = train.text.part(0, 60)
    made = n_best_step(model.parts, Data(text, topics_of(model, text)), None, None)
    again = n_best_step(made.parts, Data(text, topics_of(model, text)), None, None)
    assert again.log_likelihood > made.log_likelihood
