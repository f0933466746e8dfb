"""Follow-up EM: the predictor learns from all live partial parses at each word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from treelm.estimation.lattice import Floats, fixed_point
from treelm.estimation.lattice_weights import CheckEvents, LatticeModel, fit_weights
from treelm.kernel_errors import kernel_errors
from treelm.models.composite.em import Data, tables_of
from treelm.models.composite.parameter_shards import ShardedParts, as_searched
from treelm.models.composite.parsed_text import ParsedText
from treelm.models.composite.parts import (
    CompositeParts,
    Counts,
    Mixtures,
    pieces,
    shard_sentences,
)
from treelm.models.composite.round_files import Found, RoundFiles, collect
from treelm.models.run import QUIET, Run
from treelm.parallel.progress import SILENT, Progress, kernel_report, shared_step

#: Rounds in which the weights of the predictor and the shares of partial parses are alternated.
_CHECK_ROUNDS = 3
#: Number of sentences whose contexts are in memory at once: a word has dozens.
SENTENCES_AT_ONCE = 1024
#: Least number of sentences that a worker searches at a time; times a power of two it is as many.
SENTENCES_A_SHARD = 32
#: Held-out contexts with a smaller share of their word do not affect weights, and cost most time.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class Frontiers:
    """The predictor's contexts of every word and end, for all live partial parses.

    Args:
        starts: The first row of every position, and the number of rows.
        columns: Columns of the predictor without the topic, one row per context.
        outcomes: The word that follows, by row.
        shares: Share of the context among those of its position.
        sentence: The sentence of every row.
    """

    starts: np.ndarray
    columns: np.ndarray
    outcomes: np.ndarray
    shares: Floats
    sentence: np.ndarray


@dataclass(frozen=True, eq=False)
class _Search:
    """Finds the contexts of some sentences."""

    parts: CompositeParts | ShardedParts
    threads: int
    progress: Progress

    def __call__(self, data: Data) -> Frontiers:
        parts = self.parts.of_text(data.text)
        return _frontiers(parts, data, threads=self.threads, progress=self.progress)


def frontiers(parts: CompositeParts, data: Data, *, run: Run = QUIET) -> Frontiers:
    """Return all contexts of the predictor in sentences, weighted by the partial parses."""
    text = data.text
    places = list(pieces(text, _sentences_a_shard(text, run)))
    shards = (data.part(first, last) for first, last in places)
    with (
        as_searched(parts, run) as searched,
        _searching(text, run) as (within, finished),
    ):
        found = []
        work = _Search(searched, run.worker_threads, within)
        for seen, (first, last) in zip(run.executor.map(work, shards), places, strict=True):
            finished(last - first)
            found.append(seen)
    return _joined(found, [first for first, _ in places])


def _searching(
    text: ParsedText, run: Run
) -> AbstractContextManager[tuple[Progress, Callable[[float], None]]]:
    """Show how far all workers are with the partial parses of a text."""
    return shared_step(
        run.executor, run.progress, "searching partial parses", total=len(text), unit="sentences"
    )


def _sentences_a_shard(text: ParsedText, run: Run, *, has_files: bool = False) -> int:
    """Return how many sentences are searched at a time."""
    if run.executor.threads is None and not has_files:
        return SENTENCES_AT_ONCE
    return min(shard_sentences(len(text), SENTENCES_A_SHARD), SENTENCES_AT_ONCE)


def _joined(found: Sequence[Frontiers], firsts: Sequence[int]) -> Frontiers:
    """Return the contexts of pieces of a text one after the other.

    Args:
        found: The contexts of each.
        firsts: The number of the first sentence of each.
    """
    sizes = np.concatenate([np.diff(seen.starts) for seen in found])
    return Frontiers(
        np.concatenate([[0], np.cumsum(sizes)]).astype(found[0].starts.dtype),
        np.concatenate([seen.columns for seen in found]),
        np.concatenate([seen.outcomes for seen in found]),
        np.concatenate([seen.shares for seen in found]),
        np.concatenate([seen.sentence + first for seen, first in zip(found, firsts, strict=True)]),
    )


def _frontiers(
    parts: CompositeParts, data: Data, *, threads: int = 1, progress: Progress = SILENT
) -> Frontiers:
    """Return the contexts of sentences that are searched together."""
    text = data.text
    with (
        kernel_errors("searching partial parses"),
        progress.step("searching partial parses", total=len(text), unit="sentences") as step,
    ):
        starts, columns, shares = parts.search.frontiers(
            text.ids,
            text.starts,
            *data.mixtures.arrays,
            threads=threads,
            progress=kernel_report(step),
        )
    sizes = np.diff(starts).astype(np.int64)
    ends = text.starts[1:].astype(np.int64)
    following = np.insert(text.ids, ends, parts.shape.words).astype(np.uint32)
    lengths = np.diff(text.starts).astype(np.int64) + 1
    sentences = np.repeat(np.arange(len(text)), lengths)
    return Frontiers(
        starts, columns, np.repeat(following, sizes), shares, np.repeat(sentences, sizes)
    )


def frontier_weights(
    model: LatticeModel, seen: Frontiers, mixtures: Mixtures, *, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, Floats, Floats, np.ndarray]:
    """Return columns, outcomes and posterior weights of predictor events, and ln P of positions.

    With topics every context becomes one row for each topic of its sentence; the last array says
    which topic of which mixture a row belongs to.
    """
    starts = seen.starts[:-1].astype(np.int64)
    if not len(mixtures.topics):
        columns, outcomes, place = seen.columns, seen.outcomes, np.zeros(0, np.int64)
        joint = seen.shares * model.probs(columns, outcomes, threads=threads)
    else:
        first = mixtures.starts[seen.sentence].astype(np.int64)
        sizes = mixtures.starts[seen.sentence + 1].astype(np.int64) - first
        ends = np.cumsum(sizes)
        place = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes) + np.repeat(first, sizes)
        columns = np.column_stack([np.repeat(seen.columns, sizes, axis=0), mixtures.topics[place]])
        columns = np.ascontiguousarray(columns, np.uint32)
        outcomes = np.repeat(seen.outcomes, sizes)
        joint = np.repeat(seen.shares, sizes) * mixtures.shares[place]
        joint *= model.probs(columns, outcomes, threads=threads)
        starts = np.concatenate([[0], ends])[starts]
    totals = np.add.reduceat(joint, starts)
    sizes = np.diff(np.append(starts, len(joint)))
    weights = joint / np.repeat(np.maximum(totals, 1e-300), sizes)
    return columns, outcomes, weights, np.log(totals), place


def fit_predictor(
    model: LatticeModel, seen: Frontiers, mixtures: Mixtures, *, threads: int = 1
) -> LatticeModel:
    """Return the predictor with weights under which held-out words are more likely."""
    for _ in range(_CHECK_ROUNDS):
        columns, outcomes, weights, _, _ = frontier_weights(model, seen, mixtures, threads=threads)
        kept = weights > _LEAST_SHARE
        events = CheckEvents(
            np.ascontiguousarray(columns[kept]), outcomes[kept], np.ascontiguousarray(weights[kept])
        )
        model = LatticeModel(model.tables, fit_weights(model.tables, events, threads=threads))
    return model


def follow_up_step(
    frozen: CompositeParts,
    model: LatticeModel,
    train: Data,
    check: tuple[Frontiers, Mixtures] | None,
    *,
    run: Run = QUIET,
    files: RoundFiles | None = None,
) -> tuple[LatticeModel, float, Counts]:
    """Return the predictor after one round of the follow-up EM, and the log-likelihood before it.

    Args:
        frozen: The parts at the end of N-best EM, which determine the partial parses.
        model: The predictor now.
        train: Sentences.
        check: Contexts of held-out sentences for finding weights; None keeps the weights.
        run: How the training is run.
        files: Where pieces of the round are kept; None to keep none.
    """
    shape, text = frozen.shape, train.text
    collectors = {"predictor": shape.collectors(run.threads)["predictor"]}
    topic_counts, log_probs, log_likelihood = [], [], []
    size = _sentences_a_shard(text, run, has_files=files is not None)
    places = list(pieces(text, size))
    now = CompositeParts(shape, {"predictor": model})
    with (
        as_searched(frozen, run) as searched,
        as_searched(now, run, "predictor") as predicting,
        _searching(text, run) as (within, finished),
    ):
        found = collect(
            _Expect(searched, predicting, run.worker_threads, within),
            train.part,
            places,
            collectors,
            run=run,
            files=files,
            finished=finished,
        )
        for others, (_, last) in zip(found, places, strict=True):
            topic_counts.append(others["topic_counts"])
            log_probs.append(others["log_probs"])
            # The pieces that are summed up are part of the result, whatever the shards are.
            if last % SENTENCES_AT_ONCE == 0 or last == len(text):
                log_likelihood.append(float(np.sum(np.concatenate(log_probs))))
                log_probs = []
    made = LatticeModel(tables_of(shape, "predictor", collectors["predictor"]), model.weights)
    if check is not None:
        made = fit_predictor(made, *check, threads=run.threads)
    return made, math.fsum(log_likelihood), np.concatenate(topic_counts)


@dataclass(frozen=True, eq=False)
class _Expect:
    """The E-step of the follow-up over some sentences.

    Args:
        frozen: The parts that determine the partial parses.
        now: The predictor now.
        threads: Number of threads.
        progress: Progress callback.
    """

    frozen: CompositeParts | ShardedParts
    now: CompositeParts | ShardedParts
    threads: int
    progress: Progress

    def __call__(self, data: Data) -> Found:
        frozen = self.frozen.of_text(data.text)
        seen = _frontiers(frozen, data, threads=self.threads, progress=self.progress)
        model = self.now.of_text(data.text).models["predictor"]
        columns, outcomes, weights, log_probs, places = frontier_weights(
            model, seen, data.mixtures, threads=self.threads
        )
        counts = fixed_point(weights)
        topic_counts = np.zeros(len(data.mixtures.topics), np.int64)
        if len(places):
            np.add.at(topic_counts, places, counts)
        kept = counts > 0
        rows = np.ascontiguousarray(columns[kept]), outcomes[kept], counts[kept]
        return Found({"predictor": rows}, {"topic_counts": topic_counts, "log_probs": log_probs})
