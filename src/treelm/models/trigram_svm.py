"""Support vector machines over the words, pairs and triples of a sentence."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from treelm.corpus.files import read_lines
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import ModelFileError
from treelm.extras import import_extra
from treelm.models.calibration import Calibration, fit_calibration, training_records
from treelm.models.classifier import Classifier, Floats
from treelm.models.lsvm.config import GRID
from treelm.models.model import Config, explain
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus

_TABLES, _NGRAMS, _WORDS = "tables.safetensors", "ngrams.txt", "words.txt"
_DEGREE = 3


class TrigramSvmConfig(Config):
    """The kernel and how it is fitted."""

    kernel: Literal["linear", "poly"] = "linear"
    """linear, or the polynomial (1 + u.v)^3."""
    regularization: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Weight of the squared norm; None to choose it by accuracy."""
    components: int = Field(default=2000, ge=1, le=20_000)
    """Landmarks of Nystroem's approximation of the polynomial."""
    seed: int = Field(default=0, ge=0, lt=1 << 31)
    """Seed of landmarks, of the solver, and of the sentences kept for tuning."""


def ngrams_of(words: Sequence[str]) -> Counter[str]:
    """Return how often each n-gram of up to three words occurs, one border on each side.

    Examples:
        >>> sorted(ngrams_of(["a", "b"]))
        ['<s> a', '<s> a b', 'a', 'a b', 'a b </s>', 'b', 'b </s>']
    """
    padded = ("<s>", *words, "</s>")
    counts = Counter(words)
    for size in (2, 3):
        counts.update(" ".join(padded[i : i + size]) for i in range(len(padded) - size + 1))
    return counts


