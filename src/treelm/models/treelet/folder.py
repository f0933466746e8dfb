"""Files of a treelet model: writing, reading and checking them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.files import read_lines
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import ModelFileError, TreelmError
from treelm.models.interface.model import config_of
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.tables import TreeletTables
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.transforms.transform import transform_from_config
from treelm.transforms.treelet import Treelet

#: Files of a model folder, and names in the file of tables.
WORDS, LABELS, TAGS, TABLES = "words.txt", "labels.txt", "tags.txt", "tables.safetensors"
COUNTS = "unigram_counts"


class Parts(NamedTuple):
    """The content of a folder, checked."""

    tables: TreeletTables
    vocabulary: Vocabulary
    unigram_counts: npt.NDArray[np.uint64]
    config: TreeletConfig
    transform: Treelet


def write_parts(
    writer: FolderWriter,
    tables: TreeletTables,
    tensors: Mapping[str, npt.NDArray[Any]],
    vocabulary: Vocabulary,
) -> None:
    """Write tables, labels, tags and words."""
    writer.tables(TABLES, tensors)
    writer.text(LABELS, "".join(f"{label}\n" for label in tables.symbols.labels))
    writer.text(TAGS, "".join(f"{tag}\n" for tag in tables.tags))
    save_vocabulary(vocabulary, writer.file(WORDS))


def read_parts(folder: ModelFolder) -> Parts:
    """Return the content of an opened folder, its tables mapped.

    Raises:
        ModelFileError: if the options or the tables do not belong to a treelet model, or do not
            fit together.
    """
    config = config_of(folder, TreeletConfig, "a treelet model")
    vocabulary = load_vocabulary(folder.file(WORDS))
    tensors = folder.tables(TABLES)
    counts = tensors.get(COUNTS)
    if (
        vocabulary.fingerprint != folder.manifest.vocabulary
        or counts is None
        or counts.dtype != np.uint64
        or counts.shape != (len(vocabulary) + 1,)
    ):
        raise _damaged(folder, f"{WORDS}, {TABLES} and the manifest do not fit together")
    with damage_in(folder):
        transform = _transform(folder)
        tables = TreeletTables.from_tensors(
            tensors,
            tuple(read_lines(folder.file(LABELS))),
            tuple(read_lines(folder.file(TAGS))),
            vocabulary,
        )
        tables.check(config)
    return Parts(tables, vocabulary, counts, config, transform)


@contextmanager
def damage_in(folder: ModelFolder) -> Iterator[None]:
    """Add the folder to errors about damaged tables.

    Raises:
        ModelFileError: with the code of the damage.
    """
    try:
        yield
    except ModelFileError as error:
        raise _damaged(folder, str(error), error.code) from error


def _transform(folder: ModelFolder) -> Treelet:
    steps = folder.manifest.transforms
    try:
        found = transform_from_config(steps[0]) if len(steps) == 1 else None
    except TreelmError as error:
        raise ModelFileError(str(error), code="E_MANIFEST") from error
    if not isinstance(found, Treelet):
        raise ModelFileError("the manifest does not name the treelet transform", code="E_MANIFEST")
    return found


def _damaged(folder: ModelFolder, what: str, code: str = "E_MODEL_TABLES") -> ModelFileError:
    return ModelFileError(
        f"{folder.path}: {what.rstrip('.')}. Copy or train the model again.", code=code
    )
