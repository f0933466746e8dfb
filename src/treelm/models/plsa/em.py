"""PLSA: the topics of documents, and the words of topics (Hofmann 2001)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.encoder import EncodedText, Ids
from treelm.kernel_errors import kernel_errors
from treelm.models.run import QUIET, Run
from treelm.parallel.progress import Progress, kernel_report, shared_step

Floats = npt.NDArray[np.float64]

#: How many times as many words as the vocabulary a worker counts at a time.
WORDS_A_SHARD = 64


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


class _Shard(NamedTuple):
    """Some documents and their topics."""

    counts: _native.DocumentWords
    document_topics: Floats


class _Expected(NamedTuple):
    """What the E-step has found in some documents."""

    words: npt.NDArray[np.int64]
    """The words that they have, or all."""
    counts: npt.NDArray[np.int64]
    """Expected counts of these by topic, in multiples of 2^-30."""
    document_topics: Floats
    log_likelihoods: Floats
    """By block of documents."""


@dataclass(frozen=True, eq=False)
class _Expect:
    """The E-step over some documents.

    Args:
        word_topics: p(w|g).
        threads: Number of threads.
        progress: Called with the number of documents done.
        is_sent: Whether the result is sent, so that it should be small.
    """

    word_topics: Floats
    threads: int
    progress: Progress
    is_sent: bool

    def __call__(self, shard: _Shard) -> _Expected:
        topics = np.array(shard.document_topics)
        with kernel_errors("finding topics"), self.progress.step("PLSA") as step:
            counts, likelihoods = shard.counts.expect(
                self.word_topics, topics, threads=self.threads, progress=kernel_report(step)
            )
        words = np.arange(len(counts))
        if self.is_sent:
            words = np.flatnonzero(counts.any(axis=1))
            counts = counts[words]
        return _Expected(words, counts, topics, likelihoods)


def _shards(counts: _native.DocumentWords, topics: Floats, words: int) -> Iterator[_Shard]:
    """Yield documents as workers get them.

    A shard has many times as many words as the vocabulary, because what is sent back has a row for
    every word, and adding rows up must cost little beside counting.
    """
    size = max(1, counts.blocks * WORDS_A_SHARD * words // max(1, counts.pairs))
    for first in range(0, max(1, counts.blocks), size):
        last = min(first + size, counts.blocks)
        own = topics[first * counts.block_size : last * counts.block_size]
        yield _Shard(counts.part(first, last), own)


def plsa_step(counts: _native.DocumentWords, state: PlsaState, *, run: Run = QUIET) -> PlsaState:
    """Return the state after one more iteration of EM (docs/systems/plsa.md).

    Args:
        counts: Words in documents.
        state: The state before; it is not changed.
        run: How the training is run.
    """
    number = len(state.history) + 1
    words = state.word_topics
    is_sent = run.executor.threads is not None
    shards: Iterable[_Shard] = (
        _shards(counts, state.document_topics, len(words))
        if is_sent
        else [_Shard(counts, state.document_topics)]
    )
    sums = np.zeros(words.shape if is_sent else 0, np.int64)
    topics, likelihoods = [], []
    with shared_step(
        run.executor,
        run.progress,
        f"PLSA, iteration {number}",
        total=len(counts),
        unit="documents",
    ) as (within, finished):
        work = _Expect(words, run.worker_threads, within, is_sent)
        for found in run.executor.map(work, shards):
            finished(len(found.document_topics))
            topics.append(found.document_topics)
            likelihoods.append(found.log_likelihoods)
            if is_sent:
                sums[found.words] += found.counts
            else:
                sums = found.counts
    totals = sums.sum(axis=0)
    made = np.where(totals > 0, sums / np.maximum(totals, 1), 0.0)
    return PlsaState(
        made, np.concatenate(topics), (*state.history, in_turn(np.concatenate(likelihoods)))
    )


def in_turn(numbers: Floats) -> float:
    """Return a sum, added up one number after the other."""
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0


def fit_plsa(
    counts: _native.DocumentWords,
    start: PlsaState,
    *,
    iterations: int = 50,
    tolerance: float = 1e-4,
    run: Run = QUIET,
    after_step: Callable[[PlsaState], None] | None = None,
) -> PlsaState:
    """Return topics after EM has converged, or after a number of iterations.

    Args:
        counts: Words in documents.
        start: The initial state, or one to resume from.
        iterations: Maximum number of iterations, those of `start` included.
        tolerance: A smaller relative gain ends it.
        run: How the training is run.
        after_step: Called after every iteration, for example to write a checkpoint.
    """
    state = start
    while state.iterations < iterations and not state.gained_less_than(tolerance):
        state = plsa_step(counts, state, run=run)
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