class TrigramSvmModel(Classifier[TrigramSvmConfig]):
    """Weighs n-grams of words; the vector of a sentence has length one.

    Args:
        ngrams: The n-grams of the training sentences, sorted.
        tables: ``weights`` and ``offset``; for a polynomial also ``landmarks.*``, the sparse
            vectors of the landmarks, for which the weights are then.
        config: How it was trained.
        calibration: The curve from margins to probabilities.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "trigram_svm"
    config_class: ClassVar[type[Config]] = TrigramSvmConfig

    def __init__(
        self,
        ngrams: Sequence[str],
        tables: dict[str, npt.NDArray[Any]],
        config: TrigramSvmConfig,
        calibration: Calibration,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.ngrams, self.tables = tuple(ngrams), tables
        self._config, self._calibration, self._corpora = config, calibration, tuple(corpora)

    @property
    def size(self) -> int:
        """Number of n-grams."""
        return len(self.ngrams)

    @property
    def accuracy(self) -> float:
        """Accuracy on the sentences of tuning."""
        return float(self.tables["accuracy"][0])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of its training sentences."""
        words = (ngram for ngram in self.ngrams if " " not in ngram)
        return Vocabulary.from_counts(dict.fromkeys(words, 1))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {ngram: number for number, ngram in enumerate(self.ngrams)}

    def margins(self, sentences: Sequence[Sequence[str]], *, threads: int = 1) -> Floats:
        """Return the margin of every sentence; minus infinity for one without a known n-gram."""
        del threads
        return _margins(_vectors(sentences, self._ids), self.tables, self.size)

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness="margin",
            vocabulary=self.vocabulary.fingerprint,
            corpora=self._corpora,
        )

    def write_files(self, writer: FolderWriter) -> None:
        """Write n-grams and weights."""
        writer.tables(_TABLES, {**self.tables, "calibration": np.array(self._calibration)})
        writer.text(_NGRAMS, "".join(f"{ngram}\n" for ngram in self.ngrams))
        save_vocabulary(self.vocabulary, writer.file(_WORDS))

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder.

        Raises:
            ModelFileError: if something is missing, or the parts do not fit together.
        """
        try:
            config = TrigramSvmConfig.model_validate(folder.manifest.config)
        except ValidationError as error:
            raise ModelFileError(
                f"{folder.path}: this is no configuration of an SVM over n-grams "
                f"({explain(error)})",
                code="E_MANIFEST",
            ) from error
        ngrams = tuple(read_lines(folder.file(_NGRAMS)))
        stored = folder.tables(_TABLES)
        tables = {name: stored[name] for name in stored}
        calibration = tables.pop("calibration", np.zeros(0))
        made = cls(ngrams, tables, config, Calibration(1.0, 0.0), folder.manifest.corpora)
        known = load_vocabulary(folder.file(_WORDS)).fingerprint
        if not (
            _fits(tables, len(ngrams), config)
            and calibration.dtype == np.float64
            and calibration.shape == (2,)
            and bool(np.isfinite(calibration).all())
            and known == folder.manifest.vocabulary == made.vocabulary.fingerprint
        ):
            raise ModelFileError(
                f"{folder.path}: the tables are not those of this SVM over n-grams; files of "
                "another model may have been copied in. Train the model again.",
                code="E_MODEL_TABLES",
            )
        made._calibration = Calibration(*calibration.tolist())
        return made


def _fits(tables: dict[str, npt.NDArray[Any]], size: int, config: TrigramSvmConfig) -> bool:
    """Return whether tables of a file are those of a model with so many n-grams."""
    kinds: dict[str, type[np.generic]] = dict.fromkeys(_OWN, np.float64)
    if config.kernel == "poly":
        kinds |= _LANDMARKS
    if set(tables) != set(kinds) or any(
        tables[name].dtype != kind or tables[name].ndim != 1 for name, kind in kinds.items()
    ):
        return False
    if any(
        not np.isfinite(tables[name]).all() for name, kind in kinds.items() if kind is np.float64
    ):
        return False
    weights = len(tables["weights"])
    if len(tables["offset"]) != 1 or len(tables["accuracy"]) != 1:
        return False
    if config.kernel == "linear":
        return weights == size
    starts, columns = tables["landmarks.starts"], tables["landmarks.features"]
    return (
        len(starts) == weights + 1
        and starts[0] == 0
        and bool(np.all(np.diff(starts) >= 0))
        and starts[-1] == len(columns) == len(tables["landmarks.values"])
        and (not len(columns) or (int(columns.min()) >= 0 and int(columns.max()) < size))
    )


_OWN = ("weights", "offset", "accuracy")
_LANDMARKS: dict[str, type[np.generic]] = {
    "landmarks.starts": np.int64,
    "landmarks.features": np.int32,
    "landmarks.values": np.float64,
}


def _vectors(sentences: Sequence[Sequence[str]], ids: dict[str, int]) -> Any:
    """Return vectors of length one, a row each; an empty row without a known n-gram."""
    sparse = import_extra("scipy.sparse", "Classifying by n-grams")
    starts = [0]
    columns: list[int] = []
    values: list[float] = []
    for words in sentences:
        counts = sorted((ids[name], n) for name, n in ngrams_of(words).items() if name in ids)
        norm = sum(n * n for _, n in counts) ** 0.5
        columns.extend(place for place, _ in counts)
        values.extend(n / norm for _, n in counts)
        starts.append(len(columns))
    return sparse.csr_matrix(
        (np.array(values, np.float64), np.array(columns, np.int32), np.array(starts, np.int32)),
        shape=(len(sentences), len(ids)),
    )


def _margins(vectors: Any, tables: dict[str, npt.NDArray[Any]], size: int) -> Floats:
    weights, offset = tables["weights"], float(tables["offset"][0])
    if "landmarks.starts" in tables:
        sparse = import_extra("scipy.sparse", "Classifying by n-grams")
        landmarks = sparse.csr_matrix(
            (
                tables["landmarks.values"],
                tables["landmarks.features"],
                tables["landmarks.starts"].astype(np.int32),
            ),
            shape=(len(weights), size),
        )
        margins = _polynomial(vectors, landmarks) @ weights + offset
    else:
        margins = vectors @ weights + offset
    return np.where(np.diff(vectors.indptr) > 0, margins, -np.inf)


def _polynomial(first: Any, second: Any) -> Floats:
    kernel: Floats = ((first @ second.T).toarray() + 1.0) ** _DEGREE
    return kernel


def train_trigram_svm(
    data: LabelledSentences, tuning: LabelledSentences | None, config: TrigramSvmConfig
) -> TrigramSvmModel:
    """Return a classifier by n-grams.

    Args:
        data: Good and bad sentences.
        tuning: Sentences that choose the regularization and fit the probabilities; None to keep a
            tenth of the training sentences for that.
        config: Options.

    Raises:
        MissingExtra: without scikit-learn.
    """
    sentences, labels = list(data.sentences), data.labels
    if tuning is not None:
        held, held_labels = list(tuning.sentences), tuning.labels
    else:
        order = np.random.default_rng(config.seed).permutation(len(sentences))
        cut = max(len(order) // 10, 2)
        held, held_labels = [sentences[i] for i in order[:cut]], labels[order[:cut]]
        sentences, labels = [sentences[i] for i in order[cut:]], labels[order[cut:]]
    ngrams = tuple(sorted({name for words in sentences for name in ngrams_of(words)}))
    ids = {ngram: number for number, ngram in enumerate(ngrams)}
    points, tuned = _vectors(sentences, ids), _vectors(held, ids)
    given, extra, back = _mapped(points, config)
    grid = GRID if config.regularization is None else (config.regularization,)
    best: tuple[float, float, dict[str, npt.NDArray[Any]], Floats] | None = None
    for value in grid:
        coefficients, offset = _fit(given, labels, value, config.seed)
        weights = coefficients if back is None else back @ coefficients
        tables = {"weights": weights, "offset": np.array([offset]), **extra}
        margins = _margins(tuned, tables, len(ngrams))
        accuracy = float(np.mean((margins > 0) == (held_labels > 0)))
        if best is None or accuracy >= best[0]:  # of equals the larger
            best = accuracy, value, tables, margins
    assert best is not None  # the grid is not empty
    accuracy, value, tables, margins = best
    return TrigramSvmModel(
        ngrams,
        {**tables, "accuracy": np.array([accuracy])},
        config.model_copy(update={"regularization": value}),
        fit_calibration(margins, held_labels),
        training_records(data),
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
    values, vectors = np.linalg.eigh(_polynomial(landmarks, landmarks))
    kept = values > 1e-10 * values[-1]
    back: Floats = vectors[:, kept] / np.sqrt(values[kept])
    tables = {
        "landmarks.starts": landmarks.indptr.astype(np.int64),
        "landmarks.features": landmarks.indices.astype(np.int32),
        "landmarks.values": landmarks.data.astype(np.float64),
    }
    return _polynomial(points, landmarks) @ back, tables, back


def _fit(
    points: Any, labels: npt.NDArray[np.int8], regularization: float, seed: int
) -> tuple[Floats, float]:
    svm = import_extra("sklearn.svm", "Training a classifier")
    machine = svm.LinearSVC(
        C=1.0 / (2.0 * regularization),
        loss="hinge",
        dual=True,
        intercept_scaling=10.0,  # so that the offset is hardly penalised
        tol=1e-3,
        max_iter=2000,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # strong machines converge late; accuracy decides
        machine.fit(points, labels)
    return np.asarray(machine.coef_[0], np.float64), float(machine.intercept_[0])
