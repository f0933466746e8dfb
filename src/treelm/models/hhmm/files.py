"""The store model as the files of a model folder, and back, with everything checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.corpus.files import read_lines
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import EstimationError, ModelFileError
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.tables import StoreTables
from treelm.models.interface.model import config_of
from treelm.store.folder import FolderWriter, ModelFolder

#: Files of the model folder, and the name of the counts among the tables.
TABLES, LABELS, WORDS, ENDINGS = "tables.safetensors", "labels.txt", "words.txt", "endings.txt"
COUNTS = "unigram_counts"


def write_files(
    writer: FolderWriter,
    tables: StoreTables,
    vocabulary: Vocabulary,
    unigram_counts: npt.NDArray[np.uint64],
) -> None:
    """Write rules, labels and words."""
    writer.tables(TABLES, {**tables.to_arrays(), COUNTS: unigram_counts})
    writer.text(LABELS, "".join(f"{symbol}\n" for symbol in tables.rules.symbols))
    if tables.suffixes is not None:
        writer.text(ENDINGS, "".join(f"{ending}\n" for ending in tables.suffixes.endings))
    save_vocabulary(vocabulary, writer.file(WORDS))


def read_files(
    folder: ModelFolder,
) -> tuple[HhmmConfig, StoreTables, Vocabulary, npt.NDArray[np.uint64]]:
    """Return what an opened folder holds.

    Raises:
        ModelFileError: if something is missing, or the parts do not fit together.
    """
    config = config_of(folder, HhmmConfig, "an incremental right-corner model")
    vocabulary = load_vocabulary(folder.file(WORDS))
    tables = folder.tables(TABLES)
    counts = tables.get(COUNTS)
    if (
        vocabulary.fingerprint != folder.manifest.vocabulary
        or counts is None
        or counts.dtype != np.uint64
        or counts.shape != (len(vocabulary) + 1,)
    ):
        raise damaged_tables(folder, f"{WORDS}, {TABLES} and the manifest do not fit together")
    symbols = tuple(read_lines(folder.file(LABELS)))
    endings = None
    if config.observation == "bayes":
        endings = tuple(read_lines(folder.file(ENDINGS)))
    try:
        made = StoreTables.from_arrays(tables, symbols, endings, len(vocabulary))
    except (EstimationError, ModelFileError) as error:
        raise damaged_tables(folder, str(error)) from error
    if made.depth != config.depth:
        raise damaged_tables(folder, "the tables are those of another depth")
    return config, made, vocabulary, counts


def damaged_tables(folder: ModelFolder, what: str) -> ModelFileError:
    """Return the error for files that do not fit together."""
    return ModelFileError(
        f"{folder.path}: {what.rstrip('.')}. Files of another model may have been copied in; "
        "train the model again.",
        code="E_MODEL_TABLES",
    )
