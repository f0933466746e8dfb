"""N-best EM over parses, and the follow-up EM of the predictor over partial parses.

Counts are whole multiples of 2^-30 and sums are exact, so the result does not depend on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from treelm.estimation.lattice import Floats, LatticeTables, fixed_point
from treelm.estimation.lattice_weights import CheckEvents, LatticeModel, fit_weights
from treelm.kernel_errors import kernel_errors
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
from treelm.parallel.progress import SILENT, Progress, kernel_report

#: Rounds in which the weights of the predictor and the shares of partial parses follow each other.
_CHECK_ROUNDS = 3
#: Held-out contexts with a smaller share of their word do not move weights, and cost most time.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class Data:
    """Sentences and the topics of each.

    Args:
        text: The sentences, with one parse each.
        mixtures: Their topics.
        word_shares: For every word its shares of the topics of its sentence, before there is a
            predictor.
    """

    text: ParsedText
    mixtures: Mixtures = NO_TOPICS
    word_shares: Floats | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """What one round of EM leaves.

    Args:
        parts: The new lattices.
        log_likelihood: Of the training sentences under the parts before.
        lists: The parses that were counted.
        topic_counts: Words of each topic of each mixture.
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
        shape: How large everything is.
        train: Sentences with parses.
        held_out: Others; None for equal weights.
        threads: Kernel threads; results do not depend on it.
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
    tables = {name: cut(collector.tables(), name, shape) for name, collector in collectors.items()}
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


def cut(tables: LatticeTables, part: str, shape: CompositeShape) -> LatticeTables:
    """Return the tables of the predictor without rare types, any others as they are."""
    return tables.cut(shape.config.least_count) if part == "predictor" else tables


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
    """Return for every sentence the list under which it is likelier, the new one if both are."""
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
        before: Parses of the round before; a list stays where it is likelier than the new one.
        threads: Kernel threads; results do not depend on it.
        progress: Told how far it is.
        fit: Puts weights on tables; tests use others.
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
    tables = {name: cut(collector.tables(), name, shape) for name, collector in collectors.items()}
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


# -- follow-up ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Frontiers:
    """What the predictor sees before every word and end, for all partial parses that are alive.

    Args:
        starts: The first row of every position, and the number of rows.
        columns: Columns of the predictor without the topic, one row a context.
        outcomes: The word that follows, by row.
        shares: Share of the context among those of its position.
        sentence: The sentence of every row.
    """

    starts: np.ndarray
    columns: np.ndarray
    outcomes: np.ndarray
    shares: Floats
    sentence: np.ndarray


def frontiers(
    parts: CompositeParts, data: Data, *, threads: int = 1, progress: Progress = SILENT
) -> Frontiers:
    """Return all contexts of the predictor in sentences, weighed by the partial parses."""
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
    model: LatticeModel, seen: Frontiers, mixtures: Mixtures
) -> tuple[np.ndarray, np.ndarray, Floats, float, np.ndarray]:
    """Return columns, outcomes and posterior weights of predictor events, and the log-likelihood.

    With topics every context becomes one row for each topic of its sentence; the last array says
    which topic of which mixture a row belongs to.
    """
    starts = seen.starts[:-1].astype(np.int64)
    if not len(mixtures.topics):
        columns, outcomes, place = seen.columns, seen.outcomes, np.zeros(0, np.int64)
        joint = seen.shares * model.probs(columns, outcomes)
    else:
        first = mixtures.starts[seen.sentence].astype(np.int64)
        sizes = mixtures.starts[seen.sentence + 1].astype(np.int64) - first
        ends = np.cumsum(sizes)
        place = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes) + np.repeat(first, sizes)
        columns = np.column_stack([np.repeat(seen.columns, sizes, axis=0), mixtures.topics[place]])
        columns = np.ascontiguousarray(columns, np.uint32)
        outcomes = np.repeat(seen.outcomes, sizes)
        joint = np.repeat(seen.shares, sizes) * mixtures.shares[place]
        joint *= model.probs(columns, outcomes)
        starts = np.concatenate([[0], ends])[starts]
    totals = np.add.reduceat(joint, starts)
    sizes = np.diff(np.append(starts, len(joint)))
    weights = joint / np.repeat(np.maximum(totals, 1e-300), sizes)
    return columns, outcomes, weights, float(np.sum(np.log(totals))), place


def fit_predictor(
    model: LatticeModel, seen: Frontiers, mixtures: Mixtures, *, threads: int = 1
) -> LatticeModel:
    """Return the predictor with weights under which held-out words are likelier."""
    for _ in range(_CHECK_ROUNDS):
        columns, outcomes, weights, _, _ = frontier_weights(model, seen, mixtures)
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
    threads: int = 1,
    progress: Progress = SILENT,
) -> tuple[LatticeModel, float, Counts]:
    """Return the predictor after one round of the follow-up EM, and the log-likelihood before it.

    Args:
        frozen: The parts at the end of N-best EM, which say which partial parses there are.
        model: The predictor now.
        train: Sentences.
        check: Contexts of held-out sentences on which weights are found; None keeps the weights.
        threads: Kernel threads; results do not depend on it.
        progress: Told how far it is.
    """
    shape = frozen.shape
    collector = shape.collectors(threads)["predictor"]
    topic_counts = np.zeros(len(train.mixtures.topics), np.int64)
    log_likelihood = []
    for first, last in pieces(train.text):
        data = Data(train.text.part(first, last), train.mixtures.part(first, last))
        seen = frontiers(frozen, data, threads=threads, progress=progress)
        columns, outcomes, weights, likelihood, place = frontier_weights(model, seen, data.mixtures)
        counts = fixed_point(weights)
        log_likelihood.append(likelihood)
        if len(place):
            before = int(train.mixtures.starts[first])
            np.add.at(topic_counts, place + before, counts)
        kept = counts > 0
        collector.add(np.ascontiguousarray(columns[kept]), outcomes[kept], counts[kept])
    tables = cut(collector.tables(), "predictor", shape)
    made = LatticeModel(tables, model.weights)
    if check is not None:
        made = fit_predictor(made, *check, threads=threads)
    return made, math.fsum(log_likelihood), topic_counts
