"""Whether a difference between two systems is more than chance.

Every function takes the seed by keyword, without a default. Differences are A minus B, of a
statistic where more is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm.errors import CorpusFormatError, UsageError
from treelm.seeds import generator
from treelm.tasks.evaluate.average_precision import (
    average_precision,
    resampled_average_precision,
)
from treelm.tasks.evaluate.resampling import (
    ROUNDS,
    Interval,
    Numbers,
    check_defined,
    check_rounds,
    checked_scores,
    percentile_interval,
    random_places,
    resampled_sums,
)

#: What is computed from the items of both systems.
Statistic = Literal["accuracy", "log_likelihood"]
#: Largest p-value considered significant.
LEVEL = 0.05
#: That all of fewer items favour one system happens by chance more often than `LEVEL` allows.
FEWEST_ITEMS = 6

_EXACT_UP_TO = 4096
_SWAPPED_AT_ONCE = 1 << 22
# Streams of random numbers; those of different tests are independent.
_BOOTSTRAP, _PRECISION, _SWAPS, _INTERVAL = range(4)


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two systems, and its significance.

    Args:
        statistic: What differs.
        difference: Of the statistic, A minus B.
        interval: 95 % interval of the difference.
        p_value: Two-sided.
        p_one_sided: For the observed direction.
        n: Number of items.
        rounds: Number of bootstrap samples.
        seed: Seed of the random numbers.
    """

    statistic: str
    difference: float
    interval: Interval
    p_value: float
    p_one_sided: float
    n: int
    rounds: int
    seed: int

    @property
    def significant(self) -> bool:
        """Whether the two-sided p-value is at most 0.05; never so with fewer than six items."""
        return self.p_value <= LEVEL and self.n >= FEWEST_ITEMS

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return asdict(self) | {"interval": list(self.interval), "significant": self.significant}


# -- paired bootstrap -----------------------------------------------------------------------


def paired_bootstrap(
    a: Sequence[float] | Numbers,
    b: Sequence[float] | Numbers,
    *,
    seed: int,
    statistic: Statistic = "accuracy",
    rounds: int = ROUNDS,
) -> Difference:
    """Compare two systems on the same items by a paired bootstrap.

    Args:
        a: Value of each item for system A: 1 for a correct answer and 0 for a wrong one, or a log
            probability.
        b: The same for system B.
        seed: Seed of the random numbers.
        statistic: The mean (``accuracy``) or the sum (``log_likelihood``).
        rounds: Number of bootstrap samples.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH``, ``E_NAN``, ``E_NO_DATA`` or ``E_UNDEFINED``.

    Examples:
        >>> found = paired_bootstrap([1, 1, 1, 1], [0, 0, 0, 0], seed=1, rounds=999)
        >>> found.difference, found.interval, found.p_value
        (1.0, Interval(low=1.0, high=1.0), 0.002)
    """
    differences = _differences(a, b)
    divisor = len(differences) if statistic == "accuracy" else 1
    return bootstrap_sums(
        differences[:, None],
        lambda sums: sums[:, 0] / divisor,
        statistic=statistic,
        seed=seed,
        rounds=rounds,
    )


def paired_bootstrap_perplexity(
    a: Sequence[float] | Numbers,
    b: Sequence[float] | Numbers,
    tokens: Sequence[float] | npt.NDArray[np.generic],
    *,
    seed: int,
    rounds: int = ROUNDS,
) -> Difference:
    """Compare the perplexities of two models on the same documents, or blocks of sentences.

    The difference is that of the mean log probability per token, which is minus the logarithm of
    the perplexity: ``exp(-difference)`` is the perplexity of A divided by that of B.

    Args:
        a: Log probability of each document by model A.
        b: The same by model B.
        tokens: Number of words and sentence ends of each document.
        seed: Seed of the random numbers.
        rounds: Number of bootstrap samples.
    """
    counts = checked_scores(tokens, "tokens")
    differences = _differences(a, b)
    _check_lengths(len(differences), len(counts))
    if not (counts > 0).all():
        raise CorpusFormatError("a document has no tokens.", code="E_UNDEFINED")
    return bootstrap_sums(
        np.stack([differences, counts], axis=1),
        lambda sums: sums[:, 0] / sums[:, 1],
        statistic="log_perplexity",
        seed=seed,
        rounds=rounds,
    )


def paired_bootstrap_average_precision(
    a: tuple[Numbers, Numbers], b: tuple[Numbers, Numbers], *, seed: int, rounds: int = ROUNDS
) -> Difference:
    """Compare the average precision of two systems; sentences are resampled within each class.

    Args:
        a: Scores of the good sentences and of the others by system A.
        b: The same by system B.
        seed: Seed of the random numbers.
        rounds: Number of bootstrap samples.
    """
    check_rounds(rounds)
    systems = [(checked_scores(g, "good"), checked_scores(w, "bad")) for g, w in (a, b)]
    for ours, theirs in zip(*systems, strict=True):
        _check_lengths(len(ours), len(theirs))
    first, second = (average_precision(*system) for system in systems)
    found = resampled_average_precision(
        systems, rounds=rounds, generator=generator(seed, _PRECISION)
    )
    return _settled(
        first - second,
        found[0] - found[1],
        statistic="average_precision",
        n=sum(map(len, systems[0])),
        seed=seed,
    )


