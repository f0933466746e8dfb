"""Scores: what a model says about words and sentences, always with its exactness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, pairwise, repeat
from typing import Literal, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt

from treelm.corpus.words import Words, words_of
from treelm.store.manifest import Exactness
from treelm.trees.tree import Tree

_LN_2 = math.log(2.0)


def exact_sums(
    values: npt.NDArray[np.float64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return sums that do not depend on the order of words, so that equal sentences tie.

    Args:
        values: Of the words of all sentences.
        starts: Where each sentence begins, and the total.
    """
    numbers = values.tolist()
    sums = [math.fsum(numbers[first:last]) for first, last in pairwise(starts.tolist())]
    return np.array(sums, dtype=np.float64)


class CountedScores(NamedTuple):
    """Log probabilities of sentences, the number of their words, and how many are unknown."""

    log_probs: npt.NDArray[np.float64]
    words: int
    unknown: int


@dataclass(frozen=True, slots=True)
class WordScore:
    """What a model says about one word, given the words before it.

    Args:
        word: The word as written in the text.
        log_prob: Natural logarithm of its probability.
        oov: Whether the word is out of vocabulary and its replacement was scored.

    Examples:
        >>> WordScore("the", math.log(0.25)).surprisal
        2.0
    """

    word: str
    log_prob: float
    oov: bool = False

    @property
    def probability(self) -> float:
        """Its probability."""
        return math.exp(self.log_prob)

    @property
    def surprisal(self) -> float:
        """Surprisal in bits."""
        return bits(self.log_prob)


class WordRows(Protocol):
    """Whatever has the scores of the words of sentences."""

    def word_rows(self, index: int) -> tuple[list[float], list[bool]]:
        """Return log probabilities of the words of a sentence, and which of them are unknown."""
        ...


class WordScores(Sequence[WordScore]):
    """The scores of the words of one sentence of many; made on demand.

    Args:
        scores: Those of all sentences.
        index: Which sentence it is.
        sentence: Its words, or the string they come from.
    """

    __slots__ = ("_index", "_made", "_scores", "_sentence")

    def __init__(self, scores: WordRows, index: int, sentence: Words) -> None:
        self._scores = scores
        self._index = index
        self._sentence = sentence
        self._made: tuple[WordScore, ...] | None = None

    @property
    def _words(self) -> tuple[WordScore, ...]:
        if self._made is None:
            values, marks = self._scores.word_rows(self._index)
            self._made = tuple(map(WordScore, words_of(self._sentence), values, marks))
            del self._scores, self._sentence
        return self._made

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, index: int) -> WordScore: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[WordScore, ...]: ...
    def __getitem__(self, index: int | slice) -> WordScore | tuple[WordScore, ...]:
        return self._words[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WordScores):
            return self._words == other._words
        return self._words == other

    def __hash__(self) -> int:
        return hash(self._words)

    def __repr__(self) -> str:
        return repr(self._words)

    def __reduce__(self) -> tuple[type[tuple[WordScore, ...]], tuple[tuple[WordScore, ...]]]:
        return tuple, (self._words,)


class SentenceScore(NamedTuple):
    """What a model says about a sentence."""

    log_prob: float
    """Natural logarithm of its probability, or a margin if `exactness` says so."""
    exactness: Exactness
    """What kind of number it is."""
    eos: bool = True
    """Whether the end of the sentence is part of it."""
    words: Sequence[WordScore] | None = None
    """The scores of the words, without the end; None if the model scores whole sentences."""
    end: float | None = None
    """Natural logarithm of the probability of the end; None where there is none."""
    trees: int | None = None
    """Number of trees summed over; None if it is not a sum over a list of trees."""
    fallback: bool = False
    """Whether the sentence has no parse, and a fallback was scored."""

    @property
    def surprisal(self) -> float:
        """Surprisal of the sentence in bits."""
        return bits(self.log_prob)

    def _repr_html_(self) -> str:
        from treelm.view.notebook import score_html

        words = [(each.word, each.surprisal, bool(each.oov)) for each in self.words or ()]
        end = None if self.end is None else bits(self.end)
        return score_html(self.log_prob, self.exactness, words, end)


