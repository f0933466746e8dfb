"""Sampling sentences from an n-gram table, many at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import Ids
from treelm.errors import ModelFileError
from treelm.estimation.backoff_table import BackoffTable


def advance_contexts(
    table: BackoffTable, contexts: Ids, words: Ids
) -> tuple[npt.NDArray[np.float64], Ids]:
    """Return ln p of words after contexts, and the contexts that come next, one row per word."""
    log_probs, after = table.advance(contexts, words)
    return log_probs, after.reshape(contexts.shape)  # unigrams have rows without columns


class DrawnIds(NamedTuple):
    """A sentence as ids, without its end."""

    ids: list[int]
    log_prob: float
    complete: bool


def sample_sentences(
    table: BackoffTable, start: Ids, end: int, numbers: range, *, seed: int, max_words: int
) -> list[DrawnIds]:
    """Return one sentence for each number; it depends only on that and the seed.

    Args:
        table: The n-gram table.
        start: Context before the first word.
        end: Id of the sentence end.
        numbers: Numbers of the sentences.
        seed: Seed.
        max_words: A longer sentence is cut after this many words.

    Raises:
        ModelFileError: ``E_MODEL_TABLES`` if the table predicts what never follows, the sentence
            start; tables are not read when they are opened.
    """
    count = len(numbers)
    words: list[list[int]] = [[] for _ in numbers]
    totals = np.zeros(count)
    complete = np.zeros(count, dtype=np.bool_)
    active = np.arange(count)
    contexts = np.repeat(start[np.newaxis, :], count, axis=0)
    streams = np.arange(numbers.start, numbers.stop, dtype=np.uint64)
    for place in range(max_words + 1):
        if not len(active):
            break
        counters = np.full(len(active), place, dtype=np.uint64)
        drawn = table.sample(contexts, seed=seed, streams=streams[active], counters=counters)
        if (drawn > end).any():
            raise ModelFileError(
                "the n-gram table predicts the start of a sentence, so it is damaged; copy or "
                "train the model again.",
                code="E_MODEL_TABLES",
            )
        log_probs, contexts = advance_contexts(table, contexts, drawn)
        ends = drawn == end
        complete[active[ends]] = True
        counted = ends if place == max_words else np.ones(len(active), dtype=np.bool_)
        totals[active[counted]] += log_probs[counted]
        if place < max_words:
            for sentence, word in zip(active[~ends].tolist(), drawn[~ends].tolist(), strict=True):
                words[sentence].append(word)
        active, contexts = active[~ends], contexts[~ends]
    return [
        DrawnIds(ids, log_prob, done)
        for ids, log_prob, done in zip(words, totals.tolist(), complete.tolist(), strict=True)
    ]
