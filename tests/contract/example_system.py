"""Words without order: a system as another package would write it, in one module."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
from pydantic import Field

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, words_of
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.model import ModelInfo, Task
from treelm.models.interface.scores import SentenceScore
from treelm.models.interface.trained_model import TrainedModel, corpus_record
from treelm.models.registry import System
from treelm.models.run import QUIET, Run
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.schema import UNIGRAM_COUNTS, damage_in, read_tensors, read_words, write_words

SYSTEM = System(
    name="example",
    model="example_system:ExampleModel",
    train="example_system:train_example",
    config="example_system:ExampleConfig",
    summary="Count words, whatever their order.",
    example="--text train.txt --added 0.5",
)


class ExampleConfig(Config):
    """How counts become probabilities."""

    added: float = Field(default=1.0, gt=0)
    """Added to the count of every word."""


class ExampleModel(TrainedModel[ExampleConfig]):
    """Gives a word the same probability wherever it stands."""

    system = "example"
    tasks = frozenset({Task.SCORE, Task.PERPLEXITY})
    config_class = ExampleConfig

    def __init__(
        self, vocabulary: Vocabulary, unigram_counts: Any, config: ExampleConfig, corpora: Any
    ) -> None:
        self._vocabulary, self._unigram_counts = vocabulary, unigram_counts
        self._config, self._corpora = config, tuple(corpora)
        counts = unigram_counts + config.added
        self._log_probs = np.log(counts / counts.sum())

    @property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        words = self._vocabulary.fingerprint
        return ModelInfo(exactness="exact", normalized=True, order=1, vocabulary=words)

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the score of a sentence."""
        total = self._log_probs[self._vocabulary.encode(words_of(sentence))].sum()
        return SentenceScore(float(total + eos * self._log_probs[-1]), "exact", eos)

    def write_files(self, writer: FolderWriter) -> None:
        """Write words and counts."""
        write_words(writer, self._vocabulary)
        writer.tables(TABLES, {UNIGRAM_COUNTS.name: self._unigram_counts})

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        config = config_of(folder, ExampleConfig, "an example model")
        with damage_in(folder):
            vocabulary = read_words(folder)
            tables = read_tensors(folder.tables(), (UNIGRAM_COUNTS,), words=len(vocabulary))
        return cls(vocabulary, tables[UNIGRAM_COUNTS.name], config, folder.manifest.corpora)


def train_example(corpus: TextCorpus, config: ExampleConfig, *, run: Run = QUIET) -> ExampleModel:
    """Return the counts of a text as a model.

    Args:
        corpus: The text.
        config: Options.
        run: How the training is run.
    """
    del run  # it takes no time worth speaking of
    vocabulary = Vocabulary.from_counts(Counter(word for words in corpus for word in words))
    counts = np.zeros(len(vocabulary) + 1, np.uint64)
    for words in corpus:
        np.add.at(counts, [*vocabulary.encode(words), -1], np.uint64(1))
    return ExampleModel(vocabulary, counts, config, [corpus_record(corpus)])
