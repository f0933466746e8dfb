"""What every model that tells good sentences from bad ones can do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import ClassVar, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.errors import UnsupportedTask
from treelm.models.interface.calibration import Calibration
from treelm.models.interface.model import LanguageModel, ModelInfo, Task
from treelm.models.interface.scores import Decision, SentenceScore
from treelm.models.interface.trained_model import OwnConfig
from treelm.models.interface.words import Words, words_of
from treelm.store.manifest import TrainingCorpus
from treelm.trees.tree import Tree

Floats = npt.NDArray[np.float64]

#: Sentences that are looked at together.
_BATCH = 1024


class Explanation(NamedTuple):
    """The tree behind a decision, and what each of its productions adds to the margin."""

    tree: Tree
    weights: tuple[float, ...]
    """One a node, in preorder: that of the production below it."""


class Classifier(LanguageModel, Generic[OwnConfig]):
    """A model whose score is a margin: good above zero, bad at zero and below."""

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.CLASSIFY, Task.SCORE})

    _config: OwnConfig
    _calibration: Calibration
    _corpora: tuple[TrainingCorpus, ...]

    @property
    def config(self) -> OwnConfig:
        """The options it was trained with."""
        return self._config

    @property
    def calibration(self) -> Calibration:
        """The curve from margins to probabilities."""
        return self._calibration

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What it was trained on."""
        return self._corpora

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        return ModelInfo(
            exactness="margin", normalized=False, vocabulary=self.vocabulary.fingerprint
        )

    @abstractmethod
    def margins(self, sentences: Sequence[Sequence[str]], *, threads: int = 1) -> Floats:
        """Return the margin of every sentence; minus infinity where there is none.

        Args:
            sentences: Each a sequence of words.
            threads: Kernel threads; results do not depend on it.
        """

    def classify_many(self, sentences: Iterable[Words], *, threads: int = 1) -> Iterator[Decision]:
        """Yield label, margin and probability of each sentence, in order."""
        rest = iter(sentences)
        while batch := [words_of(sentence) for sentence in islice(rest, _BATCH)]:
            margins = self.margins(batch, threads=threads)
            chances = self.probabilities(margins).tolist()
            for margin, chance in zip(margins.tolist(), chances, strict=True):
                yield Decision("good" if margin > 0 else "bad", margin, chance)

    def probabilities(self, margins: Floats) -> Floats:
        """Return the probabilities that sentences with these margins are good."""
        return self.calibration.probabilities(margins)

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the margin of a sentence as a score."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the margins of sentences, in order; one without a margin is marked."""
        rest = iter(sentences)
        while batch := list(islice(rest, _BATCH)):
            for value in self.sentence_log_probs(batch, eos=eos, threads=threads).tolist():
                yield SentenceScore(value, "margin", eos, fallback=value == -np.inf)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> Floats:
        """Return the margins of sentences, in order."""
        if not eos:
            raise UnsupportedTask("a classifier judges whole sentences, their end included.")
        return self.margins([words_of(sentence) for sentence in sentences], threads=threads)