class Decision(NamedTuple):
    """What a classifier says about a sentence."""

    label: Literal["good", "bad"]
    margin: float
    """Above zero for good sentences; minus infinity for one that it cannot analyse."""
    probability: float
    """That the sentence is good."""


class Sample(NamedTuple):
    """A sentence sampled from a model."""

    words: tuple[str, ...]
    log_prob: float
    """Natural logarithm of its probability, its end included if it is complete; with a tree, that
    of the tree and its words together."""
    complete: bool
    """False if it was cut, or abandoned, at the largest number of words."""
    tree: Tree | None = None
    """Its tree, if it was sampled from a grammar."""
    seed: int | None = None
    """The seed that gives it again."""


@dataclass(frozen=True)
class BatchScores:
    """Word scores of many sentences in flat arrays: the words of each, then its end.

    Args:
        log_probs: Natural logarithms, one per word and one for the end of each sentence.
        starts: Where each sentence begins, and the total; one more than there are sentences.
        mark_oov: Tells which words the model does not know, when somebody asks.
        parts: The scores that a mixture was made from, by those parts that count.
        closed: Where unknown words are spelled, the same with the symbols of unknown words alone.
    """

    log_probs: npt.NDArray[np.float64]
    starts: npt.NDArray[np.int64]
    mark_oov: Callable[[], npt.NDArray[np.bool_]]
    parts: tuple[BatchScores, ...] = ()
    closed: npt.NDArray[np.float64] | None = None

    @cached_property
    def oov(self) -> npt.NDArray[np.bool_]:
        """Which words are out of vocabulary; never the end."""
        return self.mark_oov()

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """Places of the ends of sentences in the flat arrays."""
        return self.starts[1:] - 1

    def word_rows(self, index: int) -> tuple[list[float], list[bool]]:
        """Return log probabilities of the words of a sentence, and which of them are unknown."""
        first, end = int(self.starts[index]), int(self.ends[index])
        return self.log_probs[first:end].tolist(), self.oov[first:end].tolist()

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

    def fallback(self, *, eos: bool = True) -> npt.NDArray[np.bool_]:
        """Return which sentences have no parse, for the model or for a part of a mixture.

        That is where the last thing that counts is impossible: no parse has come so far.

        Args:
            eos: Whether the end of the sentence counts.
        """
        if self.parts:
            marks = np.stack([part.fallback(eos=eos) for part in self.parts])
            return np.asarray(marks.any(axis=0))
        if eos:
            return np.asarray(np.isneginf(self.log_probs[self.ends]))
        has_words = self.ends > self.starts[:-1]
        lost = np.zeros(len(self), dtype=np.bool_)
        lost[has_words] = np.isneginf(self.log_probs[self.ends[has_words] - 1])
        return lost

    def bits(self) -> npt.NDArray[np.float64]:
        """Return the surprisal of every word and end, in bits."""
        surprisal: npt.NDArray[np.float64] = self.log_probs / -_LN_2 + 0.0
        return surprisal

    def sentence_scores(
        self, sentences: Sequence[Words], exactness: Exactness, *, eos: bool = True
    ) -> Iterator[SentenceScore]:
        """Return the score of every sentence, given its words."""
        totals = self.sentence_log_probs(eos=eos).tolist()
        ends = self.log_probs[self.ends].tolist() if eos else repeat(None)
        words = map(WordScores, repeat(self), count(), sentences)
        fallback = self.fallback(eos=eos).tolist()
        fields = (totals, repeat(exactness), repeat(eos), words, ends, repeat(None), fallback)
        # By all of its fields: twice as fast as the constructor.
        return map(partial(tuple.__new__, SentenceScore), zip(*fields, strict=False))


def bits(log_prob: float) -> float:
    """Return the surprisal in bits of a natural log probability; never a negative zero.

    Examples:
        >>> bits(math.log(0.5)), bits(0.0), bits(-math.inf)
        (1.0, 0.0, inf)
    """
    return -log_prob / _LN_2 + 0.0
