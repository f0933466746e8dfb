"""Tuning the weights of features: decode, collect hypotheses, optimise, repeat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm.corpus.nbest import NBestColumns
from treelm.corpus.words import Words
from treelm.errors import CorpusFormatError, UsageError
from treelm.parallel.progress import SILENT, Progress
from treelm.store.checkpoint import CheckpointFolder
from treelm.store.schema import ANY, Tensor
from treelm.tasks.rerank import weights_of
from treelm.translation.decoder import Decoder, Entry
from treelm.translation.hypothesis_pool import (
    KEY_BYTES,
    HypothesisPool,
    Numbers,
    PoolBuilder,
    pool_of_lists,
)
from treelm.translation.mert import RESTARTS, Tuned, mert, normalized
from treelm.translation.metrics import METRICS, Metric, MetricName
from treelm.translation.mira import EPOCHS, mira
from treelm.translation.weights import DEFAULTS, FIXED, Weights

#: How weights are found.
Method = Literal["mert", "mira"]
#: Gives n-best lists for weights.
Decode = Callable[[Weights], Iterable[NBestColumns]]
#: Names of features, and how many values each has.
Layout = Sequence[tuple[str, int]]

#: Rounds of decoding at most.
ROUNDS = 15
#: If no weight changes by more, tuning ends.
LEAST_CHANGE = 1e-4


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How weights are tuned.

    Args:
        seed: Seed of everything random.
        metric: What hypotheses are measured by.
        method: ``mert`` for few features; ``mira`` is more stable, and for many.
        restarts: Random points from which MERT starts again, in each round.
        epochs: Passes of MIRA over the sentences, in each round.
        rounds: Rounds of decoding at most.
        fixed: Features whose weights stay as they are.
    """

    seed: int
    metric: MetricName = "bleu"
    method: Method = "mert"
    restarts: int = RESTARTS
    epochs: int = EPOCHS
    rounds: int = ROUNDS
    fixed: frozenset[str] = FIXED


@dataclass(frozen=True, slots=True)
class Round:
    """A round of tuning.

    Args:
        number: From 1.
        decoded: Figure of the best hypotheses of the lists that the weights before this round gave;
            more is better, as `Metric.value` has it.
        new: Hypotheses that no list had before.
        hypotheses: All hypotheses until now.
        tuned: Figure of what the new weights choose from all of them.
        weights: The new weights.
        metric: What the figures are.
    """

    number: int
    decoded: float
    new: int
    hypotheses: int
    tuned: float
    weights: Weights
    metric: MetricName = "bleu"

    @property
    def shown(self) -> tuple[float, float]:
        """The figures of decoding and tuning as people know them."""
        metric = METRICS[self.metric]
        return metric.shown(self.decoded), metric.shown(self.tuned)

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        decoded, tuned = self.shown
        return {
            "round": self.number,
            f"decoded_{self.metric}": decoded,
            "new_hypotheses": self.new,
            "hypotheses": self.hypotheses,
            f"tuned_{self.metric}": tuned,
            "weights": {name: list(values) for name, values in self.weights.items()},
        }


@dataclass(frozen=True, slots=True)
class Tuning:
    """What tuning found.

    Args:
        weights: The weights.
        rounds: What happened in each round.
        stopped: Why it ended.
        has_fixed_lists: Whether nothing was decoded: the only round has what the start chooses.
    """

    weights: Weights
    rounds: tuple[Round, ...]
    stopped: str
    has_fixed_lists: bool = False

    @property
    def best(self) -> Round:
        """The round that found the weights."""
        return next(each for each in self.rounds if each.weights == self.weights)

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "stopped": self.stopped,
            self.best.metric: self.best.shown[1],
            "weights": {name: list(values) for name, values in self.weights.items()},
            "rounds": [each.to_record() for each in self.rounds],
        }


class TuningCheckpoint(CheckpointFolder):
    """What the last complete round of tuning left."""

    file_name = "tuning.safetensors"
    told_by = "sentences, references, models, weights or options"


def _schema(metric: Metric) -> tuple[Tensor, ...]:
    return (
        Tensor("starts", np.int64, (ANY,)),
        Tensor("keys", np.uint8, ("hypotheses", KEY_BYTES)),
        Tensor("features", np.float64, ("hypotheses", "values")),
        Tensor("statistics", np.int64, ("hypotheses", metric.columns)),
        Tensor("weights", np.float64, ("rounds", "values")),
        Tensor("figures", np.float64, ("rounds", 4)),
    )


@dataclass
class _State:
    """Where tuning stands."""

    builder: PoolBuilder
    weights: Weights
    rounds: list[Round] = field(default_factory=list)


def starting_weights(layout: Layout, given: Weights | None = None) -> Weights:
    """Return weights to start from: those given, then defaults, then 0 for features of one's own.

    Args:
        layout: The features.
        given: Weights of some of them.

    Raises:
        CorpusFormatError: ``E_FEATURE_WEIGHTS`` for weights of features that are not there.
    """
    known = Weights({}) if given is None else given
    added = {
        name: (DEFAULTS.get(name.rstrip("0123456789"), 0.0),) * count
        for name, count in layout
        if name not in known
    }
    kept = known.without(FIXED - {name for name, _ in layout})
    return weights_of(kept.replaced(added) if added else kept, layout)


