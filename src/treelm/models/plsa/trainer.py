"""EM of a predictor with topics: expected counts, topics of documents, weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.encoder import EncodedText, Ids, Places, sizes_between
from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.lattice import Counts, LatticeEvents, LatticeTables, fixed_point
from treelm.estimation.lattice_weights import (
    CheckEvents,
    LatticeModel,
    LatticeWeights,
    fit_weights,
)
from treelm.kernel_errors import kernel_errors
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.em import (
    Floats,
    KeptTopics,
    PlsaState,
    corpus_topics,
    document_words,
    in_turn,
    keep_topics,
    with_shares,
)
from treelm.models.plsa.lattice import predictor_lattice, topic_text
from treelm.models.plsa.model import PlsaModel
from treelm.models.run import QUIET, Run
from treelm.parallel.progress import Progress, kernel_report, shared_step
from treelm.store.manifest import TrainingCorpus

#: Number of words and sentence ends that a worker reads at a time, at least: a second of its work.
EVENTS_A_SHARD = 1 << 18
#: A worker reads at least one event for so many types, whose counts it looks through.
TYPES_AN_EVENT = 16


@dataclass(frozen=True)
class PlsaReport:
    """One iteration of the predictor's EM.

    Args:
        log_likelihood: Log likelihood of the training text before the iteration.
        perplexity: Perplexity of the training text before the iteration.
        held_out_perplexity: Perplexity of the held-out text with the weights found on it.
    """

    log_likelihood: float
    perplexity: float
    held_out_perplexity: float


@dataclass(frozen=True)
class Parameters:
    """Everything that EM changes.

    Args:
        counts: Expected counts of the last node of the lattice.
        shares: p(g|d) of the topics that each document keeps.
        weights: Weights of the lattice.
        held_out_perplexity: Held-out perplexity with these.
    """

    counts: Counts
    shares: npt.NDArray[np.float64]
    weights: LatticeWeights
    held_out_perplexity: float


class _Documents(NamedTuple):
    """Some documents and the topics that they keep."""

    ids: Ids
    starts: Places
    document_starts: Places
    topics: Ids
    shares: Floats


class _Expected(NamedTuple):
    """What the E-step has found in some documents."""

    events: int
    places: npt.NDArray[np.int64]
    """Which types they have, if the counts are not those of all."""
    counts: Counts
    shares: Floats
    log_likelihoods: Floats
    """By document."""


@dataclass(frozen=True, eq=False)
class _Expect:
    """The E-step over some documents.

    Args:
        model: The predictor, whose tables may have lost rare events.
        tables: All events.
        order: Words in an n-gram.
        words: Number of words of the vocabulary.
        threads: Number of threads.
        progress: Progress callback.
        is_sent: Whether the result is sent, so that it should be small.
    """

    model: LatticeModel
    tables: LatticeTables
    order: int
    words: int
    threads: int
    progress: Progress
    is_sent: bool

    def __call__(self, shard: _Documents) -> _Expected:
        counts = np.zeros_like(self.tables.top_counts())
        shares = np.array(shard.shares)
        text = topic_text(shard.ids, shard.starts, shard.document_starts, self.order, self.words)
        with kernel_errors("expected counts"), self.progress.step("EM") as step:
            likelihoods = _native.expect_topics(
                self.model.native,
                self.tables.native,
                text,
                shard.topics,
                shares,
                counts,
                threads=self.threads,
                progress=kernel_report(step),
            )
        events = len(shard.ids) + len(shard.starts) - 1
        places = np.zeros(0, np.int64)
        if self.is_sent:
            places = np.flatnonzero(counts)
            counts = counts[places]
        return _Expected(events, places, counts, shares, likelihoods)


@dataclass
class PlsaTrainer:
    """A predictor with topics in training: counts, topics of documents, weights.

    Args:
        text: The training text.
        held_out: The held-out text for the weights.
        config: Options.
        words: Number of words of the vocabulary.
        run: How the training is run.
    """

    text: EncodedText
    held_out: EncodedText
    config: PlsaConfig
    words: int
    run: Run = QUIET
    history: list[float] = field(default_factory=list)
    held_out_perplexity: float = float("inf")
    kept: KeptTopics | None = None
    before: Parameters | None = None

    def __post_init__(self) -> None:
        self.lattice = predictor_lattice(self.words + 1, self.config)
        self._kernel_text = self._as_kernel_text(self.text)

    @property
    def events(self) -> int:
        """Number of words and sentence ends of the training text."""
        return len(self.text.ids) + len(self.text)

    @property
    def prior(self) -> npt.NDArray[np.float64]:
        """p(g) of the training text."""
        if self.kept is None:
            return np.zeros(0)
        starts = self.text.document_starts
        sizes = sizes_between(self.text.starts[starts.astype(np.int64)]) + sizes_between(starts)
        return corpus_topics(self.kept, sizes, self.config.topics)

    def count(self, plsa: PlsaState | None) -> None:
        """Count every event, distributed over the topics its document keeps as in PLSA.

        Args:
            plsa: The topics; None for a model without topics.
        """
        end = self.words
        limits = [end + 2] * (self.config.order - 1)
        if plsa is None:
            self.tables = self._plain_tables(limits)
        else:
            self.kept = keep_topics(plsa.document_topics, self.config.kept)
            events = LatticeEvents(
                self.lattice, [*limits, self.config.topics], threads=self.run.threads
            )
            with (
                kernel_errors("collecting events"),
                self.run.progress.step(
                    "collecting events", total=self.events, unit="events"
                ) as step,
            ):
                if self.config.order == 1:
                    self._add_words(events, plsa, self.kept)
                else:
                    _native.add_topic_events(
                        self._kernel_text,
                        self.kept.topics,
                        self.kept.shares,
                        plsa.word_topics,
                        events.native,
                        kernel_report(step),
                    )
            self.tables = events.tables(progress=self.run.progress)

    def _add_words(self, events: LatticeEvents, plsa: PlsaState, kept: KeptTopics) -> None:
        """Add the words of topics without other context: what PLSA itself counts."""
        topics = self.config.topics
        mixtures = np.zeros((len(kept.topics), topics))
        np.put_along_axis(mixtures, kept.topics.astype(np.int64), kept.shares, axis=1)
        words = document_words(self.text, self.words).counts(
            plsa.word_topics, mixtures, threads=self.run.threads
        )
        ends = fixed_point(sizes_between(self.text.document_starts) @ mixtures)
        counts = np.concatenate([words, ends[np.newaxis]])
        outcomes, numbers = np.nonzero(counts)
        events.add(
            numbers.astype(np.uint32)[:, np.newaxis],
            outcomes.astype(np.uint32),
            counts[outcomes, numbers],
        )

    def _plain_tables(self, limits: list[int]) -> LatticeTables:
        """Return the tables of a model without topics."""
        order, end = self.config.order, self.words
        ids = np.insert(
            self.text.ids, self.text.starts[1:].astype(np.int64), end
        )  # every sentence ends
        sentence_of = np.repeat(np.arange(len(self.text)), sizes_between(self.text.starts) + 1)
        columns = np.full((len(ids), order - 1), end + 1, dtype=np.uint32)
        for back in range(1, order):
            same = sentence_of[back:] == sentence_of[:-back]
            columns[back:, back - 1] = np.where(same, ids[:-back], end + 1)
        counts = np.full(len(ids), fixed_point(1.0), dtype=np.int64)
        events = LatticeEvents(self.lattice, limits, threads=self.run.threads)
        events.add(columns, ids.astype(np.uint32), counts)
        return events.tables(progress=self.run.progress)

    # -- weights ----------------------------------------------------------------------------

    def refit(self, *, rounds: int = 1) -> None:
        """Find the weights of the lattice on the held-out text.

        Args:
            rounds: Number of rounds; the topics of held-out words depend on the previous weights.
        """
        self.used = self.tables.cut(self.config.cutoff)
        weights: LatticeWeights | None = getattr(self, "weights", None)
        if weights is None:
            weights = LatticeWeights.equal(self.lattice)
        for _ in range(rounds if self.config.topics else 1):
            _, checks = self._score(weights, checks=True)
            weights = fit_weights(
                self.used, checks, threads=self.run.threads, progress=self.run.progress
            )
        self.weights = weights
        log_probs, _ = self._score(weights, checks=False)
        self.held_out_perplexity = float(np.exp(-log_probs.mean()))

    def _score(
        self, weights: LatticeWeights, *, checks: bool
    ) -> tuple[npt.NDArray[np.float64], CheckEvents]:
        with (
            kernel_errors("reading the held-out text"),
            self.run.progress.step(
                "held-out text", total=len(self.held_out.ids) + len(self.held_out), unit="events"
            ) as step,
        ):
            log_probs, columns, outcomes, shares = _native.score_topics(
                LatticeModel(self.used, weights).native,
                self._as_kernel_text(self.held_out),
                self.prior,
                rate=self.config.rate,
                keep=max(1, self.config.predicting),
                checks=checks,
                threads=self.run.threads,
                progress=kernel_report(step),
            )
        return log_probs, CheckEvents(columns, outcomes, shares)

    # -- EM ---------------------------------------------------------------------------------

    def expect(self) -> tuple[float, Counts, KeptTopics]:
        """Return log likelihood, expected counts and topics: one E-step."""
        assert self.kept is not None
        types, run = len(self.tables.top_counts()), self.run
        is_sent = run.executor.threads is not None
        shards = list(self._shards(types)) if is_sent else [(0, len(self.text.document_starts) - 1)]
        counts = np.zeros(types, np.int64)
        shares, likelihoods = [], []
        with shared_step(
            run.executor,
            run.progress,
            f"EM, iteration {len(self.history) + 1}",
            total=self.events,
            unit="events",
        ) as (within, finished):
            work = _Expect(
                LatticeModel(self.used, self.weights),
                self.tables,
                self.config.order,
                self.words,
                run.worker_threads,
                within,
                is_sent,
            )
            cut = (self._documents(first, last) for first, last in shards)
            for found in run.executor.map(work, cut):
                finished(found.events)
                shares.append(found.shares)
                likelihoods.append(found.log_likelihoods)
                if is_sent:
                    counts[found.places] += found.counts
                else:
                    counts = found.counts
        return (
            in_turn(np.concatenate(likelihoods)),
            counts,
            with_shares(self.kept, np.concatenate(shares)),
        )

    def _shards(self, types: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the last document of what a worker reads at a time.

        A worker has a count for every type, so it reads enough to make looking through them cheap.
        """
        least = max(EVENTS_A_SHARD, types // TYPES_AN_EVENT)
        starts = self.text.document_starts.astype(np.int64)
        ends = (self.text.starts[starts].astype(np.int64) + starts).tolist()
        first = 0
        for last in range(1, len(ends)):
            if ends[last] - ends[first] >= least or last == len(ends) - 1:
                yield first, last
                first = last

    def _documents(self, first: int, last: int) -> _Documents:
        """Return some documents and their topics."""
        assert self.kept is not None
        text = self.text
        sentences = text.document_starts[first : last + 1]
        starts = text.starts[int(sentences[0]) : int(sentences[-1]) + 1]
        return _Documents(
            text.ids[int(starts[0]) : int(starts[-1])],
            starts - starts[0],
            sentences - sentences[0],
            self.kept.topics[first:last],
            self.kept.shares[first:last],
        )

    def fit(self, after: Callable[[PlsaTrainer, PlsaReport], None] | None = None) -> None:
        """Iterate until the likelihood of the training text gains little, or falls.

        With smoothing it may fall: then the parameters before the fall are kept. A predictor that
        uses topics only is the result of PLSA, and stays as it is.

        Args:
            after: Called after every iteration.
        """
        if not self.config.topics or self.config.order == 1:
            return
        while len(self.history) < self.config.iterations:
            if self._converged():
                return
            likelihood, counts, kept = self.expect()
            if self.history and self.before is not None and likelihood < self.history[-1]:
                self.set(self.before)
                return
            self.history.append(likelihood)
            self.before = self.parameters()
            self.tables.refill(counts)
            self.kept = kept
            self.refit()
            if after is not None:
                perplexity = float(np.exp(-likelihood / self.events))
                after(self, PlsaReport(likelihood, perplexity, self.held_out_perplexity))

    def _converged(self) -> bool:
        if len(self.history) < 2:
            return False
        earlier, later = self.history[-2:]
        return later - earlier < self.config.tolerance * abs(earlier)

    def parameters(self) -> Parameters:
        """Return a copy of everything that EM changes."""
        assert self.kept is not None
        return Parameters(
            np.array(self.tables.top_counts()),
            self.kept.shares,
            self.weights,
            self.held_out_perplexity,
        )

    def set(self, parameters: Parameters) -> None:
        """Restore other parameters, earlier or later ones."""
        assert self.kept is not None
        self.tables.refill(parameters.counts)
        self.used = self.tables.cut(self.config.cutoff)
        self.kept = with_shares(self.kept, parameters.shares)
        self.weights = parameters.weights
        self.held_out_perplexity = parameters.held_out_perplexity

    def model(self, vocabulary: Vocabulary, corpora: tuple[TrainingCorpus, ...]) -> PlsaModel:
        """Return the trained predictor."""
        counts = np.bincount(self.text.ids, minlength=self.words + 1).astype(np.uint64)
        counts[self.words] = len(self.text)
        return PlsaModel(
            LatticeModel(self.used, self.weights),
            self.prior,
            vocabulary,
            counts,
            self.config.model_copy(
                update={
                    "kept_mass": None if self.kept is None else self.kept.mass,
                    # A manifest holds no infinity.
                    "held_out_perplexity": self.held_out_perplexity
                    if np.isfinite(self.held_out_perplexity)
                    else None,
                }
            ),
            corpora=corpora,
        )

    def _as_kernel_text(self, text: EncodedText) -> _native.TopicText:
        return topic_text(
            text.ids, text.starts, text.document_starts, self.config.order, self.words
        )
