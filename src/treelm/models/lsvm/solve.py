"""The convex step of a round: weights of productions of fixed trees, by liblinear."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from treelm.extras import import_extra
from treelm.models.lsvm.features import FeatureVectors
from treelm.models.lsvm.grammar import Floats

Labels = npt.NDArray[np.int8]

#: How often the solver's tolerance may be tightened.
_ATTEMPTS = 3


def objective(weights: Floats, margins: Floats, labels: Labels, regularization: float) -> float:
    """Return the squared norm times its weight, and the hinge losses of all points.

    Examples:
        >>> margins, labels = np.array([0.5, -0.2, -1.5]), np.array([1, -1, -1], np.int8)
        >>> round(objective(np.array([1.0, -2.0]), margins, labels, 0.1), 12)
        1.8
    """
    losses = np.maximum(0.0, 1.0 - labels * margins)
    return float(regularization * (weights @ weights) + losses.sum())


def solve(
    vectors: FeatureVectors,
    labels: Labels,
    regularization: float,
    *,
    start: Floats,
    tolerance: float = 1e-3,
    seed: int = 0,
) -> Floats:
    """Return the weights with the least objective, without a threshold.

    The problem is convex, so the result does not depend on `start`, but it is never worse than it.

    Args:
        vectors: One point per row.
        labels: 1 or -1 for each.
        regularization: Weight of the squared norm.
        start: Initial weights.
        tolerance: Relative tolerance.
        seed: Seed of the solver.

    Raises:
        MissingExtra: without scikit-learn.
    """
    if len(set(labels.tolist())) < 2:
        return _solve_one_class(
            vectors, labels, regularization, start=start, tolerance=tolerance, seed=seed
        )
    return _solve(vectors, labels, regularization, start=start, tolerance=tolerance, seed=seed)


def _solve_one_class(
    vectors: FeatureVectors,
    labels: Labels,
    regularization: float,
    *,
    start: Floats,
    tolerance: float,
    seed: int,
) -> Floats:
    """Solve a problem whose points have one label: a mirrored point is the same point."""
    if not len(labels):
        return np.zeros_like(start)
    # liblinear needs two classes; -v with the label -y has the same loss as v with y.
    sizes = np.diff(vectors.starts)
    counts = vectors.counts.copy()
    counts[: sizes[0]] *= -1.0
    flipped = labels.copy()
    flipped[0] = -flipped[0]
    if len(labels) == 1:  # the point twice, at half the weight each
        both = FeatureVectors(
            np.array([0, sizes[0], 2 * sizes[0]]),
            np.concatenate([vectors.features] * 2),
            np.concatenate([vectors.counts, counts]),
        )
        pair = np.array([labels[0], -labels[0]], np.int8)
        return _solve(both, pair, 2 * regularization, start=start, tolerance=tolerance, seed=seed)
    mirrored = FeatureVectors(vectors.starts, vectors.features, counts)
    return _solve(mirrored, flipped, regularization, start=start, tolerance=tolerance, seed=seed)


def _solve(
    vectors: FeatureVectors,
    labels: Labels,
    regularization: float,
    *,
    start: Floats,
    tolerance: float,
    seed: int,
) -> Floats:
    svm = import_extra("sklearn.svm", "Training a classifier")
    sparse = import_extra("scipy.sparse", "Training a classifier")
    shape = (len(vectors), len(start))
    matrix = sparse.csr_matrix(
        (vectors.counts, vectors.features, vectors.starts.astype(np.int32)), shape=shape
    )
    least = objective(start, vectors.times(start), labels, regularization)
    best = start
    for attempt in range(_ATTEMPTS):
        machine = svm.LinearSVC(
            C=1.0 / (2.0 * regularization),
            loss="hinge",
            dual=True,
            fit_intercept=False,
            tol=tolerance * 0.1**attempt,
            max_iter=2000 * 10**attempt,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is the objective, checked below
            machine.fit(matrix, labels)
        weights = np.asarray(machine.coef_[0], np.float64)
        value = objective(weights, vectors.times(weights), labels, regularization)
        if value <= least * (1 + tolerance):
            return weights
    return best
