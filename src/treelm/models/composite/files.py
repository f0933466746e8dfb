"""The composite model as the files of a model folder, and back, with everything checked."""

from __future__ import annotations

from treelm.corpus.files import read_lines
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import save_vocabulary
from treelm.errors import EstimationError, ModelFileError
from treelm.estimation.lattice import Floats
from treelm.models.composite.actions import ActionCodes
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parts import CompositeParts, CompositeShape
from treelm.models.interface.model import config_of
from treelm.models.plsa.files import (
    COUNTS,
    TABLES,
    WORDS,
    UnigramCounts,
    damaged,
    read_words_and_topics,
)
from treelm.store.folder import FolderWriter, ModelFolder

#: Files of the model folder, and names of arrays among the tables.
TAGS, PHRASES, PRIOR = "tags.txt", "phrases.txt", "topic_prior"


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
    """Return the content of an opened folder.

    Raises:
        ModelFileError: if something is missing, or the parts do not fit together.
    """
    config = config_of(folder, CompositeConfig, "a composite model")
    vocabulary, counts, prior, tables = read_words_and_topics(folder, PRIOR, config.topics)
    tags, phrases = (tuple(read_lines(folder.file(name))) for name in (TAGS, PHRASES))
    if len({*tags}) < len(tags) or len({*phrases}) < len(phrases):
        raise damaged(folder, "a label is duplicate")
    codes = ActionCodes(tags, phrases, unary_moves=config.unary_moves)
    try:
        shape = CompositeShape(config, len(vocabulary), codes)
        parts = CompositeParts.from_tensors(shape, tables)
        _ = parts.search  # checks that all fit together
    except (EstimationError, ModelFileError) as error:
        raise damaged(folder, str(error)) from error
    return parts, vocabulary, counts, prior