def decoding(
    decoder: Decoder,
    sentences: Sequence[Words],
    *,
    n_best: int,
    threads: int = 1,
    progress: Progress = SILENT,
) -> Decode:
    """Return what gives the n-best lists of sentences for weights.

    A sentence without words has an empty hypothesis without any cost.

    Args:
        decoder: Its own weights are not used.
        sentences: The sentences.
        n_best: Hypotheses of each list at most.
        threads: Number of threads; results do not depend on it.
        progress: Shows how many sentences are done.
    """

    def decode(weights: Weights) -> Iterator[NBestColumns]:
        made = decoder.with_weights(weights)
        nothing = Entry((), 0.0, {name: (0.0,) * count for name, count in made.features.items()})
        for each in made.translate(sentences, n_best=n_best, threads=threads, progress=progress):
            entries = each.entries or (nothing,)
            size = len(entries)
            yield NBestColumns(
                str(each.number),
                [" ".join(entry.words) for entry in entries],
                [_feature_text(entry.features) for entry in entries],
                [repr(entry.score) for entry in entries],
                [()] * size,
                range(1, size + 1),
                "the decoder",
            )

    return decode


def _feature_text(features: Mapping[str, tuple[float, ...]]) -> str:
    return " ".join(f"{name}= {' '.join(map(repr, each))}" for name, each in features.items())


def tune(
    decode: Decode,
    references: Sequence[Sequence[str]],
    start: Weights,
    options: TuneOptions,
    *,
    checkpoint: tuple[Path, str] | None = None,
    resume: bool = False,
    threads: int = 1,
    on_round: Callable[[Round], None] = lambda _: None,
) -> Tuning:
    """Tune weights on sentences that are decoded again with the weights of every round.

    The lists of all rounds are kept together. Tuning ends when decoding finds nothing new, when no
    weight changes by more than 0.0001, or after a number of rounds. Unless decoding found nothing
    new, the weights are those with which decoding was best.

    Args:
        decode: Translates the sentences, the best hypothesis first.
        references: One or more translations of them, tokenized.
        start: Weights of all features of the lists.
        options: How.
        checkpoint: Folder for checkpoints, and what tells this tuning from others.
        resume: Whether to continue from the checkpoint of a tuning that was interrupted.
        threads: Number of threads of MERT; results do not depend on it.
        on_round: Told every round, those before an interruption included.

    Raises:
        CorpusFormatError: for lists that do not fit; see `PoolBuilder.add`.
        UsageError: ``E_CHECKPOINT`` if the checkpoint is that of another tuning.
    """
    state = _State(PoolBuilder(references, METRICS[options.metric]), start)
    file = None if checkpoint is None else TuningCheckpoint(checkpoint[0])
    key = "" if checkpoint is None else checkpoint[1]
    if file is not None:
        if resume:
            _restore(state, file, key)
        else:
            file.remove()
    for each in state.rounds:
        on_round(each)
    stopped = _why_to_stop(state, options, start)
    while stopped is None:
        found = _one_round(state, decode, references, options, threads)
        if file is not None:
            _save(state, file, key)
        on_round(found)
        stopped = _why_to_stop(state, options, start)
    if file is not None:
        file.remove()
    return Tuning(_chosen_weights(state), tuple(state.rounds), stopped)


def tune_on_lists(
    lists: Iterable[NBestColumns],
    references: Sequence[Sequence[str]],
    given: Weights | None,
    options: TuneOptions,
    *,
    threads: int = 1,
) -> Tuning:
    """Tune weights on lists that stay as they are.

    Args:
        lists: One for each sentence.
        references: One or more translations of the sentences, tokenized.
        given: Weights to start from; see `starting_weights`.
        options: How.
        threads: Number of threads of MERT; results do not depend on it.

    Raises:
        CorpusFormatError: for lists that do not fit; see `pool_of_lists`.
    """
    pool = pool_of_lists(lists, references, METRICS[options.metric])
    new = len(pool.features)
    start = starting_weights(pool.layout, given)
    found = optimize(pool, start, options, threads=threads)
    chosen = pool.value(pool.chosen(vector_of(start)))
    weights = weights_from(found.weights, pool.layout)
    only = Round(1, chosen, new, new, found.value, weights, options.metric)
    return Tuning(only.weights, (only,), "the lists are fixed", has_fixed_lists=True)


def vector_of(weights: Weights) -> Numbers:
    """Return weights as numbers, in their order."""
    return np.array([value for values in weights.values() for value in values])


def weights_from(vector: Numbers, layout: Layout) -> Weights:
    """Return numbers as the weights of features."""
    ends = np.cumsum([count for _, count in layout])[:-1]
    parts = np.split(vector, ends)
    return Weights({name: part.tolist() for (name, _), part in zip(layout, parts, strict=True)})


