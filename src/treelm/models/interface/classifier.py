"""The interface of every model that tells good sentences from bad ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.lengths import after_sentences
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UnsupportedTask
from treelm.models.interface.calibration import Calibration
from treelm.models.interface.model import ModelInfo, Task
from treelm.models.interface.score_explanation import ScoreExplanation, ScoreStep
from treelm.models.interface.scores import Decision, SentenceScore
from treelm.models.interface.trained_model import ConfiguredModel, OwnConfig
from treelm.trees.tree import Tree

Floats = npt.NDArray[np.float64]

#: Number of sentences classified together.
_BATCH = 1024


class Explanation(NamedTuple):
    """The tree behind a decision, and what each of its parts adds to the margin."""

    tree: Tree
    weights: tuple[float, ...]
    """One per node, in preorder: that of the production below it, or of all that belongs to it."""
    elsewhere: float | None = None
    """What belongs to no node and adds to the margin; None if that is not such a sum."""


class Classifier(ConfiguredModel[OwnConfig]):
    """A model whose score is a margin: good above zero, bad at zero and below."""

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.CLASSIFY, Task.SCORE})

    _calibration: Calibration

    @property
    def calibration(self) -> Calibration:
        """The curve from margins to probabilities."""
        return self._calibration

    def _arguments(self) -> dict[str, Any]:
        return {
            "config": self._config,
            "calibration": self._calibration,
            "corpora": self._corpora,
        }

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it returns."""
        return ModelInfo(
            exactness="margin", normalized=False, vocabulary=self.vocabulary.fingerprint
        )

    @abstractmethod
    def margins(self, sentences: Sequence[Words], *, threads: int = 1) -> Floats:
        """Return the margin of every sentence; minus infinity where there is none.

        Args:
            sentences: The words of each, or strings that are split at white space.
            threads: Number of threads.
        """

    def classify_many(self, sentences: Iterable[Words], *, threads: int = 1) -> Iterator[Decision]:
        """Yield label, margin and probability of each sentence, in order."""
        rest, done = sentences_of(sentences), 0
        while batch := list(islice(rest, _BATCH)):
            with after_sentences(done):
                margins = self.margins(batch, threads=threads)
            done += len(batch)
            chances = self.probabilities(margins).tolist()
            for margin, chance in zip(margins.tolist(), chances, strict=True):
                yield Decision("good" if margin > 0 else "bad", margin, chance)

    #: What is added up, and where the equations are, for `explain_score`.
    score_story: ClassVar[str] = "The margin is the sum of the weights of what was found."
    score_reference: ClassVar[str] = "the page of the system in the documentation"

    def margin_steps(self, words: tuple[str, ...]) -> list[ScoreStep]:
        """Return the parts of the margin of a sentence; by default there is only one."""
        return [ScoreStep("margin", float(self.margins([words])[0]))]

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the arithmetic of the margin of a sentence."""
        [words] = sentences_of([sentence])
        margin = float(self.margins([words])[0])
        steps = [ScoreStep("the model cannot analyse the sentence", margin)]
        if margin > -np.inf:
            steps = self.margin_steps(tuple(words))
        return ScoreExplanation(
            self.system,
            tuple(words),
            "margin",
            margin,
            tuple(steps),
            self.score_story,
            self.score_reference,
        )

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
        rest, done = sentences_of(sentences), 0
        while batch := list(islice(rest, _BATCH)):
            with after_sentences(done):
                values = self.sentence_log_probs(batch, eos=eos, threads=threads).tolist()
            done += len(batch)
            for value in values:
                yield SentenceScore(value, "margin", eos, fallback=value == -np.inf)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> Floats:
        """Return the margins of sentences, in order."""
        if not eos:
            raise UnsupportedTask("a classifier judges whole sentences, their end included.")
        return self.margins(list(sentences_of(sentences)), threads=threads)


def weighed(weights: dict[str, float], *, offset: float | None = None) -> list[ScoreStep]:
    """Return features as steps, those that matter most first, and the offset last."""
    ordered = sorted(weights.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    steps = [ScoreStep(name, weight) for name, weight in ordered]
    return steps if offset is None else [*steps, ScoreStep("offset", offset)]
