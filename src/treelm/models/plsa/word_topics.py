"""How often words occur in each topic."""

from __future__ import annotations

import numpy as np

from treelm.corpus.encoder import sizes_between
from treelm.estimation.lattice_weights import LatticeModel
from treelm.models.interface.abilities import Floats
from treelm.models.interface.score_explanation import Arithmetic, ScoreTerm, log_of, sum_of


def word_topic_counts(predictor: LatticeModel, words: int, topics: int) -> Floats:
    """Return the expected counts of words and the sentence end (rows) in topics (columns).

    Args:
        predictor: What predicts words, with or without topics.
        words: Words of the vocabulary.
        topics: Number of topics.
    """
    counts = np.zeros((words + 1, topics))
    if topics:
        arrays = predictor.tables.native.stem_arrays(0)
        sizes = sizes_between(arrays["topic_begin"].astype(np.uint64))
        rows = np.repeat(arrays["outcomes"].astype(np.int64), sizes)
        counts[rows, arrays["topics"].astype(np.int64)] = arrays["topic_counts"]
    return counts


def topic_terms(topics: list[int], shares: list[float], probs: list[float]) -> Arithmetic:
    """Return the sum over topics that gives the probability of a word."""
    terms = [
        ScoreTerm(
            f"P(topic {topic}) · P(word | topic {topic}) = {share:.6g} · {prob:.6g}",
            log_of(share) + log_of(prob),
        )
        for topic, share, prob in zip(topics, shares, probs, strict=True)
    ]
    return sum_of(terms, rest="other topics")
