"""PLSA: the topics of documents, and the words of topics (Hofmann 2001)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.encoder import EncodedText, Ids
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress, kernel_report

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlsaState:
    """PLSA after some iterations.

    Args:
        word_topics: p(w|g), one row per word, one column per topic.
        document_topics: p(g|d), one row per document.
        history: Log likelihood before each iteration.
    """

    word_topics: Floats
    document_topics: Floats
    history: tuple[float, ...] = ()

    @property
    def iterations(self) -> int:
        """Number of iterations done."""
        return len(self.history)

    def gained_less_than(self, tolerance: float) -> bool:
        """Return whether the last known gain, relative to the likelihood, was smaller."""
        if len(self.history) < 2:
            return False
        before, after = self.history[-2:]
        return after - before < tolerance * abs(before)


@dataclass(frozen=True)
class KeptTopics:
    """The few topics that each training document keeps.

    Args:
        topics: One row per document, ascending.
        shares: Their shares, which sum to 1 in every row.
        mass: Mean share of the kept topics before the others were dropped.
    """

    topics: Ids
    shares: Floats
    mass: float


def start_plsa(words: int, documents: int, topics: int, *, seed: int) -> PlsaState:
    """Return random words for every topic, and all topics equal in every document.

    Args:
        words: Number of words.
        documents: Number of documents.
        topics: Number of topics.
        seed: The share of a word in a topic depends on the seed, the word and the topic alone.

    Examples:
        >>> start = start_plsa(3, 1, 2, seed=1)
        >>> start.word_topics.sum(axis=0).round(9).tolist(), start.document_topics.tolist()
        ([1.0, 1.0], [[0.5, 0.5]])
    """
    drawn = _native.draw_word_topics(words, topics, seed)
    return PlsaState(drawn, np.full((documents, topics), 1 / topics))


def document_words(text: EncodedText, words: int) -> _native.DocumentWords:
    """Return how often each document of a text has each word; ends of sentences do not count."""
    starts = text.starts[text.document_starts.astype(np.int64)]
    with kernel_errors("counting words in documents"):
        return _native.DocumentWords(text.ids, starts, words)


def plsa_step(
    counts: _native.DocumentWords,
    state: PlsaState,
    *,
    threads: int = 1,
    progress: Progress = SILENT,
) -> PlsaState:
    """Return the state after one more iteration of EM, equation (3).

    Args:
        counts: Words in documents.
        state: The state before; it is not changed.
        threads: Number of threads.
        progress: Called with the number of documents done.
    """
    words = np.array(state.word_topics)
    documents = np.array(state.document_topics)
    number = len(state.history) + 1
    with (
        kernel_errors("finding topics"),
        progress.step(f"PLSA, iteration {number}", total=len(counts), unit="documents") as step,
    ):
        likelihood = counts.step(words, documents, threads=threads, progress=kernel_report(step))
    return PlsaState(words, documents, (*state.history, likelihood))


def fit_plsa(
    counts: _native.DocumentWords,
    start: PlsaState,
    *,
    iterations: int = 50,
    tolerance: float = 1e-4,
    threads: int = 1,
    progress: Progress = SILENT,
    after_step: Callable[[PlsaState], None] | None = None,
) -> PlsaState:
    """Return topics after EM has converged, or after a number of iterations.

    Args:
        counts: Words in documents.
        start: The initial state, or one to resume from.
        iterations: Maximum number of iterations, those of `start` included.
        tolerance: A smaller relative gain ends it.
        threads: Number of threads.
        progress: Called with the number of documents done.
        after_step: Called after every iteration, for example to write a checkpoint.
    """
    state = start
    while state.iterations < iterations and not state.gained_less_than(tolerance):
        state = plsa_step(counts, state, threads=threads, progress=progress)
        if after_step is not None:
            after_step(state)
    return state


def keep_topics(document_topics: Floats, keep: int) -> KeptTopics:
    """Return the largest topics of every document, their shares divided by their sum.

    Args:
        document_topics: p(g|d), one row per document.
        keep: Number of topics to keep; of equal ones the first.

    Examples:
        >>> kept = keep_topics(np.array([[0.1, 0.6, 0.3]]), 2)
        >>> kept.topics.tolist(), kept.shares.round(3).tolist(), round(kept.mass, 3)
        ([[1, 2]], [[0.667, 0.333]], 0.9)
    """
    order = np.argsort(-document_topics, axis=1, kind="stable")[:, :keep]
    topics = np.sort(order, axis=1)
    shares = np.take_along_axis(document_topics, topics, axis=1)
    sums = shares.sum(axis=1, keepdims=True)
    return KeptTopics(topics.astype(np.uint32), shares / sums, float(sums.mean()))


def corpus_topics(kept: KeptTopics, sizes: npt.NDArray[np.int64], topics: int) -> Floats:
    """Return p(g) of a whole corpus: the topics of its documents, weighted by their length."""
    weights = kept.shares * sizes[:, np.newaxis]
    sums = np.bincount(kept.topics.reshape(-1), weights=weights.reshape(-1), minlength=topics)
    return np.asarray(sums / sums.sum(), dtype=np.float64)


def with_shares(kept: KeptTopics, shares: Floats) -> KeptTopics:
    """Return the same topics with other shares."""
    return replace(kept, shares=shares)