def free_weights(layout: Layout, fixed: frozenset[str]) -> npt.NDArray[np.bool_]:
    """Return which weights may be moved.

    Raises:
        UsageError: for a fixed feature that is not there, unless it is one that always is.
    """
    unknown = sorted(fixed - FIXED - {name for name, _ in layout})
    if unknown:
        raise UsageError(
            f'there is no feature "{unknown[0]}" to fix; there are: '
            f"{', '.join(name for name, _ in layout)}."
        )
    return np.array([name not in fixed for name, count in layout for _ in range(count)])


def optimize(
    pool: HypothesisPool,
    start: Weights,
    options: TuneOptions,
    *,
    stream: int = 0,
    threads: int = 1,
) -> Tuned:
    """Return the best weights for a pool of hypotheses.

    Args:
        pool: The hypotheses.
        start: Weights of its features, in their order.
        options: How.
        stream: Tells calls with the same seed apart.
        threads: Number of threads of MERT; MIRA goes from one sentence to the next in one.
    """
    free = free_weights(pool.layout, options.fixed)
    vector = vector_of(start)
    if options.method == "mira":
        return mira(
            pool, vector, seed=options.seed, free=free, epochs=options.epochs, stream=stream
        )
    return mert(
        pool,
        vector,
        seed=options.seed,
        free=free,
        restarts=options.restarts,
        stream=stream,
        threads=threads,
    )


def _one_round(
    state: _State,
    decode: Decode,
    references: Sequence[Sequence[str]],
    options: TuneOptions,
    threads: int,
) -> Round:
    lists = list(decode(state.weights))
    if not lists:
        raise CorpusFormatError("there is nothing to tune on.", code="E_NO_DATA")
    first = PoolBuilder(references, state.builder.metric)
    first.add(each.reordered([0]) for each in lists)
    chosen = first.pool()
    decoded = chosen.value(chosen.starts[:-1])
    new = state.builder.add(lists)
    pool = state.builder.pool()
    number = len(state.rounds) + 1
    start = weights_of(state.weights, pool.layout)
    found = optimize(pool, start, options, stream=number, threads=threads)
    weights = weights_from(found.weights, pool.layout)
    done = Round(number, decoded, new, len(pool.features), found.value, weights, pool.metric.name)
    state.rounds.append(done)
    state.weights = weights
    return done


def _why_to_stop(state: _State, options: TuneOptions, start: Weights) -> str | None:
    """Return why tuning ends, None if it does not."""
    if not state.rounds:
        return None
    last = state.rounds[-1]
    if not last.new:
        return "decoding found nothing new"
    before = state.rounds[-2].weights if len(state.rounds) > 1 else start
    layout = state.builder.layout or ()
    free = free_weights(layout, options.fixed)
    moved = vector_of(last.weights) - normalized(vector_of(weights_of(before, layout)), free)
    if float(np.abs(moved).max(initial=0.0)) < LEAST_CHANGE:
        return f"no weight changed by {LEAST_CHANGE:g}"
    if last.number >= options.rounds:
        return f"{options.rounds} rounds are done"
    return None


def _chosen_weights(state: _State) -> Weights:
    """Return the last weights if decoding with them would find nothing better, else the best ones.

    Where tuning did not come to rest, the last weights were never decoded with; they may be far
    from what the lists know about. Those of which the decoding was best are returned then.
    """
    *before, last = state.rounds
    if not last.new or not before:
        return last.weights
    decoded = [each.decoded for each in state.rounds[1:]]
    return before[int(np.argmax(decoded))].weights


def _save(state: _State, file: TuningCheckpoint, key: str) -> None:
    figures = [[each.decoded, each.new, each.hypotheses, each.tuned] for each in state.rounds]
    file.write(
        {
            **state.builder.tensors(),
            "weights": np.array([vector_of(each.weights) for each in state.rounds]),
            "figures": np.array(figures, dtype=np.float64),
        },
        key,
        layout=json.dumps(state.builder.layout),
    )


def _restore(state: _State, file: TuningCheckpoint, key: str) -> None:
    tables = file.open(key)
    if tables is None:
        return
    metric = state.builder.metric
    found = file.read(tables, _schema(metric))
    layout = tuple((name, count) for name, count in json.loads(tables.metadata["layout"]))
    starts = np.array(found["starts"])
    is_whole = (
        len(starts) == state.builder.sentences + 1
        and starts[0] == 0
        and (np.diff(starts) > 0).all()
        and starts[-1] == len(found["features"])
        and found["weights"].shape[1] == sum(count for _, count in layout)
    )
    if not is_whole:
        raise file.damaged("its lists do not fit the sentences")
    state.builder.restore(layout, starts, found["keys"], found["features"], found["statistics"])
    figures = found["figures"].tolist()
    for number, (row, vector) in enumerate(zip(figures, found["weights"], strict=True), 1):
        decoded, new, hypotheses, tuned = row
        weights = weights_from(np.array(vector), layout)
        state.rounds.append(
            Round(number, decoded, int(new), int(hypotheses), tuned, weights, metric.name)
        )
        state.weights = weights
