"""N-best EM over parses.

Counts are whole multiples of 2^-30 and sums are exact, so the result does not depend on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from treelm.estimation.lattice import Floats, Ids, LatticeEvents, LatticeTables
from treelm.estimation.lattice_weights import LatticeModel
from treelm.models.composite.parameter_shards import ShardedParts, as_searched
from treelm.models.composite.parsed_text import ParsedText, ParseLists
from treelm.models.composite.parts import (
    NO_TOPICS,
    SENTENCES_AT_ONCE,
    CompositeParts,
    CompositeShape,
    Counts,
    Mixtures,
    Rows,
    check_events,
    pieces,
    shard_sentences,
    weighted,
)
from treelm.models.composite.round_files import Arrays, Collector, Found, RoundFiles, collect
from treelm.models.run import QUIET, Run
from treelm.parallel.progress import Progress, shared_step

#: Least number of sentences that a worker searches at a time.
SENTENCES_A_SHARD = 32


@dataclass(frozen=True, eq=False)
class Data:
    """Sentences and the topics of each.

    Args:
        text: The sentences, with one parse each.
        mixtures: Their topics.
        word_shares: For every word, the shares of the topics of its sentence, before there is a
            predictor.
    """

    text: ParsedText
    mixtures: Mixtures = NO_TOPICS
    word_shares: Floats | None = None

    def part(self, first: int, last: int) -> Data:
        """Return some of the sentences, for a search."""
        return Data(self.text.part(first, last), self.mixtures.part(first, last))


@dataclass(frozen=True, eq=False)
class Estimate:
    """The result of one round of EM.

    Args:
        parts: The new lattices.
        log_likelihood: Of the training sentences under the parts before.
        lists: The parses that were counted.
        topic_counts: Number of words of each topic of each mixture.
    """

    parts: CompositeParts
    log_likelihood: float
    lists: ParseLists
    topic_counts: Counts


def first_parts(
    shape: CompositeShape, train: Data, held_out: Data | None, *, threads: int = 1
) -> tuple[CompositeParts, Counts]:
    """Return the lattices of given parses, with weights from those of held-out sentences.

    Args:
        shape: The sizes of everything.
        train: Sentences with parses.
        held_out: Held-out sentences; None for equal weights.
        threads: Number of threads.
    """
    collectors = shape.collectors(threads)
    topic_counts = []
    place = 0
    for first, last in pieces(train.text):
        part, mixtures = train.text.part(first, last), train.mixtures.part(first, last)
        shares = None
        if train.word_shares is not None:
            sizes = np.diff(part.starts).astype(np.int64) * np.diff(mixtures.starts).astype(
                np.int64
            )
            shares = train.word_shares[place : place + int(sizes.sum())]
            place += int(sizes.sum())
        rows, topics = shape.events(
            part, part.lists, np.ones(len(part)), mixtures, shares, threads=threads
        )
        topic_counts.append(topics)
        for name, collector in collectors.items():
            collector.add(*rows[name])
    tables = {part: tables_of(shape, part, each) for part, each in collectors.items()}
    check = None
    if held_out is not None:
        rows, _ = shape.events(
            held_out.text,
            held_out.text.lists,
            np.ones(len(held_out.text)),
            held_out.mixtures,
            held_out.word_shares,
            threads=threads,
        )
        check = check_events(rows)
    models = weighted(tables, check, threads=threads)
    return CompositeParts(shape, models), np.concatenate(topic_counts)


def tables_of(shape: CompositeShape, part: str, events: LatticeEvents) -> LatticeTables:
    """Return the tables of a part; those of the predictor without rare types."""
    return events.tables(cutoff=shape.config.least_count if part == "predictor" else 0.0)


def posteriors(lists: ParseLists) -> tuple[Floats, Floats]:
    """Return the share of every parse in its list, and the log-likelihood of every sentence."""
    sizes = np.diff(lists.sentence_starts).astype(np.int64)
    if np.any(sizes == 0):
        raise ValueError("a sentence has no parse")
    starts = lists.sentence_starts[:-1].astype(np.int64)
    best = np.maximum.reduceat(lists.log_probs, starts)
    weights = np.exp(lists.log_probs - np.repeat(best, sizes))
    totals = np.add.reduceat(weights, starts)
    return weights / np.repeat(totals, sizes), best + np.log(totals)


def better_lists(new: ParseLists, old: ParseLists) -> ParseLists:
    """Return for every sentence the list under which it is more likely, the new one if equal."""
    take_old = np.flatnonzero(posteriors(old)[1] > posteriors(new)[1])
    if not len(take_old):
        return new
    chosen = [(new, sentence) for sentence in range(len(new.sentence_starts) - 1)]
    for sentence in take_old.tolist():
        chosen[sentence] = (old, sentence)
    actions, log_probs, sizes, lengths = [], [], [0], [0]
    for lists, sentence in chosen:
        first, last = (int(place) for place in lists.sentence_starts[sentence : sentence + 2])
        starts = lists.action_starts[first : last + 1].astype(np.int64)
        actions.append(lists.actions[starts[0] : starts[-1]])
        log_probs.append(lists.log_probs[first:last])
        sizes.append(last - first)
        lengths.extend(np.diff(starts).tolist())
    return ParseLists(
        np.cumsum(sizes, dtype=np.uint64),
        np.concatenate(actions),
        np.cumsum(lengths, dtype=np.uint64),
        np.concatenate(log_probs),
    )


def part_of_lists(lists: ParseLists, first: int, last: int) -> ParseLists:
    """Return the lists of some sentences."""
    sentences = lists.sentence_starts[first : last + 1]
    parses = slice(int(sentences[0]), int(sentences[-1]))
    starts = lists.action_starts[parses.start : parses.stop + 1]
    return ParseLists(
        sentences - sentences[0],
        lists.actions[int(starts[0]) : int(starts[-1])],
        starts - starts[0],
        lists.log_probs[parses],
    )


def joined_lists(parts: Iterable[ParseLists]) -> ParseLists:
    """Return the lists of texts one after the other."""
    lists = list(parts)
    sizes = [np.diff(each.sentence_starts) for each in lists]
    lengths = [np.diff(each.action_starts) for each in lists]
    return ParseLists(
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.uint64),
        np.concatenate([each.actions for each in lists]),
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.uint64),
        np.concatenate([each.log_probs for each in lists]),
    )


@dataclass(frozen=True, eq=False)
class _Expect:
    """The E-step of N-best EM over some sentences.

    Args:
        parts: The lattices that search.
        threads: Number of threads.
        progress: Progress callback.
    """

    parts: CompositeParts | ShardedParts
    threads: int
    progress: Progress

    def __call__(self, shard: tuple[Data, ParseLists | None]) -> Found:
        data, before = shard
        text, mixtures = data.text, data.mixtures
        parts = self.parts.of_text(text)
        lists = parts.best_parses(
            text,
            mixtures,
            count=parts.shape.config.n_best,
            threads=self.threads,
            progress=self.progress,
        )
        if before is not None:
            again = parts.score_parses(text, before, mixtures, threads=self.threads)
            lists = better_lists(lists, replace(before, log_probs=again))
        weights, log_likelihoods = posteriors(lists)
        rows, topics = parts.events(text, lists, weights, mixtures, threads=self.threads)
        return Found(
            {part: rows[part] for part in parts.shape.lattices},
            {**vars(lists), "log_likelihoods": log_likelihoods, "topic_counts": topics},
        )


def expectations(
    parts: CompositeParts,
    data: Data,
    before: ParseLists | None,
    collectors: Mapping[str, Collector],
    *,
    run: Run,
    files: RoundFiles | None = None,
) -> Iterator[Arrays]:
    """Collect the events of sentences, and yield, piece by piece, what belongs to them.

    Args:
        parts: The lattices that search.
        data: The sentences.
        before: Parses of the round before, if there are any.
        collectors: What collects the events of each part.
        run: Who does it.
        files: Where pieces are kept; None to send them here.
    """

    def cut(first: int, last: int) -> tuple[Data, ParseLists | None]:
        lists = None if before is None else part_of_lists(before, first, last)
        return data.part(first, last), lists

    is_small = files is not None or run.executor.threads is not None
    size = shard_sentences(len(data.text), SENTENCES_A_SHARD) if is_small else SENTENCES_AT_ONCE
    with (
        as_searched(parts, run) as searched,
        shared_step(
            run.executor, run.progress, "searching parses", total=len(data.text), unit="sentences"
        ) as (within, finished),
    ):
        yield from collect(
            _Expect(searched, run.worker_threads, within),
            cut,
            list(pieces(data.text, size)),
            collectors,
            run=run,
            files=files,
            finished=finished,
        )


class _AllRows:
    """Collects events in the order in which they come."""

    def __init__(self) -> None:
        self.rows: list[Rows] = []

    def add(self, columns: Ids, outcomes: Ids, counts: Counts) -> None:
        """Add events."""
        self.rows.append((columns, outcomes, counts))

    def joined(self) -> Rows:
        """Return all events."""
        columns, outcomes, counts = zip(*self.rows, strict=True)
        return np.concatenate(columns), np.concatenate(outcomes), np.concatenate(counts)


def n_best_step(
    parts: CompositeParts,
    train: Data,
    held_out: Data | None,
    before: ParseLists | None,
    *,
    run: Run = QUIET,
    files: RoundFiles | None = None,
    fit: Callable[..., dict[str, LatticeModel]] = weighted,
) -> Estimate:
    """Return the result of one round of N-best EM.

    Args:
        parts: The lattices that search.
        train: Sentences.
        held_out: Sentences on which weights are found; None for equal weights.
        before: Parses of the round before; a list is kept where it is more likely than the new one.
        run: How the training is run.
        files: Where pieces of the round are kept; None to keep none.
        fit: Finds the weights of tables; tests use others.
    """
    shape = parts.shape
    collectors = shape.collectors(run.threads)
    found = list(expectations(parts, train, before, collectors, run=run, files=files))
    tables = {part: tables_of(shape, part, each) for part, each in collectors.items()}
    check = None
    if held_out is not None:
        seen = {part: _AllRows() for part in collectors}
        for _ in expectations(parts, held_out, None, seen, run=run):
            pass  # the events are all that is wanted
        check = check_events({part: each.joined() for part, each in seen.items()})
    models = fit(tables, check, threads=run.threads)
    names = [item.name for item in fields(ParseLists)]
    return Estimate(
        CompositeParts(shape, models),
        math.fsum(np.concatenate([each["log_likelihoods"] for each in found]).tolist()),
        joined_lists(ParseLists(*(each[name] for name in names)) for each in found),
        np.concatenate([each["topic_counts"] for each in found]),
    )
