"""The words of a model alone, by their counts in its training text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.errors import UnsupportedTask
from treelm.models.interface.model import LanguageModel

Numbers = npt.NDArray[np.float64]


def unigram_log_probs(model: LanguageModel) -> Numbers:
    """Return the natural log probabilities of a model's words, alone and smoothed by add-one.

    Raises:
        UnsupportedTask: ``E_NO_COUNTS`` if the model does not know how often words occur.
    """
    counts = model.unigram_counts
    if counts is None or not counts.any():
        raise UnsupportedTask(
            f"this {model.system} model has no counts of its training words, which "
            "the log-odds ratio needs (a model read from an ARPA file has none). Compare log "
            "probabilities instead, or train the model with treelm.",
            code="E_NO_COUNTS",
        )
    words = counts[:-1].astype(np.float64)  # the last one counts sentence ends
    log_probs: Numbers = np.log((words + 1.0) / (words.sum() + len(words)))
    return log_probs
