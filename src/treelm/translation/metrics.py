"""What hypotheses are measured by when weights are tuned: BLEU, or the rate of word errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from treelm.corpus.words import split_words
from treelm.errors import UsageError
from treelm.translation import bleu as bleu_counts
from treelm.translation import word_errors
from treelm.translation.bleu import References, bleu, list_statistics

#: BLEU of translations, or the word error rate of recognised speech.
MetricName = Literal["bleu", "wer"]

Statistics = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class Metric(ABC):
    """A figure of a text, computed from statistics that are added over its sentences."""

    #: Its name, as options call it.
    name: MetricName
    #: How reports call it.
    title: str
    #: Number of statistics of a sentence.
    columns: int

    @abstractmethod
    def reference(self, texts: Sequence[str]) -> Any:
        """Return the references of one sentence, ready for comparison."""

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], reference: Any) -> Statistics:
        """Return the statistics of hypotheses for one sentence, a row each."""

    @abstractmethod
    def value(self, sums: npt.NDArray[np.generic]) -> Numbers:
        """Return the figure of each row of sums, turned so that more is better."""

    @abstractmethod
    def alone(self, statistics: Statistics) -> Numbers:
        """Return how good each row is by itself."""

    def shown(self, value: float) -> float:
        """Return a figure as people know it."""
        return value


class Bleu(Metric):
    """BLEU from 0 to 100, without smoothing."""

    name: MetricName = "bleu"
    title = "BLEU"
    columns = bleu_counts.COLUMNS

    def reference(self, texts: Sequence[str]) -> References:
        """Return the n-grams of the references."""
        return References.of(texts)

    def statistics(self, hypotheses: Sequence[str], reference: References) -> Statistics:
        """Return matches and n-grams of each order, and lengths."""
        return list_statistics(hypotheses, reference)

    def value(self, sums: npt.NDArray[np.generic]) -> Numbers:
        """Return BLEU."""
        return bleu(sums)

    def alone(self, statistics: Statistics) -> Numbers:
        """Return BLEU with one more n-gram of each order that matches: most have none of four."""
        return bleu(statistics + (np.arange(self.columns) < 2 * bleu_counts.ORDER))


class WordErrorRate(Metric):
    """Word errors per hundred words of the reference; as few as possible."""

    name: MetricName = "wer"
    title = "WER"
    columns = word_errors.COLUMNS

    def reference(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the words of the only reference."""
        if len(texts) != 1:
            raise UsageError("the word error rate is measured with one file of references.")
        return split_words(texts[0])

    def statistics(self, hypotheses: Sequence[str], reference: tuple[str, ...]) -> Statistics:
        """Return errors and words of the reference."""
        return word_errors.list_errors(hypotheses, reference)

    def value(self, sums: npt.NDArray[np.generic]) -> Numbers:
        """Return the rate below 0; a text without words has one word, so that errors count."""
        counts = np.asarray(sums, dtype=np.float64)
        found: Numbers = -100 * counts[..., 0] / np.maximum(counts[..., 1], 1)
        return found

    def alone(self, statistics: Statistics) -> Numbers:
        """Return the number of errors, below 0."""
        return -statistics[:, 0].astype(np.float64)

    def shown(self, value: float) -> float:
        """Return the rate, not below 0."""
        return -value + 0.0


BLEU, WER = Bleu(), WordErrorRate()
METRICS: dict[MetricName, Metric] = {"bleu": BLEU, "wer": WER}
