"""The composite model as the files of a model folder, and back, with everything checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from treelm.corpus.files import read_lines
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import EstimationError, ModelFileError
from treelm.estimation.lattice import Floats
from treelm.models.composite.actions import ActionCodes
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parts import CompositeParts, CompositeShape
from treelm.models.model import explain
from treelm.store.folder import FolderWriter, ModelFolder

#: Files of the model folder, and names of arrays among the tables.
TABLES, TAGS, PHRASES, WORDS = "tables.safetensors", "tags.txt", "phrases.txt", "words.txt"
COUNTS, PRIOR = "unigram_counts", "topic_prior"

UnigramCounts = npt.NDArray[np.uint64]


def write_files(
    writer: FolderWriter,
    parts: CompositeParts,
    vocabulary: Vocabulary,
    unigram_counts: UnigramCounts,
    topic_prior: Floats,
) -> None:
    """Write lattices, labels and words."""
    writer.tables(TABLES, {**parts.to_tensors(), COUNTS: unigram_counts, PRIOR: topic_prior})
    codes = parts.shape.codes
    writer.text(TAGS, "".join(f"{tag}\n" for tag in codes.tags))
    writer.text(PHRASES, "".join(f"{phrase}\n" for phrase in codes.phrases))
    save_vocabulary(vocabulary, writer.file(WORDS))


def read_files(
    folder: ModelFolder,
) -> tuple[CompositeParts, Vocabulary, UnigramCounts, Floats]:
    """Return what an opened folder holds.

    Raises:
        ModelFileError: if something is missing, or the parts do not fit together.
    """
    try:
        config = CompositeConfig.model_validate(folder.manifest.config)
    except ValidationError as error:
        raise ModelFileError(
            f"{folder.path}: this is no configuration of a composite model ({explain(error)})",
            code="E_MANIFEST",
        ) from error
    vocabulary = load_vocabulary(folder.file(WORDS))
    tables = folder.tables(TABLES)
    counts, prior = tables.get(COUNTS), tables.get(PRIOR)
    if (
        vocabulary.fingerprint != folder.manifest.vocabulary
        or counts is None
        or counts.dtype != np.uint64
        or counts.shape != (len(vocabulary) + 1,)
        or prior is None
        or prior.dtype != np.float64
        or prior.shape != (config.topics,)
        or not are_shares(prior)
    ):
        raise _damaged(folder, f"{WORDS}, {TABLES} and the manifest do not fit together")
    tags, phrases = (tuple(read_lines(folder.file(name))) for name in (TAGS, PHRASES))
    if len({*tags}) < len(tags) or len({*phrases}) < len(phrases):
        raise _damaged(folder, "a label stands twice among the labels")
    codes = ActionCodes(tags, phrases, unary_moves=config.unary_moves)
    try:
        shape = CompositeShape(config, len(vocabulary), codes)
        parts = CompositeParts.from_tensors(shape, tables)
        _ = parts.search  # says whether all fit together
    except (EstimationError, ModelFileError) as error:
        raise _damaged(folder, str(error)) from error
    return parts, vocabulary, counts, np.array(prior)


def are_shares(values: Floats) -> bool:
    """Return whether numbers are probabilities that add up to 1; nothing at all may be, too."""
    inside = bool(np.all((values >= 0) & (values <= 1)))
    return inside and (not len(values) or abs(float(values.sum()) - 1) < 1e-6)


def _damaged(folder: ModelFolder, what: str) -> ModelFileError:
    return ModelFileError(
        f"{folder.path}: {what.rstrip('.')}. Files of another model may have been copied in; "
        "train the model again.",
        code="E_MODEL_TABLES",
    )
