"""Scores: what a model says about words and sentences, always with how exact it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.store.manifest import Exactness

_LN_2 = math.log(2.0)


@dataclass(frozen=True, slots=True)
class WordScore:
    """What a model says about one word, given the words before it.

    Args:
        word: The word as it stands in the text.
        log_prob: Natural logarithm of its probability.
        oov: Whether the model does not know the word and scored what stands for it.

    Examples:
        >>> WordScore("the", math.log(0.25)).surprisal
        2.0
    """

    word: str
    log_prob: float
    oov: bool = False

    @property
    def surprisal(self) -> float:
        """Surprisal in bits."""
        return bits(self.log_prob)


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """What a model says about a sentence.

    Args:
        log_prob: Natural logarithm of its probability, or a margin if `exactness` says so.
        exactness: What kind of number it is.
        eos: Whether the end of the sentence is part of it.
        words: The scores of the words, without the end; None if the model scores whole sentences.
        end: Natural logarithm of the probability of the end; None where there is none.
    """

    log_prob: float
    exactness: Exactness
    eos: bool = True
    words: tuple[WordScore, ...] | None = None
    end: float | None = None

    @property
    def surprisal(self) -> float:
        """Surprisal of the sentence in bits."""
        return bits(self.log_prob)


class Sample(NamedTuple):
    """A sentence drawn from a model."""

    words: tuple[str, ...]
    log_prob: float
    """Natural logarithm of its probability, its end included if it is complete."""
    complete: bool
    """False if it was cut at the largest number of words."""


@dataclass(frozen=True, slots=True)
class BatchScores:
    """Word scores of many sentences in flat arrays: the words of each, then its end.

    Args:
        log_probs: Natural logarithms, one a word and one for the end of each sentence.
        starts: Where each sentence begins, and the total; one more than there are sentences.
        oov: Which words the model does not know; never the end.
    """

    log_probs: npt.NDArray[np.float64]
    starts: npt.NDArray[np.int64]
    oov: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """Places of the ends of sentences in the flat arrays."""
        return self.starts[1:] - 1

    def sentence_log_probs(self, *, eos: bool = True) -> npt.NDArray[np.float64]:
        """Return the log probability of every sentence.

        Args:
            eos: Whether the end of the sentence counts.
        """
        if not len(self):
            return np.zeros(0)
        values = self.log_probs
        if not eos:
            values = values.copy()
            values[self.ends] = 0.0
        return np.add.reduceat(values, self.starts[:-1])

    def bits(self) -> npt.NDArray[np.float64]:
        """Return the surprisal of every word and end, in bits."""
        surprisal: npt.NDArray[np.float64] = self.log_probs / -_LN_2 + 0.0
        return surprisal

    def sentence_score(
        self, index: int, words: tuple[str, ...], exactness: Exactness, *, eos: bool = True
    ) -> SentenceScore:
        """Return the score of one sentence, given its words."""
        first, last = int(self.starts[index]), int(self.starts[index + 1])
        values = self.log_probs[first:last].tolist()
        marks = self.oov[first:last].tolist()
        total = math.fsum(values if eos else values[:-1]) if values else 0.0
        return SentenceScore(
            log_prob=total,
            exactness=exactness,
            eos=eos,
            words=tuple(
                WordScore(word, value, mark)
                for word, value, mark in zip(words, values[:-1], marks[:-1], strict=True)
            ),
            end=values[-1] if eos else None,
        )


def bits(log_prob: float) -> float:
    """Return the surprisal in bits of a natural log probability; never a negative zero.

    Examples:
        >>> bits(math.log(0.5)), bits(0.0), bits(-math.inf)
        (1.0, 0.0, inf)
    """
    return -log_prob / _LN_2 + 0.0
