"""Incremental models: states, steps, and everything that follows from them.

A system defines `initial`, `advance`, `finish` and a few properties; everything else has a default
here that obeys the laws L1 to L8 of `treelm.testing.incremental` if those three do. Natural
logarithms everywhere; surprisal is in bits.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import EncodedText, Ids, Places, encode_sentences, encode_strings
from treelm.corpus.lengths import after_sentences
from treelm.corpus.vocabulary import SENTENCE_END
from treelm.corpus.words import Word, Words, check_sentences, words_of
from treelm.errors import UnsupportedTask, UsageError
from treelm.models.interface.document_reader import DocumentReader
from treelm.models.interface.model import LONGEST_SAMPLE, LanguageModel, Task
from treelm.models.interface.score_explanation import (
    Arithmetic,
    ScoreExplanation,
    ScoreStep,
    given,
)
from treelm.models.interface.scores import (
    BatchScores,
    CountedScores,
    Sample,
    SentenceScore,
    WordScore,
)
from treelm.models.interface.states import Context, State, Step, Steps, check_state_model
from treelm.models.interface.variants import SENTENCES_AT_ONCE
from treelm.models.interface.words import WordIds
from treelm.seeds import given_or_fresh, random_uniform

#: Sentences that are scored at once.
BATCH = SENTENCES_AT_ONCE


class IncrementalModel(LanguageModel):
    """A model that predicts one word after the other."""

    # -- what a system must define ----------------------------------------------------------

    @abstractmethod
    def initial(self, context: Context | None = None) -> State:
        """Return the state before any word, the sentence start already consumed.

        Args:
            context: What `end_sentence` returned for the sentence before in the same document, or
                the context of a new document; None if the document is not known.
        """

    @abstractmethod
    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""

    @abstractmethod
    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""

    @property
    @abstractmethod
    def fingerprint(self) -> bytes:
        """8 bytes that identify the model; the same after saving and loading."""

    @abstractmethod
    def state_from_bytes(self, data: bytes) -> State:
        """Return the state whose `to_bytes` gave these bytes.

        Raises:
            UsageError: ``E_STATE_MODEL`` if it belongs to another model, ``E_STATE_BYTES`` if it is
                not a state.
        """

    # -- what follows -----------------------------------------------------------------------

    @property
    def incremental(self) -> Self:
        """The model itself: it goes word by word."""
        return self

    @cached_property
    def word_ids(self) -> WordIds:
        """Ids of the words, as `advance` takes them."""
        return WordIds(self.vocabulary)

    def check_state(self, state: State) -> None:
        """Refuse a state of another model."""
        check_state_model(state.model, self.fingerprint)

    def end_sentence(self, state: State) -> Context:
        """Return what the next sentence of the document needs; nothing without document memory."""
        self.check_state(state)
        return Context()

    def key(self, state: State) -> Hashable:
        """Return the key by which hypotheses may be merged: bytes or a whole number."""
        self.check_state(state)
        return state.to_bytes()

    def advance_many(self, states: Sequence[State], words: Sequence[Word]) -> Steps:
        """Return the result of `advance` for each pair; equal pairs are computed once.

        Raises:
            ValueError: if there are not as many words as states.
        """
        words = check_pairs(states, words)
        done: dict[tuple[State, Word], Step] = {}
        steps = []
        for pair in zip(states, words, strict=True):
            step = done.get(pair)
            if step is None:
                step = done[pair] = self.advance(*pair)
            steps.append(step)
        self.count("advances", len(done))
        self.count("cache_hits", len(steps) - len(done))
        log_probs = np.fromiter((step.log_prob for step in steps), np.float64, len(steps))
        return Steps(log_probs, [step.state for step in steps])

    def score_phrase(self, state: State, words: Words) -> Step:
        """Return the log probability of several words in a state, and the state after them."""
        total = 0.0
        for word in words_of(words):
            log_prob, state = self.advance(state, word)
            total += log_prob
        return Step(total, state)

    #: What is added up, and where the equations are, for `explain_score`.
    score_story: ClassVar[str] = "Each word is predicted from those before it (the chain rule)."
    score_reference: ClassVar[str] = "the page of the system in the documentation"

    def word_arithmetic(
        self, state: State, word: Word | None, before: Sequence[str]
    ) -> Arithmetic | None:
        """Return how the probability of a word is worked out in a state.

        Args:
            state: The state.
            word: The word; None for the end of the sentence.
            before: The words that led to the state.
        """
        del state, word, before
        return None

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the arithmetic of the log probability of a sentence, word by word."""
        state: State = self.initial()
        words, steps = tuple(words_of(sentence)), []
        for place, word in enumerate(words):
            arithmetic = self.word_arithmetic(state, word, words[:place])
            log_prob, state = self.advance(state, word)
            steps.append(ScoreStep(given(words[:place], word), log_prob, arithmetic))
        arithmetic = self.word_arithmetic(state, None, words)
        steps.append(ScoreStep(given(words, "</s>"), self.finish(state), arithmetic))
        return ScoreExplanation(
            self.system,
            words,
            "log probability",
            self.score(words).log_prob,
            tuple(steps),
            self.score_story,
            self.score_reference,
        )

    def score_sentence(self, words: Words, context: Context | None = None) -> float:
        """Return the log probability of a sentence, its end included."""
        log_prob, state = self.score_phrase(self.initial(context), words)
        return log_prob + self.finish(state)

    def distribution(
        self, state: State, words: Sequence[Word] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of words in a state.

        Args:
            state: The state.
            words: The words; None for all of the vocabulary by id, and the sentence end last.
        """
        asked: Iterable[Word] = range(len(self.vocabulary)) if words is None else words_of(words)
        log_probs = [self.advance(state, word).log_prob for word in asked]
        if words is None:
            log_probs.append(self.finish(state))
        return np.array(log_probs, dtype=np.float64)

    def estimate(self, words: Words) -> float:
        """Return an optimistic log probability of words anywhere, for future costs in decoding.

        It does not depend on the state. The default is the optimistic 0.
        """
        self.word_ids.sentence(words_of(words))
        return 0.0

    # -- sentences --------------------------------------------------------------------------

    def score_batch(self, sentences: Sequence[Words], *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences, in flat arrays.

        Args:
            sentences: Each is scored on its own, as in a document that is not known.
            threads: Number of threads.
        """
        text = self._encoded(sentences)
        return self.score_ids(text.ids, text.starts, threads=threads)

    def _encoded(self, sentences: Sequence[Words]) -> EncodedText:
        check_sentences(sentences)
        text = encode_strings(sentences, self.vocabulary)
        return encode_sentences(sentences, self.vocabulary) if text is None else text

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences given as ids.

        Args:
            ids: The words of all sentences, for example those of `encode_text`.
            starts: Where each sentence begins, and the total.
            threads: Number of threads.
        """
        del threads
        log_probs: list[float] = []
        words = ids.tolist()
        for first, last in pairwise(starts.tolist()):
            state = self.initial()
            for word in words[first:last]:
                log_prob, state = self.advance(state, word)
                log_probs.append(log_prob)
            log_probs.append(self.finish(state))
        return self.batch_scores(np.array(log_probs, dtype=np.float64), ids, starts)

    @property
    def words_are_cheap(self) -> bool:
        """Whether reading a word again takes less time than keeping the state before it."""
        return False

    @property
    def reads_spelling(self) -> bool:
        """Whether unknown words are told apart by their letters, which ids do not have."""
        return False

    @property
    def open_vocabulary(self) -> bool:
        """Whether every word has a probability of its own, in the vocabulary or not."""
        return False

    @property
    def remembers_documents(self) -> bool:
        """Whether a sentence depends on those before it in its document."""
        return False

    def score_documents(self, text: EncodedText, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of a text in documents.

        Args:
            text: The text; the first sentence of a document does not depend on those before.
            threads: Number of threads.
        """
        if not self.remembers_documents:
            return self.score_ids(text.ids, text.starts, threads=threads)
        return DocumentReader(self).score(text)

    def batch_scores(
        self, log_probs: npt.NDArray[np.float64], ids: Ids, starts: Places
    ) -> BatchScores:
        """Return scores with the starts of sentences and which words are unknown."""
        with_ends = starts.astype(np.int64) + np.arange(len(starts))

        def mark_oov() -> npt.NDArray[np.bool_]:
            is_word = np.ones(len(log_probs), dtype=np.bool_)
            is_word[with_ends[1:] - 1] = False
            oov = np.zeros(len(log_probs), dtype=np.bool_)
            oov[is_word] = self.word_ids.is_oov[ids]
            return oov

        return BatchScores(log_probs, with_ends, mark_oov)

    def score(self, sentence: Words, *, eos: bool = True, bos: bool = True) -> SentenceScore:
        """Return the score of a sentence and of each of its words.

        Args:
            sentence: Its words, or a string that is split at white space.
            eos: Whether the end of the sentence counts.
            bos: Whether the words begin the sentence; see `continuation`.
        """
        words = words_of(sentence)
        if not bos:
            return self.continuation(words, bos=False, eos=eos)
        scores = self.score_batch([words]).sentence_scores([words], self.info.exactness, eos=eos)
        return next(scores)

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1, bos: bool = True
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order."""
        check_sentences(sentences)
        if not bos:
            yield from (self.continuation(each, bos=False, eos=eos) for each in sentences)
            return
        rest, done = iter(sentences), 0
        while batch := list(islice(rest, BATCH)):
            with after_sentences(done):
                scores = self.score_batch(batch, threads=threads)
            done += len(batch)
            yield from scores.sentence_scores(batch, self.info.exactness, eos=eos)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of sentences, in order."""
        return self.score_batch(sentences, threads=threads).sentence_log_probs(eos=eos)

    def log_probs_and_unknown(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> CountedScores:
        """Return log probabilities and the number of unknown words, from one encoding."""
        if self.reads_spelling:
            return super().log_probs_and_unknown(sentences, eos=eos, threads=threads)
        text = self._encoded(sentences)
        scores = self.score_ids(text.ids, text.starts, threads=threads)
        return CountedScores(scores.sentence_log_probs(eos=eos), len(text.ids), text.unknown)

    def surprisal(self, sentence: Words, *, eos: bool = False) -> list[WordScore]:
        """Return the score of every word; `surprisal` of each is in bits."""
        score = self.score(sentence)
        rows = list(score.words or ())
        if eos and score.end is not None:
            rows.append(WordScore(SENTENCE_END, score.end))
        return rows

    def continuation(
        self, words: Words, context: Words = "", *, bos: bool = True, eos: bool = False
    ) -> SentenceScore:
        """Return the score of words that go on from others, which are given and not scored."""
        before = words_of(context)
        state = self._state_after(before, bos=bos)
        total = 0.0
        rows = []
        for place, word in enumerate(words_of(words)):
            log_prob, state = self.advance(state, word)
            number = self.word_ids.word(word, first=bos and not before and not place)
            rows.append(WordScore(word, log_prob, bool(self.word_ids.is_oov[number])))
            total += log_prob
        end = self.finish(state) if eos else None
        total += end or 0.0
        lost = total == -math.inf
        return SentenceScore(total, self.info.exactness, eos, tuple(rows), end, fallback=lost)

    def top(self, n: int = 10, context: Words = "", *, bos: bool = True) -> list[WordScore]:
        """Return the most probable next words after others, ``</s>`` among them, the first first.

        Raises:
            UsageError: if `n` is less than one.
        """
        if n < 1:
            raise UsageError(f"n is {n}; at least one word must be asked for.")
        log_probs = self.distribution(self._state_after(words_of(context), bos=bos))
        names, end = self.vocabulary.symbols, len(self.vocabulary)
        # Only those that may be among the best are put in order; equal ones stay in that of ids.
        least = np.partition(log_probs, -n)[-n] if n < len(log_probs) else -math.inf
        chosen = np.flatnonzero(log_probs >= least)
        best = chosen[np.argsort(-log_probs[chosen], kind="stable")[:n]].tolist()
        is_oov = self.word_ids.is_oov
        return [
            WordScore(
                SENTENCE_END if id_ == end else names[id_],
                float(log_probs[id_]),
                bool(is_oov[id_]),
            )
            for id_ in best
        ]

    def _state_after(self, context: Sequence[str], *, bos: bool) -> State:
        return self.score_phrase(self.initial() if bos else self.fragment(), context).state

    def fragment(self) -> State:
        """Return the state in the middle of a sentence of which nothing is known.

        Raises:
            UnsupportedTask: if the model needs the sentence from its start.
        """
        raise UnsupportedTask(
            f"{self.system} models need a sentence from its start (bos=True). N-gram models and "
            "mixtures of these can begin in the middle of one."
        )

    def sample(
        self,
        count: int,
        *,
        seed: int | None = None,
        first: int = 0,
        max_words: int = LONGEST_SAMPLE,
    ) -> list[Sample]:
        """Return sentences drawn from the model, cut after `max_words` words."""
        chosen = given_or_fresh(seed)
        drawn = (self._sample_one(chosen, first + index, max_words) for index in range(count))
        return [each._replace(seed=chosen) for each in drawn]

    def _sample_one(self, seed: int, stream: int, max_words: int) -> Sample:
        state = self.initial()
        ids: list[int] = []
        total = 0.0
        for place in range(max_words + 1):
            log_probs = self.distribution(state)
            reach = np.cumsum(np.exp(log_probs))
            point = random_uniform(seed, stream, place) * reach[-1]
            drawn = min(int(np.searchsorted(reach, point, "right")), self.word_ids.end)
            if drawn == self.word_ids.end:
                total += float(log_probs[drawn])
                return Sample(self.vocabulary.decode(ids), total, complete=True)
            if place == max_words:
                break
            log_prob, state = self.advance(state, drawn)
            total += log_prob
            ids.append(drawn)
        return Sample(self.vocabulary.decode(ids), total, complete=False)

    # -- counters ---------------------------------------------------------------------------

    @cached_property
    def _stats(self) -> dict[str, int]:
        return {}

    def count(self, name: str, amount: int) -> None:
        """Add to a counter of `stats`."""
        self._stats[name] = self._stats.get(name, 0) + amount

    def stats(self) -> dict[str, int]:
        """Return the counters since the last `reset_stats`; threads may make them slightly low."""
        return dict(self._stats)

    def reset_stats(self) -> None:
        """Reset all counters."""
        self._stats.clear()


def check_pairs(states: Sequence[State], words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words for as many states; a string is split at white space.

    Raises:
        ValueError: naming both lengths.
    """
    given = words_of(words)
    if len(states) != len(given):
        raise ValueError(
            f"advance_many needs one word for each state; there are {len(states)} states and "
            f"{len(given)} words"
        )
    return given


def as_incremental(model: LanguageModel) -> IncrementalModel:
    """Return the model if it goes word by word.

    Raises:
        UnsupportedTask: ``E_NOT_INCREMENTAL``, naming the systems that do.
    """
    model.require(Task.SURPRISAL)
    if model.incremental is None:
        raise model.unable(Task.SURPRISAL)
    return model.incremental
