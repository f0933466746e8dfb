"""The files of a model with topics: what they are called, and whether they fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import ModelFileError
from treelm.models.composite.topic_config import TopicConfig
from treelm.models.model import explain
from treelm.store.folder import ModelFolder

#: File of the vocabulary, and names in the file of tables.
WORDS, TABLES, PREDICTOR = "words.txt", "tables.safetensors", "predictor"
PRIOR, COUNTS = "topics", "unigram_counts"


@dataclass(frozen=True)
class TopicFiles:
    """What was read from a folder; the tables of the predictor are not looked at yet."""

    config: TopicConfig
    vocabulary: Vocabulary
    prior: npt.NDArray[np.float64]
    counts: npt.NDArray[np.uint64]
    tables: Mapping[str, npt.NDArray[Any]]


def read_topic_files(folder: ModelFolder) -> TopicFiles:
    """Return what an opened folder holds.

    Raises:
        ModelFileError: ``E_MANIFEST`` or ``E_MODEL_TABLES`` if that is no model with topics.
    """
    try:
        config = TopicConfig.model_validate(folder.manifest.config)
    except ValidationError as error:
        raise ModelFileError(
            f"{folder.path}: this is no configuration of a PLSA model ({explain(error)})",
            code="E_MANIFEST",
        ) from error
    vocabulary = load_vocabulary(folder.file(WORDS))
    tables = folder.tables(TABLES)
    prior, counts = tables.get(PRIOR), tables.get(COUNTS)
    if (
        vocabulary.fingerprint != folder.manifest.vocabulary
        or counts is None
        or counts.dtype != np.uint64
        or counts.shape != (len(vocabulary) + 1,)
        or prior is None
        or prior.dtype != np.float64
        or prior.shape != (config.topics,)
        or not np.all(prior >= 0)
        or (config.topics and not abs(float(prior.sum()) - 1) < 1e-6)
    ):
        raise ModelFileError(
            f"{folder.path}: {WORDS}, {TABLES} and the manifest do not fit together; files of "
            "another model may have been copied in. Train the model again.",
            code="E_MODEL_TABLES",
        )
    return TopicFiles(config, vocabulary, np.array(prior), np.array(counts), tables)