def bootstrap_sums(
    items: Numbers,
    measure: Callable[[Numbers], Numbers],
    *,
    statistic: str,
    seed: int,
    rounds: int = ROUNDS,
) -> Difference:
    """Compare two systems by a difference that is computed from sums over items.

    Args:
        items: One row per item, with the quantities that are summed, of both systems.
        measure: Returns the difference for each row of sums.
        statistic: Name of what differs.
        seed: Seed of the random numbers.
        rounds: Number of bootstrap samples.
    """
    check_rounds(rounds)
    with np.errstate(invalid="ignore", divide="ignore"):
        seen = float(measure(items.sum(axis=0, keepdims=True))[0])
        check_defined(seen, statistic)
        sums = resampled_sums(items, rounds=rounds, generator=generator(seed, _BOOTSTRAP))
        drawn = measure(sums)
    return _settled(seen, drawn, statistic=statistic, n=len(items), seed=seed)


def _settled(seen: float, drawn: Numbers, *, statistic: str, n: int, seed: int) -> Difference:
    check_defined(seen, statistic)
    check_defined(drawn, statistic)
    against = np.count_nonzero(drawn <= 0 if seen > 0 else drawn >= 0)
    one = 1.0 if seen == 0 else (1 + int(against)) / (len(drawn) + 1)
    return Difference(
        statistic=statistic,
        difference=seen,
        interval=percentile_interval(drawn),
        p_value=min(1.0, 2 * one),
        p_one_sided=one,
        n=n,
        rounds=len(drawn),
        seed=seed,
    )


def bootstrap_mean_interval(
    values: Sequence[float] | Numbers, *, seed: int, rounds: int = ROUNDS
) -> Interval:
    """Return the 95 % interval of a mean, such as the accuracy of one system.

    Examples:
        >>> bootstrap_mean_interval([1, 1, 1], seed=1)
        Interval(low=1.0, high=1.0)
    """
    check_rounds(rounds)
    numbers = checked_scores(values, "values")
    sums = resampled_sums(numbers[:, None], rounds=rounds, generator=generator(seed, _INTERVAL))
    return percentile_interval(sums[:, 0] / len(numbers))


def bootstrap_average_precision_interval(
    good: Numbers, bad: Numbers, *, seed: int, rounds: int = ROUNDS
) -> Interval:
    """Return the 95 % interval of an average precision; resampled within each class."""
    check_rounds(rounds)
    found = resampled_average_precision(
        [(good, bad)], rounds=rounds, generator=generator(seed, _PRECISION)
    )
    return percentile_interval(found[0])


# -- exact tests ----------------------------------------------------------------------------


def sign_test(wins: int, losses: int, *, alternative: Literal["two-sided", "greater"]) -> float:
    """Return the exact p-value of wins and losses if both were equally likely; ties are left out.

    Examples:
        >>> sign_test(8, 1, alternative="two-sided"), sign_test(5, 5, alternative="two-sided")
        (0.0390625, 1.0)
    """
    if wins < 0 or losses < 0:
        raise UsageError("numbers of wins and losses cannot be negative.")
    if alternative == "greater":
        return _lower_tail(losses, wins + losses)
    return min(1.0, 2 * _lower_tail(min(wins, losses), wins + losses))


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p-value of two classifiers on the same items.

    Args:
        only_a: Number of items that only A has right.
        only_b: Number of items that only B has right.

    Examples:
        >>> mcnemar(1, 8)
        0.0390625
    """
    return sign_test(only_a, only_b, alternative="two-sided")


def _lower_tail(most: int, number: int) -> float:
    """Return the probability of at most `most` heads in `number` tosses of a coin."""
    if number <= _EXACT_UP_TO:
        total = term = 1
        for k in range(1, most + 1):
            term = term * (number - k + 1) // k
            total += term
        return total / (1 << number)
    heads = np.arange(1, most + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((number - heads + 1) / heads))])
    highest = float(logs.max())
    log_sum = highest + math.log(float(np.exp(logs - highest).sum()))
    return min(1.0, math.exp(log_sum - number * math.log(2.0)))


def approximate_randomization(
    a: Sequence[float] | Numbers,
    b: Sequence[float] | Numbers,
    *,
    seed: int,
    rounds: int = ROUNDS,
) -> float:
    """Return the two-sided p-value of a difference in sums when systems are swapped at random.

    Args:
        a: Value of each item for system A.
        b: The same for system B.
        seed: Seed of the random numbers.
        rounds: How often the systems are swapped, each item with probability 1/2.

    Raises:
        CorpusFormatError: ``E_UNDEFINED`` if a difference is infinite.

    Examples:
        >>> approximate_randomization([1, 0, 1], [1, 0, 1], seed=1)
        1.0
    """
    check_rounds(rounds)
    differences = np.sort(_differences(a, b))
    check_defined(np.where(np.isfinite(differences), 0.0, np.nan), "sums")
    seen = abs(float(differences.sum()))
    source = generator(seed, _SWAPS)
    at_once = max(1, _SWAPPED_AT_ONCE // len(differences))
    least = seen - 1e-9 * float(np.abs(differences).sum()) / max(1, len(differences))
    reached = 0
    for first in range(0, rounds, at_once):
        size = min(at_once, rounds - first)
        heads = random_places(2, size * len(differences), source).reshape(size, -1)
        sums = (2 * heads - 1).astype(np.float64) @ differences
        reached += int(np.count_nonzero(np.abs(sums) >= least))
    return (1 + reached) / (rounds + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of one family of comparisons, corrected by Holm's method.

    Examples:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise UsageError("a p-value must be between 0 and 1.")
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def _differences(a: Sequence[float] | Numbers, b: Sequence[float] | Numbers) -> Numbers:
    first, second = checked_scores(a, "system A"), checked_scores(b, "system B")
    _check_lengths(len(first), len(second))
    with np.errstate(invalid="ignore"):  # two infinities: handled later
        return first - second


def _check_lengths(first: int, second: int) -> None:
    if first != second:
        raise CorpusFormatError(
            f"there are {first} items of one system and {second} of the other; they must be the "
            "same items.",
            code="E_LENGTH_MISMATCH",
        )
