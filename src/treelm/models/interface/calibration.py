"""From classifier margins to probabilities, by a logistic curve (Platt 1999)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import source_name
from treelm.corpus.labelled import LabelledSentences
from treelm.extras import import_extra
from treelm.store.manifest import TrainingCorpus

Floats = npt.NDArray[np.float64]


class Calibration(NamedTuple):
    """A logistic curve over margins."""

    slope: float
    offset: float

    def probabilities(self, margins: Floats) -> Floats:
        """Return the probabilities that sentences are good; 0 for one without a margin.

        Examples:
            >>> Calibration(2.0, 0.0).probabilities(np.array([0.0, -np.inf])).tolist()
            [0.5, 0.0]
        """
        finite = np.isfinite(margins)
        values = np.where(
            finite, self.slope * np.where(finite, margins, 0.0) + self.offset, -np.inf
        )
        probabilities: Floats = np.exp(-np.logaddexp(0.0, -values))
        return np.where(finite, probabilities, 0.0)


def fit_calibration(margins: Floats, labels: npt.NDArray[np.int8]) -> Calibration:
    """Return the curve that fits margins of labelled sentences; infinite ones are left out.

    Raises:
        MissingExtra: without scikit-learn.
    """
    finite = np.isfinite(margins)
    values, truth = margins[finite], labels[finite]
    if len(set(truth.tolist())) < 2:
        return Calibration(1.0, 0.0)
    linear = import_extra("sklearn.linear_model", "Calibrating a classifier")
    spread = float(values.std()) or 1.0  # so that the penalty does not depend on the scale
    fitted = linear.LogisticRegression(C=1e6, max_iter=1000)
    fitted.fit((values / spread)[:, None], truth)
    return Calibration(float(fitted.coef_[0, 0]) / spread, float(fitted.intercept_[0]))


def training_records(
    data: LabelledSentences, trees: TreeCorpus | None = None
) -> tuple[TrainingCorpus, ...]:
    """Return what a classifier was trained on, for its manifest."""
    corpora: list[TextCorpus | TreeCorpus] = [data.good, data.bad]
    if trees is not None:
        corpora.append(trees)
    return tuple(
        TrainingCorpus(
            name=" ".join(source_name(path) for path in corpus.paths)[:1000],
            sha256=corpus.fingerprint.sha256,
            sentences=corpus.fingerprint.sentences,
            tokens=corpus.fingerprint.tokens,
        )
        for corpus in corpora
    )
