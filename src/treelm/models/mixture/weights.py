"""Weights of a mixture: checked, and found by expectation maximization on held-out text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError, UsageError

#: How far from 1 the sum of weights may be.
TOLERANCE = 1e-6
_HUGE = 1e6
#: Iteration ends when the log likelihood of a word grows by less.
SMALLEST_GAIN = 1e-10
MOST_ITERATIONS = 1000


@dataclass(frozen=True, slots=True)
class WeightFit:
    """Weights found on held-out text.

    Args:
        weights: One for each part; they add up to 1.
        log_likelihoods: Log likelihood of the text before each iteration and after the last; it
            never falls.
    """

    weights: tuple[float, ...]
    log_likelihoods: tuple[float, ...]


def check_weights(weights: Sequence[float], parts: int) -> tuple[float, ...]:
    """Return weights that add up to 1 as exactly as numbers can.

    Raises:
        UsageError: ``E_WEIGHTS`` if there are too few or too many, one is negative or no number, or
            they do not add up to 1.

    Examples:
        >>> check_weights([0.5, 0.5], 2)
        (0.5, 0.5)
    """
    given = [float(weight) for weight in weights]
    # Weights far beyond 1 are refused anyway, and their sum may not be a number.
    total = math.fsum(given) if all(abs(weight) < _HUGE for weight in given) else math.inf
    if len(given) != parts:
        what = f"there are {len(given)} weights for {parts} models"
    elif any(not weight >= 0.0 for weight in given):
        what = f"a weight is negative or no number: {given}"
    elif abs(total - 1.0) > TOLERANCE:
        what = f"the weights add up to {total}, not to 1: {given}"
    else:
        return tuple(weight / total for weight in given)
    raise UsageError(
        f"{what}. Give one weight from 0 to 1 for each model, adding up to 1, or let "
        "`treelm train interpolated` find them on held-out text.",
        code="E_WEIGHTS",
    )


def fit_weights(log_probs: npt.NDArray[np.float64]) -> WeightFit:
    """Return the weights that make a text most likely.

    Args:
        log_probs: What each part (column) says about each word or sentence (row). Rows that are
            impossible for every part count nowhere.

    Raises:
        EstimationError: if there is nothing to learn from.

    Examples:
        >>> fit = fit_weights(np.log([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8]]))
        >>> [round(weight, 3) for weight in fit.weights]
        [0.778, 0.222]
    """
    if np.isnan(log_probs).any():
        raise EstimationError(
            "the held-out probabilities contain NaN: one of the models is damaged."
        )
    largest = log_probs.max(axis=1, initial=-math.inf)
    possible = largest > -math.inf
    if not possible.any():
        raise EstimationError(
            "the held-out text is empty, or impossible for every model, so no weights can be "
            "found. Is it the right file?",
            code="E_NO_DATA",
        )
    largest = largest[possible]
    shares = np.exp(log_probs[possible] - largest[:, np.newaxis])
    offset = math.fsum(largest.tolist())
    weights = np.full(log_probs.shape[1], 1.0 / log_probs.shape[1])
    history = [offset + _sum_of_logs(shares @ weights)]
    for _ in range(MOST_ITERATIONS):
        better = (shares * weights / (shares @ weights)[:, np.newaxis]).mean(axis=0)
        better /= better.sum()
        likelihood = offset + _sum_of_logs(shares @ better)
        if likelihood < history[-1]:  # nothing left but rounding
            break
        gain = (likelihood - history[-1]) / len(shares)
        weights = better
        history.append(likelihood)
        if gain < SMALLEST_GAIN:
            break
    return WeightFit(tuple(weights.tolist()), tuple(history))


def _sum_of_logs(values: npt.NDArray[np.float64]) -> float:
    return float(np.log(values).sum())
