"""Support vector machines over the words, pairs and triples of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import encode_sentences
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, sentences_of
from treelm.extras import import_extra
from treelm.models.interface.calibration import Calibration
from treelm.models.interface.classifier import Classifier, Floats, weighed
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.score_explanation import ScoreStep
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    Tensor,
    ascending,
    damage_in,
    finite,
    ids,
    offsets,
    read_tensors,
    read_words,
    write_words,
)

_DEGREE = 3
#: Words whose n-grams fit into a number.
MOST_WORDS = 1 << 20


Keys = npt.NDArray[np.int64]


def ngram_keys(
    sentences: Sequence[Sequence[str]], vocabulary: Vocabulary
) -> tuple[Keys, npt.NDArray[np.int64]]:
    """Return all n-grams of up to three known words as numbers, and the sentence of each.

    There is one border on each side, which is no n-gram by itself. A number has three digits, one
    a word: nothing is 0, the borders are 1 and 2, and words come after that.
    """
    text = encode_sentences(sentences, vocabulary)
    starts = text.starts.astype(np.int64)
    sizes: Keys = starts[1:] - starts[:-1] + 2
    ends = np.cumsum(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    digits = np.empty(len(owners), np.int64)
    is_border = np.zeros(len(owners), np.bool_)
    is_border[ends - sizes] = is_border[ends - 1] = True
    digits[ends - sizes], digits[ends - 1] = 1, 2
    digits[~is_border] = text.ids.astype(np.int64) + 3
    unknown = digits == int(vocabulary.ids_of([UNKNOWN])[0]) + 3
    base = len(vocabulary) + 3
    known = ~unknown
    two = known[:-1] & known[1:] & (owners[:-1] == owners[1:])
    three = two[:-1] & two[1:]
    pairs = digits[:-1] * base + digits[1:]
    parts = [
        (digits[known & ~is_border], owners[known & ~is_border]),
        (pairs[two], owners[:-1][two]),
        ((digits[:-2] * base + digits[1:-1])[three] * base + digits[2:][three], owners[:-2][three]),
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


class TrigramSvmModel(Classifier[TrigramSvmConfig]):
    """Weighs n-grams of words; the vector of a sentence has length one.

    Args:
        vocabulary: Words of the training sentences.
        ngrams: Their n-grams as numbers, ascending.
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
        vocabulary: Vocabulary,
        ngrams: Keys,
        tables: dict[str, npt.NDArray[Any]],
        config: TrigramSvmConfig,
        *,
        calibration: Calibration,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self._vocabulary, self.ngrams, self.tables = vocabulary, ngrams, tables
        self._config, self._calibration, self._corpora = config, calibration, tuple(corpora)

    @property
    def size(self) -> int:
        """Number of n-grams."""
        return len(self.ngrams)

    @property
    def accuracy(self) -> float:
        """Accuracy on the sentences of tuning."""
        return float(self.tables["accuracy"][0])

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its training sentences."""
        return self._vocabulary

    def ngram(self, number: int) -> str:
        """Return one of the n-grams as a string."""
        key, base = int(self.ngrams[number]), len(self._vocabulary) + 3
        digits = (key // base // base, key // base % base, key % base)
        symbols = self._vocabulary.symbols
        names = {1: "<s>", 2: "</s>"}
        return " ".join(names.get(digit) or symbols[digit - 3] for digit in digits if digit)

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        return {
            "kernel": self._config.kernel,
            "features": self.size,
            "regularization": self._config.regularization,
            "accuracy": self.accuracy,
        }

    def margins(self, sentences: Sequence[Words], *, threads: int = 1) -> Floats:
        """Return the margin of every sentence; minus infinity for one without a known n-gram."""
        del threads
        return vector_margins(
            ngram_vectors(list(sentences_of(sentences)), self._vocabulary, self.ngrams),
            self.tables,
            self.size,
        )

    score_story: ClassVar[str] = (
        "The n-grams of a sentence are a vector of length one; the margin is the sum of its "
        "entries times their weights, and an offset."
    )
    score_reference: ClassVar[str] = (
        "Cherry and Quirk (2008), section 5.1: Trigram-Linear and Trigram-Poly "
        "(docs/systems/trigram-svm.md)"
    )

    def margin_steps(self, words: tuple[str, ...]) -> list[ScoreStep]:
        """Return the n-grams of a sentence with what each adds; one step for a polynomial."""
        if self._config.kernel != "linear":
            return super().margin_steps(words)
        vector = ngram_vectors([words], self._vocabulary, self.ngrams)
        weights = self.tables["weights"]
        pairs = zip(vector.indices.tolist(), vector.data.tolist(), strict=True)
        found = {self.ngram(place): value * float(weights[place]) for place, value in pairs}
        return weighed(found, offset=float(self.tables["offset"][0]))

    def write_files(self, writer: FolderWriter) -> None:
        """Write n-grams and weights."""
        own = {"ngrams": self.ngrams, "calibration": np.array(self._calibration)}
        tables = {**self.tables, **own}
        # In one order, wherever they come from: the same model has the same bytes.
        order = [tensor.name for tensor in _schema(self._config)]
        writer.tables(TABLES, {name: tables[name] for name in order})
        write_words(writer, self.vocabulary)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder.

        Raises:
            ModelFileError: if something is missing, or the parts do not fit together.
        """
        config = config_of(folder, TrigramSvmConfig, "an SVM over n-grams")
        with damage_in(folder):
            vocabulary = read_words(folder)
            keys = (len(vocabulary) + 3) ** 3
            found = read_tensors(folder.tables(), _schema(config), only=True, keys=keys)
        return cls(
            vocabulary,
            found.pop("ngrams"),
            config=config,
            calibration=Calibration(*found.pop("calibration").tolist()),
            tables=dict(found),
            corpora=folder.manifest.corpora,
        )

    def _arguments(self) -> dict[str, Any]:
        own = {"vocabulary": self._vocabulary, "ngrams": self.ngrams, "tables": self.tables}
        return {**super()._arguments(), **own}


