"""N-best EM over parses.

Counts are whole multiples of 2^-30 and sums are exact, so the result does not depend on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from treelm.estimation.lattice import Floats, LatticeEvents, LatticeTables
from treelm.estimation.lattice_weights import LatticeModel
from treelm.models.composite.parsed_text import ParsedText, ParseLists
from treelm.models.composite.parts import (
    NO_TOPICS,
    CompositeParts,
    CompositeShape,
    Counts,
    Mixtures,
    check_events,
    pieces,
    weighted,
)
from treelm.parallel.progress import SILENT, Progress


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


def n_best_step(
    parts: CompositeParts,
    train: Data,
    held_out: Data | None,
    before: ParseLists | None,
    *,
    threads: int = 1,
    progress: Progress = SILENT,
    fit: Callable[..., dict[str, LatticeModel]] = weighted,
) -> Estimate:
    """Return the result of one round of N-best EM.

    Args:
        parts: The lattices that search.
        train: Sentences.
        held_out: Sentences on which weights are found; None for equal weights.
        before: Parses of the round before; a list is kept where it is more likely than the new one.
        threads: Number of threads.
        progress: Progress callback.
        fit: Finds the weights of tables; tests use others.
    """
    shape, count = parts.shape, parts.shape.config.n_best
    lists = parts.best_parses(
        train.text, train.mixtures, count=count, threads=threads, progress=progress
    )
    if before is not None:
        again = parts.score_parses(train.text, before, train.mixtures, threads=threads)
        lists = better_lists(lists, replace(before, log_probs=again))
    weights, log_likelihoods = posteriors(lists)
    collectors = shape.collectors(threads)
    topic_counts = []
    for first, last in pieces(train.text):
        chosen = part_of_lists(lists, first, last)
        own = slice(int(lists.sentence_starts[first]), int(lists.sentence_starts[last]))
        rows, topics = parts.events(
            train.text.part(first, last),
            chosen,
            weights[own],
            train.mixtures.part(first, last),
            threads=threads,
        )
        topic_counts.append(topics)
        for name, collector in collectors.items():
            collector.add(*rows[name])
    tables = {part: tables_of(shape, part, each) for part, each in collectors.items()}
    check = None
    if held_out is not None:
        found = parts.best_parses(held_out.text, held_out.mixtures, count=count, threads=threads)
        rows, _ = parts.events(
            held_out.text, found, posteriors(found)[0], held_out.mixtures, threads=threads
        )
        check = check_events(rows)
    models = fit(tables, check, threads=threads)
    return Estimate(
        CompositeParts(shape, models),
        math.fsum(log_likelihoods.tolist()),
        lists,
        np.concatenate(topic_counts),
    )
