"""How well the surprisal of models predicts reading times: psychometric predictive power.

A model's power is the log likelihood per word that its surprisal adds to a regression of log
reading times, on words that the regression was not fitted to (Goodkind and Bicknell 2018, Wilcox et
al. 2020). Sentences are left out as wholes, because neighbouring words are read alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from treelm.errors import UsageError, option
from treelm.tasks.evaluate.reading_times import (
    Integers,
    ReadingTable,
    base_predictors,
    fit_reading,
)
from treelm.tasks.evaluate.regression import LikelihoodRatio, Numbers, likelihood_ratio
from treelm.tasks.evaluate.resampling import ROUNDS, Interval, percentile_interval, resampled_sums
from treelm.view.chart_data import Point, Reference, Series
from treelm.view.point_charts import draw_scatter


@dataclass(frozen=True, slots=True)
class HeldOutGain:
    """What a model adds to the log likelihood of words that no regression was fitted to.

    Args:
        per_word: Natural log likelihood per observation.
        folds: Number of parts into which sentences were divided.
        over_sentences: 95 % bootstrap interval over sentences.
        over_items: The same over texts; None for fewer than three.
        over_readers: The same over readers; None for means.
    """

    per_word: float
    folds: int
    over_sentences: Interval
    over_items: Interval | None
    over_readers: Interval | None

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        intervals = {
            "interval_sentences": self.over_sentences,
            "interval_items": self.over_items,
            "interval_readers": self.over_readers,
        }
        return {
            "per_word": self.per_word,
            "folds": self.folds,
            **{name: None if each is None else list(each) for name, each in intervals.items()},
        }


@dataclass(frozen=True, slots=True)
class Power:
    """What the surprisal of a model adds to the prediction of reading times.

    Args:
        model: Name of the model.
        over: Names of the models in the baseline; none where it has length, frequency and position
            only.
        words: ``all``, or ``known`` where words that some model does not know are left out.
        coefficients: Of the model's surprisal, by column: log time per standard deviation.
        t: The first of these, that of the word itself, in standard errors.
        robust_t: The same in errors that allow for autocorrelation.
        autocorrelation: Of the residuals of neighbouring words.
        ratio: Gain in log likelihood where all words are fitted, and its test.
        held_out: The gain on words that are not.
    """

    model: str
    over: tuple[str, ...]
    words: str
    coefficients: Mapping[str, float]
    t: float
    robust_t: float
    autocorrelation: float
    ratio: LikelihoodRatio
    held_out: HeldOutGain

    def named(self, model: str, over: Sequence[str]) -> Power:
        """Return the same with names of models instead of those of columns."""
        return replace(self, model=model, over=tuple(over))

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "model": self.model,
            "over": list(self.over),
            "words": self.words,
            "n": self.ratio.n,
            "coefficients": dict(self.coefficients),
            "t": self.t,
            "robust_t": _or_none(self.robust_t),
            "autocorrelation": _or_none(self.autocorrelation),
            "delta_log_likelihood": self.ratio.delta_log_likelihood,
            "per_observation": self.ratio.per_observation,
            "predictors_added": self.ratio.predictors,
            "p_value": self.ratio.p_value,
            "cross_validated": self.held_out.to_record(),
        }


def _or_none(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None


def power(
    table: ReadingTable,
    model: str,
    over: Sequence[str] = (),
    *,
    words: str = "all",
    folds: int = 10,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Power:
    """Return what a model's surprisal adds, of the word and of those before it.

    Args:
        table: Words with times and predictors.
        model: Column of its surprisal.
        over: Columns of other models' surprisal that are in the baseline.
        words: For the record: which words the table has.
        folds: Number of parts into which sentences are divided.
        seed: Seed of the division and of the intervals.
        rounds: Number of bootstrap samples.
    """
    base = base_predictors(table, over)
    smaller, larger = fit_reading(table, base), fit_reading(table, [*base, model])
    added = table.labels([model])
    return Power(
        model,
        tuple(over),
        words,
        {label: larger.coefficient(label) for label in added},
        larger.t(model),
        larger.robust_t(model, table.order),
        table.order.autocorrelation(larger.residuals),
        likelihood_ratio(smaller, larger),
        held_out_gain(table, base, [*base, model], folds=folds, seed=seed, rounds=rounds),
    )


def held_out_gain(
    table: ReadingTable,
    smaller: Sequence[str],
    larger: Sequence[str],
    *,
    folds: int,
    seed: int,
    rounds: int = ROUNDS,
) -> HeldOutGain:
    """Return the gain of more predictors on words that the regression was not fitted to."""
    gains = held_out_likelihoods(table, larger, folds=folds, seed=seed)
    gains -= held_out_likelihoods(table, smaller, folds=folds, seed=seed)

    def interval(groups: Integers, least: int) -> Interval | None:
        numbers = np.unique(groups, return_inverse=True)[1]
        if int(numbers.max()) + 1 < least:
            return None
        sums = np.column_stack([np.bincount(numbers, gains), np.bincount(numbers).astype(float)])
        generator = np.random.Generator(np.random.PCG64(seed))
        drawn = resampled_sums(sums, rounds=rounds, generator=generator)
        return percentile_interval(drawn[:, 0] / drawn[:, 1])

    over_sentences = interval(table.sentences, 1)
    assert over_sentences is not None  # there is always one
    return HeldOutGain(
        float(gains.mean()),
        folds,
        over_sentences,
        interval(table.items, 3),
        interval(table.reader_numbers, 2),
    )


def held_out_likelihoods(
    table: ReadingTable, names: Sequence[str], *, folds: int, seed: int
) -> Numbers:
    """Return the log likelihood of each log time by a regression fitted to other sentences.

    Args:
        table: Words with times and predictors.
        names: Predictors.
        folds: Number of parts; each is predicted by all others.
        seed: Seed of the division.

    Raises:
        UsageError: if there are fewer sentences than parts.
    """
    fold_of = _folds(table.sentences, folds, seed)
    columns = [table.predictors[label] for label in table.labels(names)]
    # Scaling makes the equations well behaved and changes no prediction.
    matrix = np.column_stack([(each - each.mean()) / each.std() for each in columns])
    found = np.empty(len(table))
    for fold in range(folds):
        test = fold_of == fold
        found[test] = _predicted(table, matrix, test)
    return found


def _folds(sentences: Integers, folds: int, seed: int) -> Integers:
    numbers, places = np.unique(sentences, return_inverse=True)
    if folds < 2 or len(numbers) < folds:
        raise UsageError(
            f"{len(numbers)} sentences cannot be divided into {folds} parts for "
            f"{option('cross_validate')}."
        )
    raw = np.random.PCG64(seed).random_raw(len(numbers))
    ranks = np.argsort(np.argsort(np.asarray(raw, np.uint64), kind="stable"), kind="stable")
    return (ranks % folds).astype(np.int64)[places]


def _predicted(table: ReadingTable, matrix: Numbers, test: npt.NDArray[np.bool_]) -> Numbers:
    """Return the log likelihoods of the rows of one part, by the means of readers elsewhere."""
    train = ~test
    numbers = table.reader_numbers
    readers = int(numbers.max()) + 1
    size = np.bincount(numbers[train], minlength=readers).astype(float)

    def centred(values: Numbers) -> Numbers:
        """Take out the mean of each reader over the other parts, or that of all readers."""
        sums = np.bincount(numbers[train], values[train], minlength=readers)
        means = np.where(size > 0, sums / np.maximum(size, 1), values[train].mean())
        return np.asarray(values - means[numbers], np.float64)

    times = centred(table.log_times)
    inputs = np.column_stack([centred(column) for column in matrix.T])
    weights = np.linalg.lstsq(inputs[train], times[train], rcond=None)[0]
    residuals = times - inputs @ weights
    variance = float((residuals[train] ** 2).mean())
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + residuals[test] ** 2 / variance))


def draw_power(results: Sequence[Power], perplexities: Mapping[str, float]) -> str:
    """Return a picture: what each model adds, against its perplexity.

    Args:
        results: One for each model.
        perplexities: By model.
    """
    series = []
    for each in results:
        gain = each.held_out
        low, high = gain.over_sentences
        point = Point(perplexities[each.model], gain.per_word, low, high, each.model)
        series.append(Series(each.model, (point,)))
    return draw_scatter(
        series,
        title="Predictive power of surprisal for reading times",
        x_axis="perplexity",
        y_axis="delta log likelihood per word, cross-validated",
        log_x=True,
        reference=Reference(0.0, "nothing added"),
    )