def _schema(config: TrigramSvmConfig) -> list[Tensor]:
    """Return what the tables of a model with these options hold."""
    schema = [
        Tensor("ngrams", np.int64, ("ngrams",), ascending, ids("keys")),
        Tensor("offset", np.float64, (1,), finite),
        Tensor("accuracy", np.float64, (1,), finite),
        Tensor("calibration", np.float64, (2,), finite),
    ]
    if config.kernel == "linear":
        return [*schema, Tensor("weights", np.float64, ("ngrams",), finite)]
    return [
        *schema,
        Tensor("weights", np.float64, ("landmarks",), finite),
        Tensor("landmarks.starts", np.int64, ("landmarks+1",), offsets("entries")),
        Tensor("landmarks.features", np.int32, ("entries",), ids("ngrams")),
        Tensor("landmarks.values", np.float64, ("entries",), finite),
    ]


def ngram_vectors(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary, ngrams: Keys) -> Any:
    """Return vectors of length one, a row each; an empty row without a known n-gram."""
    sparse = import_extra("scipy.sparse", "Classifying by n-grams")
    keys, owners = ngram_keys(sentences, vocabulary)
    width, count = len(ngrams), len(sentences)
    places = np.minimum(np.searchsorted(ngrams, keys), max(width - 1, 0))
    known = ngrams[places] == keys if width else np.zeros(len(keys), np.bool_)
    cells, counts = np.unique(owners[known] * width + places[known], return_counts=True)
    rows = cells // max(width, 1)
    norms = np.sqrt(np.bincount(rows, counts.astype(np.float64) ** 2, count))
    return sparse.csr_matrix(
        (
            counts / norms[rows],
            (cells % max(width, 1)).astype(np.int32),
            np.searchsorted(rows, np.arange(count + 1)).astype(np.int32),
        ),
        shape=(count, width),
    )


def vector_margins(vectors: Any, tables: dict[str, npt.NDArray[Any]], size: int) -> Floats:
    """Return the margins of vectors, minus infinity for an empty one."""
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
        # Row by row: a matrix product rounds otherwise when there are more rows.
        margins = (polynomial(vectors, landmarks) * weights).sum(axis=1) + offset
    else:
        margins = vectors @ weights + offset
    return np.where(np.diff(vectors.indptr) > 0, margins, -np.inf)


def polynomial(first: Any, second: Any) -> Floats:
    """Return the polynomial kernel of each vector with each other one."""
    kernel: Floats = ((first @ second.T).toarray() + 1.0) ** _DEGREE
    return kernel
