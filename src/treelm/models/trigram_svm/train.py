"""How a support vector machine over n-grams is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError
from treelm.models.interface.calibration import fit_calibration, training_records
from treelm.models.interface.classifier import Floats
from treelm.models.lsvm.config import GRID
from treelm.models.run import QUIET, Run
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.linear_svm import choose, fit_linear, with_tuning
from treelm.models.trigram_svm.model import (
    MOST_WORDS,
    TrigramSvmModel,
    ngram_keys,
    ngram_vectors,
    polynomial,
    vector_margins,
)


def train_trigram_svm(
    data: LabelledSentences,
    config: TrigramSvmConfig,
    *,
    tuning: LabelledSentences | None = None,
    run: Run = QUIET,
) -> TrigramSvmModel:
    """Return a classifier by n-grams.

    Args:
        data: Good and bad sentences.
        config: Options.
        tuning: Tuning set that chooses the regularization and fits the probabilities. Default: a
            tenth of the training sentences is kept for that.
        run: How the training is run.

    Raises:
        MissingExtra: without scikit-learn.
    """
    del run  # everything is done by scikit-learn
    sentences, labels, held, held_labels = with_tuning(data, tuning, config.seed)
    words = dict.fromkeys((word for words in sentences for word in words), 1)
    vocabulary = Vocabulary.from_counts(words)
    if len(vocabulary) + 3 > MOST_WORDS:
        raise EstimationError(
            f"the sentences have {len(words)} different words; n-grams of at most "
            f"{MOST_WORDS} are counted. Train on less text.",
            code="E_OVERFLOW",
        )
    ngrams = np.unique(ngram_keys(sentences, vocabulary)[0])
    points, tuned = (ngram_vectors(part, vocabulary, ngrams) for part in (sentences, held))
    given, extra, back = _mapped(points, config)

    def attempt(value: float) -> tuple[dict[str, npt.NDArray[Any]], Floats]:
        coefficients, offset = fit_linear(given, labels, value, config.seed)
        weights = coefficients if back is None else back @ coefficients
        tables = {"weights": weights, "offset": np.array([offset]), **extra}
        return tables, vector_margins(tuned, tables, len(ngrams))

    grid = GRID if config.regularization is None else (config.regularization,)
    best = choose(grid, attempt, held_labels)
    return TrigramSvmModel(
        vocabulary,
        ngrams,
        {**best.machine, "accuracy": np.array([best.accuracy])},
        config.model_copy(update={"regularization": best.regularization}),
        calibration=fit_calibration(best.margins, held_labels),
        corpora=training_records(data),
    )


def _mapped(
    points: Any, config: TrigramSvmConfig
) -> tuple[Any, dict[str, npt.NDArray[Any]], Floats | None]:
    """Return what a linear machine is fitted to, the landmarks, and the way back to them."""
    if config.kernel == "linear":
        return points, {}, None
    count = min(config.components, points.shape[0])
    chosen = np.random.default_rng(config.seed).permutation(points.shape[0])[:count]
    landmarks = points[np.sort(chosen)]
    values, vectors = np.linalg.eigh(polynomial(landmarks, landmarks))
    kept = values > 1e-10 * values[-1]
    back: Floats = vectors[:, kept] / np.sqrt(values[kept])
    tables = {
        "landmarks.starts": landmarks.indptr.astype(np.int64),
        "landmarks.features": landmarks.indices.astype(np.int32),
        "landmarks.values": landmarks.data.astype(np.float64),
    }
    return polynomial(points, landmarks) @ back, tables, back
