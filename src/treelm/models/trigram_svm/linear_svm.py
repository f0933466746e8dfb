"""Linear support vector machines with a threshold, by liblinear, and their regularization."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from treelm.corpus.labelled import LabelledSentences
from treelm.extras import import_extra

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]
Machine = TypeVar("Machine")


@dataclass(frozen=True, eq=False)
class Chosen(Generic[Machine]):
    """The best machine of a grid.

    Args:
        machine: The machine.
        regularization: Its regularization weight.
        accuracy: Accuracy on the tuning set.
        margins: Margins of the tuning set.
    """

    machine: Machine
    regularization: float
    accuracy: float
    margins: Floats


def choose(
    grid: Sequence[float], attempt: Callable[[float], tuple[Machine, Floats]], labels: Labels
) -> Chosen[Machine]:
    """Return the machine with the best accuracy on the tuning set.

    Args:
        grid: Regularization weights, ascending; of equals the larger is chosen.
        attempt: Fits with one of them and returns the machine and the margins of the tuning set.
        labels: Labels of the tuning set.
    """
    best: Chosen[Machine] | None = None
    for value in grid:
        machine, margins = attempt(value)
        accuracy = float(np.mean((margins > 0) == (labels > 0)))
        if best is None or accuracy >= best.accuracy:
            best = Chosen(machine, value, accuracy, margins)
    if best is None:
        raise ValueError("an empty grid")
    return best


def fit_linear(
    points: Any, labels: Labels, regularization: float, seed: int, *, rounds: int = 100
) -> tuple[Floats, float]:
    """Return weights and offset with the least hinge losses and regularized squared norm.

    Args:
        points: A matrix, one point per row.
        labels: 1 or -1 for each.
        regularization: Weight of the squared norm.
        seed: Seed of the solver.
        rounds: Maximum number of passes over all points.

    Raises:
        MissingExtra: without scikit-learn.
    """
    svm = import_extra("sklearn.svm", "Training a classifier")
    machine = svm.LinearSVC(
        C=1.0 / (2.0 * regularization),
        loss="hinge",
        dual=True,
        intercept_scaling=10.0,  # so that the offset is hardly penalised
        tol=1e-2,
        max_iter=rounds,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # weak regularization converges late; accuracy decides
        machine.fit(points, labels)
    return np.asarray(machine.coef_[0], np.float64), float(machine.intercept_[0])


Sentences = list[tuple[str, ...]]


def with_tuning(
    data: LabelledSentences, tuning: LabelledSentences | None, seed: int
) -> tuple[Sentences, Labels, Sentences, Labels]:
    """Return the training sentences and their labels, and the tuning set and its labels.

    Args:
        data: Good and bad sentences.
        tuning: The tuning set; None to keep a tenth of the others for it.
        seed: Seed of that choice.
    """
    sentences, labels = list(data.sentences), data.labels
    if tuning is not None:
        return sentences, labels, list(tuning.sentences), tuning.labels
    order = np.random.default_rng(seed).permutation(len(sentences))
    cut = max(len(order) // 10, 2)
    kept, held = order[cut:], order[:cut]
    return (
        [sentences[place] for place in kept],
        labels[kept],
        [sentences[place] for place in held],
        labels[held],
    )
