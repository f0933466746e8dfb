"""Classification of good and bad sentences by a score and a threshold.

A sentence is classified as good if its score is at least the threshold. The threshold is the one
with the best accuracy on a tuning set, never on the test set. An impossible sentence (a score of
minus infinity) is bad for every threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm.errors import UsageError
from treelm.tasks.evaluate.average_precision import average_precision
from treelm.tasks.evaluate.pair_accuracy import pair_accuracy
from treelm.tasks.evaluate.resampling import ROUNDS, Interval, Numbers, checked_scores
from treelm.tasks.evaluate.significance import (
    bootstrap_average_precision_interval,
    bootstrap_mean_interval,
)

#: ``auto`` is the log-odds ratio, or for classifiers their own score.
ScoreChoice = Literal["auto", "log_prob", "slr"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold, and its accuracy on the tuning set."""

    value: float
    accuracy: float
    n: int


def tune_threshold(good: Numbers, bad: Numbers) -> Threshold:
    """Return the threshold with the best accuracy.

    Candidates are the midpoints between successive different finite scores, and both infinities.
    Among several with the best accuracy it is the one whose share of rejected sentences is closest
    to half, then the smaller.

    Args:
        good: Scores of good sentences.
        bad: Scores of bad ones.

    Examples:
        >>> tune_threshold(np.array([2.0, 3.0]), np.array([0.0, 1.0]))
        Threshold(value=1.5, accuracy=1.0, n=4)
    """
    first, second = checked_scores(good, "good sentences"), checked_scores(bad, "bad sentences")
    number = len(first) + len(second)
    values = np.unique(np.concatenate([first, second]))
    values = values[np.isfinite(values)]
    impossible_good = int(np.isinf(first).sum())
    impossible_bad = int(np.isinf(second).sum())
    if not len(values):
        return Threshold(-math.inf, impossible_bad / number, number)
    # Candidate i rejects the i lowest finite scores.
    rejected_good = np.append(np.searchsorted(np.sort(first), values) - impossible_good, 0)
    rejected_bad = np.append(np.searchsorted(np.sort(second), values) - impossible_bad, 0)
    rejected_good[-1] = len(first) - impossible_good
    rejected_bad[-1] = len(second) - impossible_bad
    correct = (len(first) - impossible_good - rejected_good) + impossible_bad + rejected_bad
    rank = rejected_good + rejected_bad + impossible_good + impossible_bad
    rank[0] = 0  # nothing is below minus infinity
    best = np.flatnonzero(correct == correct.max())
    chosen = int(best[np.argmin(np.abs(2 * rank[best] - number))])
    return Threshold(_candidate(values, chosen), int(correct[chosen]) / number, number)


def _candidate(values: Numbers, index: int) -> float:
    if index == 0:
        return -math.inf
    if index == len(values):
        return math.inf
    low, high = float(values[index - 1]), float(values[index])
    middle = low / 2 + high / 2
    return middle if low < middle <= high else high  # adjacent floats have no midpoint


def is_called_good(
    scores: Numbers, threshold: float, *, strict: bool = False
) -> npt.NDArray[np.bool_]:
    """Return which sentences are classified as good; an impossible one never is.

    Args:
        scores: The scores.
        threshold: Smallest score of a good sentence.
        strict: Whether a score must be above it, as for classifiers that decide by their sign.
    """
    above = scores > threshold if strict else scores >= threshold
    return above & np.isfinite(scores)


