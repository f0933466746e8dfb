"""Several models judge a pair together: weights of their scores from other pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Half the penalty on squared weights, of differences with a deviation of 1.
RIDGE = 1.0
_MOST_STEPS = 50


def first_half(groups: Sequence[str]) -> Flags:
    """Return every second pair of each group, beginning with its first."""
    seen: dict[str, int] = {}
    chosen = np.zeros(len(groups), dtype=np.bool_)
    for place, group in enumerate(groups):
        number = seen.get(group, 0)
        chosen[place] = number % 2 == 0
        seen[group] = number + 1
    return chosen


def fitted_weights(differences: Numbers) -> Numbers:
    """Return weights that make the good sentences most likely: logistic regression.

    Args:
        differences: For each pair and model, the score of the good sentence minus that of the bad
            one. There is no constant, because a pair has no order.
    """
    weights = np.zeros(differences.shape[1])
    for _ in range(_MOST_STEPS):
        wrong = 1 / (1 + np.exp(differences @ weights))
        slope = differences.T @ wrong - RIDGE * weights
        curve = (differences * (wrong * (1 - wrong))[:, None]).T @ differences
        step = np.linalg.solve(curve + RIDGE * np.eye(len(weights)), slope)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def combined_scores(differences: Numbers, learnt_from: Flags) -> tuple[Numbers, Numbers]:
    """Return weighted sums of the differences of all pairs, and the weights.

    Args:
        differences: For each pair and model; infinite ones count as large.
        learnt_from: The pairs that the weights are learnt from.
    """
    finite = np.nan_to_num(differences, posinf=100.0, neginf=-100.0)
    scale = np.sqrt((finite[learnt_from] ** 2).mean(axis=0))
    scaled = finite / np.where(scale > 0, scale, 1.0)
    weights = fitted_weights(scaled[learnt_from])
    return scaled @ weights, weights
