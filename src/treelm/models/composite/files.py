"""The composite model as the files of a model folder, and back, with everything checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError
from treelm.estimation.lattice import Floats
from treelm.models.composite.actions import ActionCodes
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parts import CompositeParts, CompositeShape
from treelm.models.interface.config import config_of
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.schema import (
    UNIGRAM_COUNTS,
    Tensor,
    damage_in,
    distribution,
    read_tensors,
    read_words,
    write_words,
)

#: Files of the model folder.
TAGS, PHRASES = "tags.txt", "phrases.txt"
#: Shares of topics with which a document begins.
TOPIC_PRIOR = Tensor("topic_prior", np.float64, ("topics",), distribution)

UnigramCounts = npt.NDArray[np.uint64]


def write_files(
    writer: FolderWriter,
    parts: CompositeParts,
    vocabulary: Vocabulary,
    unigram_counts: UnigramCounts,
    topic_prior: Floats,
) -> None:
    """Write lattices, labels and words."""
    own = {UNIGRAM_COUNTS.name: unigram_counts, TOPIC_PRIOR.name: topic_prior}
    writer.tables(TABLES, {**parts.to_tensors(), **own})
    writer.lines(TAGS, parts.shape.codes.tags)
    writer.lines(PHRASES, parts.shape.codes.phrases)
    write_words(writer, vocabulary)


def read_files(
    folder: ModelFolder,
) -> tuple[CompositeParts, Vocabulary, UnigramCounts, Floats]:
    """Return the content of an opened folder.

    Raises:
        ModelFileError: if something is missing, or the parts do not fit together.
    """
    config = config_of(folder, CompositeConfig, "a composite model")
    with damage_in(folder):
        vocabulary = read_words(folder)
        tables = folder.tables()
        schema = (UNIGRAM_COUNTS, TOPIC_PRIOR)
        found = read_tensors(tables, schema, words=len(vocabulary), topics=config.topics)
        tags, phrases = folder.lines(TAGS), folder.lines(PHRASES)
        if len({*tags}) < len(tags) or len({*phrases}) < len(phrases):
            raise ModelFileError(
                f"a label occurs twice in {TAGS} or {PHRASES}", code="E_MODEL_TABLES"
            )
        codes = ActionCodes(tags, phrases, unary_moves=config.unary_moves)
        shape = CompositeShape(config, len(vocabulary), codes)
        parts = CompositeParts.from_tensors(shape, tables)
        _ = parts.search  # says whether all fit together
    prior = np.array(found[TOPIC_PRIOR.name])
    return parts, vocabulary, found[UNIGRAM_COUNTS.name], prior