@dataclass(frozen=True, slots=True)
class Classification:
    """How well good and bad sentences were classified.

    Args:
        accuracy: Share of sentences classified correctly.
        average_precision: Of the ranking by score.
        threshold: Smallest score of a good sentence.
        interval: 95 % interval of the accuracy.
        n: Number of sentences, good and bad.
        average_precision_interval: 95 % interval; sentences are resampled within each class.
        pairwise_accuracy: Share of pairs whose good sentence has the higher score, if these are
            pairs.
        pairwise_interval: Its 95 % interval.
        ties: Number of pairs with equal scores.
        good: Number of good sentences.
        bad: Number of bad sentences.
        infinite: Number of impossible sentences.
        tuning_accuracy: Accuracy on the tuning set.
        right: For every sentence, good ones first, whether it was classified correctly.
    """

    accuracy: float
    average_precision: float
    threshold: float
    interval: Interval
    n: int
    average_precision_interval: Interval
    pairwise_accuracy: float | None
    pairwise_interval: Interval | None
    ties: int | None
    good: int
    bad: int
    infinite: int
    tuning_accuracy: float | None
    right: npt.NDArray[np.bool_]
    measure: str = "score"
    signature: str | None = None

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        # JSON has no infinities, and null would not say which one it is.
        threshold = self.threshold if math.isfinite(self.threshold) else str(self.threshold)
        record: dict[str, object] = {
            "accuracy": self.accuracy,
            "average_precision": self.average_precision,
            "threshold": threshold,
            "interval": list(self.interval),
            "n": self.n,
            "average_precision_interval": list(self.average_precision_interval),
        }
        if self.pairwise_interval is not None:
            record |= {
                "pairwise_accuracy": self.pairwise_accuracy,
                "pairwise_interval": list(self.pairwise_interval),
                "ties": self.ties,
            }
        return record | {
            "good": self.good,
            "bad": self.bad,
            "infinite": self.infinite,
            "tuning_accuracy": self.tuning_accuracy,
            "measure": self.measure,
            "signature": self.signature,
        }


def classify(
    good: Numbers,
    bad: Numbers,
    threshold: Threshold | float,
    *,
    seed: int,
    paired: bool = False,
    strict: bool = False,
    rounds: int = ROUNDS,
) -> Classification:
    """Return how well a threshold separates good and bad sentences.

    Args:
        good: Scores of good sentences.
        bad: Scores of bad ones.
        threshold: Smallest score of a good sentence; it is not tuned again.
        seed: Seed of the intervals.
        paired: Whether they are pairs in the same order; then pairs are resampled for intervals.
        strict: Whether a score must be above the threshold.
        rounds: Number of bootstrap samples.
    """
    first, second = checked_scores(good, "good sentences"), checked_scores(bad, "bad sentences")
    value = threshold.value if isinstance(threshold, Threshold) else threshold
    if math.isnan(value):
        raise UsageError("a threshold cannot be NaN.")
    right = np.concatenate(
        [
            is_called_good(first, value, strict=strict),
            ~is_called_good(second, value, strict=strict),
        ]
    )
    pairs = pair_accuracy(first, second, seed=seed, rounds=rounds) if paired else None
    # The two sentences of a pair depend on each other, so they are resampled together.
    items = right.reshape(2, -1).mean(axis=0) if paired else right
    return Classification(
        accuracy=float(right.mean()),
        average_precision=average_precision(first, second),
        threshold=value,
        interval=bootstrap_mean_interval(items, seed=seed, rounds=rounds),
        n=len(right),
        average_precision_interval=bootstrap_average_precision_interval(
            first, second, seed=seed, rounds=rounds
        ),
        pairwise_accuracy=None if pairs is None else pairs.accuracy,
        pairwise_interval=None if pairs is None else pairs.interval,
        ties=None if pairs is None else pairs.ties,
        good=len(first),
        bad=len(second),
        infinite=int(np.isinf(first).sum() + np.isinf(second).sum()),
        tuning_accuracy=threshold.accuracy if isinstance(threshold, Threshold) else None,
        right=right,
    )


def learning_curve(
    sizes: Sequence[int], measure: Callable[[int], float]
) -> list[tuple[int, float]]:
    """Return a measure for several amounts of training text.

    Args:
        sizes: Numbers of sentences, increasing.
        measure: Trains on that many sentences and returns the measurement.

    Examples:
        >>> learning_curve([10, 100], lambda size: size / 200)
        [(10, 0.05), (100, 0.5)]
    """
    if any(size < 1 for size in sizes) or list(sizes) != sorted(set(sizes)):
        raise UsageError("sizes of a learning curve must be positive and increasing.")
    return [(size, measure(size)) for size in sizes]


def curve_sizes(largest: int, *, smallest: int = 1000, steps_per_decade: int = 3) -> list[int]:
    """Return sizes for a learning curve on a logarithmic scale, the largest included.

    Examples:
        >>> curve_sizes(20_000)
        [1000, 2154, 4642, 10000, 20000]
    """
    if largest < 1 or smallest < 1 or steps_per_decade < 1:
        raise UsageError("sizes of a learning curve must be positive.")
    sizes = []
    step = 0
    while (size := round(smallest * 10 ** (step / steps_per_decade))) < largest:
        sizes.append(size)
        step += 1
    return [*dict.fromkeys(sizes), largest]
