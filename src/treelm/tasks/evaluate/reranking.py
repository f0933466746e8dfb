"""Reranking n-best lists, cross-validated: what weights from other sentences choose.

Sentences are divided into contiguous folds, which keeps documents together. For each fold the
weights are tuned on all others, so that nothing is measured on what it was tuned on.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from treelm.corpus.nbest import NBestColumns
from treelm.errors import UsageError
from treelm.signature import signature
from treelm.tasks.evaluate.resampling import Numbers as Rows
from treelm.tasks.evaluate.significance import Difference, bootstrap_sums
from treelm.tasks.evaluate.translation import ROUNDS
from treelm.tasks.tune import TuneOptions, optimize, starting_weights, weights_from
from treelm.translation.hypothesis_pool import HypothesisPool, Numbers, Places, pool_of_lists
from treelm.translation.metrics import METRICS, MetricName
from treelm.translation.weights import Weights

#: Folds of the published experiment.
FOLDS = 10

_SWEEPS = 20


@dataclass(frozen=True, slots=True)
class FoldScores:
    """The figure of what was chosen, fold by fold.

    Args:
        folds: The figure of each fold.
        together: That of all folds as one text.
    """

    folds: tuple[float, ...]
    together: float

    @property
    def mean(self) -> float:
        """The mean over the folds."""
        return statistics.fmean(self.folds)

    @property
    def deviation(self) -> float:
        """The sample standard deviation over the folds."""
        return statistics.stdev(self.folds) if len(self.folds) > 1 else 0.0

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "mean_of_folds": self.mean,
            "deviation_of_folds": self.deviation,
            "together": self.together,
            "folds": list(self.folds),
        }


@dataclass(frozen=True, slots=True)
class Reranking:
    """What cross-validated reranking found.

    Args:
        sentences: Number of sentences.
        distinct: Different texts of a list, in the mean.
        first: The first hypotheses of the lists.
        reranked: What tuned weights choose.
        oracle: The figure of the best choice that was found: no weights can do better.
        tuned: The figure of the folds that the weights of each fold were tuned on.
        weights: Weights of each fold.
        difference: The figure of all folds, reranked minus first.
        chosen: Number of the hypothesis that was chosen from each list, the first being 0.
        signature: How the figure was computed, and the weights were found.
        metric: What the figure is.
    """

    sentences: int
    distinct: float
    first: FoldScores
    reranked: FoldScores
    oracle: float
    tuned: tuple[float, ...]
    weights: tuple[Weights, ...]
    difference: Difference
    chosen: tuple[int, ...]
    signature: str
    metric: MetricName = "bleu"

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "metric": self.metric,
            "sentences": self.sentences,
            "distinct_texts_per_list": self.distinct,
            "first": self.first.to_record(),
            "reranked": self.reranked.to_record(),
            "oracle": self.oracle,
            "difference": self.difference.to_record(),
            "tuned": list(self.tuned),
            "weights": [
                {name: list(values) for name, values in each.items()} for each in self.weights
            ],
            "signature": self.signature,
        }


def contiguous_folds(number: int, folds: int) -> list[range]:
    """Return the sentences of each fold; the first folds are larger by one where needed.

    Raises:
        UsageError: for less than two folds, or more folds than sentences.

    Examples:
        >>> [len(each) for each in contiguous_folds(23, 10)]
        [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]
    """
    if not 2 <= folds <= number:
        raise UsageError(
            f"{number} sentences cannot be divided into {folds} folds; there must be at least 2 "
            "folds, and a sentence for each."
        )
    size, larger = divmod(number, folds)
    ends = [fold * size + min(fold, larger) for fold in range(folds + 1)]
    return [range(first, last) for first, last in pairwise(ends)]


def cross_validate(
    lists: Sequence[NBestColumns],
    references: Sequence[Sequence[str]],
    given: Weights | None,
    options: TuneOptions,
    *,
    folds: int = FOLDS,
) -> Reranking:
    """Rerank lists with weights that are tuned on the other folds.

    Args:
        lists: One for each sentence, the best hypothesis first.
        references: One or more translations of the sentences, tokenized.
        given: Weights to start from; see `starting_weights`.
        options: How weights are tuned.
        folds: Number of folds.

    Raises:
        CorpusFormatError: for lists that do not fit; see `pool_of_lists`.
        UsageError: for a number of folds that is not possible.
    """
    pool = pool_of_lists(lists, references, METRICS[options.metric])
    distinct = float(np.mean([len(set(each.texts)) for each in lists]))
    return cross_validate_pool(
        pool, given, options, folds=folds, distinct=distinct, references=len(references)
    )


def cross_validate_pool(
    pool: HypothesisPool,
    given: Weights | None,
    options: TuneOptions,
    *,
    folds: int = FOLDS,
    distinct: float,
    references: int = 1,
) -> Reranking:
    """Rerank hypotheses, as `cross_validate` does; many sets of features can share their texts.

    Args:
        pool: The hypotheses of all sentences, the best of each first.
        given: Weights to start from; see `starting_weights`.
        options: How weights are tuned.
        folds: Number of folds.
        distinct: Different texts of a list, in the mean.
        references: Number of references that the statistics are from.

    Raises:
        UsageError: for a number of folds that is not possible.
    """
    metric = pool.metric
    parts = contiguous_folds(pool.sentences, folds)
    start = starting_weights(pool.layout, given)
    chosen = np.zeros(pool.sentences, dtype=np.int64)
    tuned, weights = [], []
    for number, part in enumerate(parts):
        others = [each for each in range(pool.sentences) if each not in part]
        found = optimize(pool.part(others), start, options, stream=number)
        chosen[part.start : part.stop] = pool.chosen(found.weights)[part.start : part.stop]
        tuned.append(metric.shown(found.value))
        weights.append(weights_from(found.weights, pool.layout))
    first = pool.starts[:-1]
    return Reranking(
        pool.sentences,
        distinct,
        _fold_scores(pool, first, parts),
        _fold_scores(pool, chosen, parts),
        metric.shown(pool.value(oracle_choice(pool))),
        tuple(tuned),
        tuple(weights),
        compare_choices(pool, chosen, first, seed=options.seed),
        tuple((chosen - first).tolist()),
        signature(
            task="reranking",
            folds=f"contiguous-{folds}",
            method=options.method,
            seed=options.seed,
            nrefs=references,
            tok="none",
            **({"smooth": "none"} if options.metric == "bleu" else {"metric": options.metric}),
        ),
        options.metric,
    )


def _fold_scores(pool: HypothesisPool, chosen: Places, parts: Sequence[range]) -> FoldScores:
    shown = pool.metric.shown
    values = [shown(pool.value(chosen[part.start : part.stop])) for part in parts]
    return FoldScores(tuple(values), shown(pool.value(chosen)))


def compare_choices(
    pool: HypothesisPool, ours: Places, theirs: Places, *, seed: int, rounds: int = ROUNDS
) -> Difference:
    """Compare two choices from the same lists by a paired bootstrap over sentences."""
    metric = pool.metric
    sign = metric.shown(1.0)  # a figure of which less is better is below 0 in the pool

    def measure(sums: Rows) -> Rows:
        more: Numbers = metric.value(sums[:, : metric.columns]) - metric.value(
            sums[:, metric.columns :]
        )
        return sign * more

    items = np.concatenate([pool.statistics[ours], pool.statistics[theirs]], axis=1)
    return bootstrap_sums(
        items.astype(np.float64), measure, statistic=metric.title, seed=seed, rounds=rounds
    )


def oracle_choice(pool: HypothesisPool) -> Places:
    """Return the best choice from all lists that is found.

    It starts with the hypotheses that are best alone, and changes one at a time for the better
    until none is left. Word errors add up, so the first choice is the best; for BLEU no method that
    takes less than exponential time is sure to find it.
    """
    chosen = pool.best(pool.metric.alone(pool.statistics))
    total = pool.statistics[chosen].sum(axis=0)
    for _ in range(_SWEEPS):
        changed = False
        for place in range(pool.sentences):
            rows = slice(int(pool.starts[place]), int(pool.starts[place + 1]))
            without = total - pool.statistics[chosen[place]]
            values = pool.metric.value(without + pool.statistics[rows])
            best = rows.start + int(np.argmax(values))
            if values[best - rows.start] > values[chosen[place] - rows.start]:
                chosen[place] = best
                total = without + pool.statistics[best]
                changed = True
        if not changed:
            break
    return chosen
