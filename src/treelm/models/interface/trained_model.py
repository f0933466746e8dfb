"""What trained models record about their corpus."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import Fingerprint, TextCorpus, TreeCorpus
from treelm.corpus.files import source_name
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.interface.model import Config, LanguageModel
from treelm.store.manifest import TrainingCorpus

OwnConfig = TypeVar("OwnConfig", bound=Config)

#: Maximum length of recorded file names.
_LONGEST_NAME = 1000


def corpus_name(corpus: TextCorpus | TreeCorpus) -> str:
    """Return the names of the files of a corpus."""
    return " ".join(source_name(path) for path in corpus.paths)


def corpus_record(
    corpus: TextCorpus | TreeCorpus, fingerprint: Fingerprint | None = None
) -> TrainingCorpus:
    """Return what a manifest says about a training corpus.

    Args:
        corpus: The files.
        fingerprint: Its fingerprint, if known; otherwise the files are read for it.
    """
    found = fingerprint or corpus.fingerprint
    return TrainingCorpus(name=corpus_name(corpus)[:_LONGEST_NAME], **found._asdict())


class TrainedModel(LanguageModel, Generic[OwnConfig]):
    """Holds options, words, corpora and unigram counts; a system sets them in its constructor."""

    _config: OwnConfig
    _vocabulary: Vocabulary
    _corpora: tuple[TrainingCorpus, ...]
    _unigram_counts: npt.NDArray[np.uint64]

    @property
    def config(self) -> OwnConfig:
        """The options it was trained with."""
        return self._config

    @property
    def vocabulary(self) -> Vocabulary:
        """The words it knows, and what replaces the others."""
        return self._vocabulary

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What it was trained on."""
        return self._corpora

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64]:
        """Counts of the training text by word id, that of the sentence end last."""
        return self._unigram_counts
