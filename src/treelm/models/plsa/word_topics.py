"""How often words occur in each topic."""

from __future__ import annotations

import numpy as np

from treelm.corpus.encoder import sizes_between
from treelm.estimation.lattice_weights import LatticeModel
from treelm.models.interface.abilities import Floats


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
