"""The files of a topic model: their names, and whether they fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import ModelFileError
from treelm.models.interface.model import config_of
from treelm.models.plsa.config import PlsaConfig
from treelm.store.folder import ModelFolder

#: File of the vocabulary, and names in the file of tables.
WORDS, TABLES, PREDICTOR = "words.txt", "tables.safetensors", "predictor"
PRIOR, COUNTS = "topics", "unigram_counts"


UnigramCounts = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TopicFiles:
    """What was read from a folder; the tables of the predictor are not checked yet."""

    config: PlsaConfig
    vocabulary: Vocabulary
    prior: npt.NDArray[np.float64]
    counts: npt.NDArray[np.uint64]
    tables: Mapping[str, npt.NDArray[Any]]


def read_topic_files(folder: ModelFolder) -> TopicFiles:
    """Return the content of an opened folder.

    Raises:
        ModelFileError: ``E_MANIFEST`` or ``E_MODEL_TABLES`` if it is not a topic model.
    """
    config = config_of(folder, PlsaConfig, "a PLSA model")
    vocabulary, counts, prior, tables = read_words_and_topics(folder, PRIOR, config.topics)
    return TopicFiles(config, vocabulary, prior, np.array(counts), tables)


def read_words_and_topics(
    folder: ModelFolder, prior_name: str, topics: int
) -> tuple[Vocabulary, UnigramCounts, Floats, Mapping[str, npt.NDArray[Any]]]:
    """Return words, their counts, shares of topics, and all tables, checked to fit together.

    Args:
        folder: The folder, opened.
        prior_name: Name of the array of shares.
        topics: Number of topics.

    Raises:
        ModelFileError: ``E_MODEL_TABLES`` if something is missing or from another model.
    """
    vocabulary = load_vocabulary(folder.file(WORDS))
    tables = folder.tables(TABLES)
    counts, prior = tables.get(COUNTS), tables.get(prior_name)
    if (
        vocabulary.fingerprint != folder.manifest.vocabulary
        or counts is None
        or counts.dtype != np.uint64
        or counts.shape != (len(vocabulary) + 1,)
        or prior is None
        or prior.dtype != np.float64
        or prior.shape != (topics,)
        or not are_shares(prior)
    ):
        raise damaged(folder, f"{WORDS}, {TABLES} and the manifest do not fit together")
    return vocabulary, counts, np.array(prior), tables


def are_shares(values: Floats) -> bool:
    """Return whether numbers are probabilities that sum to 1; an empty array is allowed."""
    inside = bool(np.all((values >= 0) & (values <= 1)))
    return inside and (not len(values) or abs(float(values.sum()) - 1) < 1e-6)


def damaged(folder: ModelFolder, what: str) -> ModelFileError:
    """Return the error for damaged files of a folder."""
    return ModelFileError(
        f"{folder.path}: {what.rstrip('.')}. Files of another model may have been copied in; "
        "train the model again.",
        code="E_MODEL_TABLES",
    )
