"""What models that were trained on a corpus remember of it."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import Vocabulary
from treelm.models.model import Config, LanguageModel
from treelm.store.manifest import TrainingCorpus

OwnConfig = TypeVar("OwnConfig", bound=Config)


class TrainedModel(LanguageModel, Generic[OwnConfig]):
    """Holds options, words, corpora and unigram counts; a system sets them when it is made."""

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
        """The words it knows, and what stands for the others."""
        return self._vocabulary

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What it was trained on."""
        return self._corpora

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64]:
        """Counts of the training text by word id, that of the sentence end last."""
        return self._unigram_counts
