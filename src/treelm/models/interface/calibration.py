"""From classifier margins to probabilities, by a logistic curve (Platt 1999)."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import source_name
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import TreelmWarning
from treelm.extras import import_extra
from treelm.store.manifest import TrainingCorpus

Floats = npt.NDArray[np.float64]


class Calibration(NamedTuple):
    """A logistic curve over margins.

    Without a positive slope the model could not be calibrated: on its tuning set higher margins did
    not go with good sentences.
    """

    slope: float
    offset: float = 0.0
    """What older models add; the curve of newer ones is one half where the margin is 0."""

    @property
    def is_calibrated(self) -> bool:
        """Whether probabilities say more than one half for every margin."""
        return self.slope > 0

    def probabilities(self, margins: Floats) -> Floats:
        """Return the probabilities that sentences are good; 0 for one without a margin.

        They rise with the margin, and are one half for all if the model could not be calibrated.

        Examples:
            >>> Calibration(2.0, 0.0).probabilities(np.array([0.0, -np.inf])).tolist()
            [0.5, 0.0]
        """
        finite = np.isfinite(margins)
        if not self.is_calibrated:
            return np.where(finite, 0.5, 0.0)
        values = np.where(
            finite, self.slope * np.where(finite, margins, 0.0) + self.offset, -np.inf
        )
        probabilities: Floats = np.exp(-np.logaddexp(0.0, -values))
        return np.where(finite, probabilities, 0.0)


def fit_calibration(margins: Floats, labels: npt.NDArray[np.int8]) -> Calibration:
    """Return the curve that fits margins of labelled sentences; infinite ones are left out.

    The curve is one half where the margin is 0, so that label, margin and probability agree. Where
    none that rises fits better than a flat one, the flat one is returned, with a warning.

    Raises:
        MissingExtra: without scikit-learn.

    Examples:
        >>> fit_calibration(np.array([-1.0, 1.0, 2.0]), np.array([0, 1, 1], np.int8)).slope > 0
        True
    """
    finite = np.isfinite(margins)
    values, truth = margins[finite], labels[finite]
    if len(set(truth.tolist())) < 2:
        return Calibration(1.0)
    linear = import_extra("sklearn.linear_model", "Calibrating a classifier")
    spread = float(np.sqrt(np.mean(values**2))) or 1.0  # so that the penalty has no scale
    fitted = linear.LogisticRegression(C=1e6, max_iter=1000, fit_intercept=False)
    fitted.fit((values / spread)[:, None], truth)
    slope = float(fitted.coef_[0, 0]) / spread
    if slope > 0:
        return Calibration(slope)
    warnings.warn(
        "the classifier could not be calibrated: in its tuning set good sentences do not have "
        "higher margins than bad ones. All its probabilities are 0.5.",
        TreelmWarning,
        stacklevel=2,
    )
    return Calibration(0.0)


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
