"""Models that spell unknown words: every word has a probability of its own.

A model with a spelling model (`treelm train --unknown spelling`) belongs to a class made here: that
of its system, in which whatever takes words as written adds the spelling of the unknown ones. The
model without it is kept as `closed`, so that nothing is added twice. Ids have no letters: what
takes ids, states or nothing (`score_ids`, `distribution` of all words, `top`) is about symbols.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import EncodedText, encode_sentences, written_words
from treelm.corpus.sentence_filter import SentenceFilter
from treelm.corpus.words import Word, Words, sentences_of, words_of
from treelm.errors import UsageError
from treelm.models.interface.config import UnknownWords, WordModelConfig
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import LONGEST_SAMPLE, LanguageModel
from treelm.models.interface.scores import BatchScores, CountedScores, Sample, SentenceScore
from treelm.models.interface.spelling import Spelling
from treelm.models.interface.states import State, Step, Steps
from treelm.models.interface.trained_model import ConfiguredModel

OwnModel = TypeVar("OwnModel", bound=LanguageModel)
Floats = npt.NDArray[np.float64]

#: Methods that return the model in another form.
_VARIANTS = (
    "compacted",
    "quantized",
    "with_loss",
    "with_max_words",
    "with_oov_log_prob",
    "with_parser",
    "with_search",
    "with_sums",
    "without_parser",
)


#: Those that make tables smaller: that of the spelling model, too.
_SMALLER = ("compacted", "quantized")


def with_spelling(model: OwnModel, spelling: Spelling) -> OwnModel:
    """Return a model that spells unknown words.

    Args:
        model: A model whose probabilities sum to 1 over its words and symbols.
        spelling: A spelling model over the same vocabulary.

    Raises:
        UsageError: if there are no probabilities that could be shared out.
    """
    if not model.info.normalized:
        raise UsageError(
            f"the scores of this {model.system} model are not probabilities that sum to 1, so "
            "there is nothing that spellings of unknown words could share."
        )
    if spelling.vocabulary.fingerprint != model.vocabulary.fingerprint:
        raise UsageError("the spelling model is that of another vocabulary.")
    plain = model.closed.with_tokenizer(None)
    closed = _copied(plain, type(plain), "symbol")
    made = _copied(plain, _spelled_class(type(plain)), "spelling")
    made._closed = closed
    made._spelling_model = spelling
    made._known = spelling.known
    return cast("OwnModel", made.with_tokenizer(model.tokenizer))


def _copied(model: LanguageModel, kind: type[OwnModel], unknown: UnknownWords) -> OwnModel:
    """Return a model as one of another class, whose options say what unknown words are."""
    made = object.__new__(kind)
    made.__dict__.update(model.__dict__)
    if isinstance(model, ConfiguredModel) and isinstance(model.config, WordModelConfig):
        made.__dict__["_config"] = model.config.model_copy(update={"unknown": unknown})
    return made


@functools.cache
def _spelled_class(kind: type[LanguageModel]) -> type[Spelled]:
    """Return the class of models of a system that spell unknown words."""
    bases: list[type] = []
    if issubclass(kind, IncrementalModel):
        bases.append(_SpelledWords)
    if hasattr(kind, "tree_log_probs"):
        # Models of trees take much that those of words do without: their first score comes sooner.
        from treelm.models.interface.spelled_trees import SpelledTrees

        bases.append(SpelledTrees)
    body: dict[str, Any] = {"__doc__": kind.__doc__, "__module__": kind.__module__}
    for name in _VARIANTS:
        if hasattr(kind, name):
            body[name] = _spelling_too(getattr(kind, name))
    for name in ("score_similar", "lower_bounds"):
        if hasattr(kind, name):
            body[name] = _BATCHES[name]
    return type(kind.__name__, (*(bases or [Spelled]), kind), body)


def _spelling_too(method: Callable[..., LanguageModel]) -> Callable[..., LanguageModel]:
    """Return a method that makes another form of the closed model, and gives it the spelling."""

    @functools.wraps(method)
    def called(self: Spelled, *arguments: Any, **named: Any) -> LanguageModel:
        make = getattr(self._closed, method.__name__)
        made: LanguageModel = make(*arguments, **named)
        spelling = self.spelling
        if method.__name__ in _SMALLER:
            spelling = getattr(spelling, method.__name__)(
                *arguments, **{name: named[name] for name in named if name != "memory"}
            )
        return with_spelling(made, spelling).with_tokenizer(self.tokenizer)

    return called


class Spelled(LanguageModel):
    """What all models that spell unknown words share; the rest is that of the system."""

    _closed: LanguageModel
    _spelling_model: Spelling
    _known: frozenset[str]

    @property
    def closed(self) -> LanguageModel:
        """The same model over the symbols of unknown words."""
        return self._closed.with_tokenizer(self.tokenizer)

    @property
    def spelling(self) -> Spelling:
        """How unknown words are spelled."""
        return self._spelling_model

    @property
    def scoring_parts(self) -> dict[str, object]:
        """How it is asked for scores, as parts of a signature."""
        return {**self._closed.scoring_parts, "unknown": "spelling"}

    def remember(self, sentences: SentenceFilter | None) -> Self:
        """Return the model with hashes of what it was trained on."""
        self._closed.remember(sentences)
        return super().remember(sentences)

    def _changed(self, **arguments: object) -> LanguageModel:
        changed = self._closed._changed(**arguments)  # type: ignore[attr-defined]
        return with_spelling(cast("LanguageModel", changed), self._spelling_model).with_tokenizer(
            self.tokenizer
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return with_spelling, (self._closed, self._spelling_model)

    def spelling_sums(self, sentences: Sequence[Words]) -> Floats:
        """Return for every sentence the log probability of the spellings of its unknown words."""
        return spelling_sums(self._spelling_model, sentences)

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the score of a sentence."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order."""
        rest = sentences_of(sentences)
        while batch := list(islice(rest, self.sentences_at_once)):
            sums = self.spelling_sums(batch).tolist()
            scores = self._closed.score_many(batch, eos=eos, threads=threads)
            for score, extra in zip(scores, sums, strict=True):
                yield score._replace(log_prob=score.log_prob + extra)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> Floats:
        """Return the log probabilities of sentences, in order."""
        given = list(sentences_of(sentences))
        values = self._closed.sentence_log_probs(given, eos=eos, threads=threads)
        return values + self.spelling_sums(given)

    def log_probs_and_unknown(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> CountedScores:
        """Return what `sentence_log_probs` gives, and how many words are out of vocabulary."""
        found = self._closed.log_probs_and_unknown(sentences, eos=eos, threads=threads)
        if not found.unknown:
            return found
        return found._replace(log_probs=found.log_probs + self.spelling_sums(sentences))

    def sample(
        self,
        count: int,
        *,
        seed: int | None = None,
        first: int = 0,
        max_words: int = LONGEST_SAMPLE,
        **named: Any,
    ) -> list[Sample]:
        """Return sentences drawn from the model, unknown words spelled."""
        found = self._closed.sample(count, seed=seed, first=first, max_words=max_words, **named)
        return [
            spell_sample(
                each, first + number, lambda _: self._spelling_model, self._sample_log_prob
            )
            for number, each in enumerate(found)
        ]

    def _sample_log_prob(self, sample: Sample) -> float:
        """Return the log probability of a sample as it is written."""
        return self.score(sample.words, eos=sample.complete).log_prob


class _SpelledWords(Spelled, IncrementalModel):
    """A model that goes word by word and spells unknown words."""

    _closed: IncrementalModel

    @property
    def closed(self) -> IncrementalModel:
        """The same model over the symbols of unknown words."""
        return self._closed.with_tokenizer(self.tokenizer)

    @property
    def reads_spelling(self) -> bool:
        """True: unknown words are told apart by their letters."""
        return True

    @property
    def open_vocabulary(self) -> bool:
        """True: every word has a probability of its own."""
        return True

    def stats(self) -> dict[str, int]:
        """Return the counters since the last `reset_stats`."""
        return self._closed.stats()

    def reset_stats(self) -> None:
        """Reset all counters."""
        self._closed.reset_stats()

    def _extra(self, state: State, word: Word) -> float:
        """Return the log probability of the spelling of a word; 0 for known words and ids."""
        spelling = self._spelling_model
        if not isinstance(word, str) or word in self._known:
            return 0.0
        first = spelling.word_ids.position_matters and self._closed.is_at_start(state)
        return spelling.log_prob(word, first=first)

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        step = self._closed.advance(state, word)
        if word in self._known or not isinstance(word, str):  # this is called for every word
            return step
        return Step(step.log_prob + self._extra(state, word), step.state)

    def advance_many(self, states: Sequence[State], words: Sequence[Word], **named: Any) -> Steps:
        """Return what `advance` gives for each pair."""
        words = words_of(words)
        steps = self._closed.advance_many(states, words, **named)
        known = self._spelling_model.known
        places = [
            place for place, word in enumerate(words) if isinstance(word, str) and word not in known
        ]
        if not places:
            return steps
        log_probs = steps.log_probs.copy()
        log_probs[places] += [self._extra(states[place], words[place]) for place in places]
        return Steps(log_probs, steps.states)

    def distribution(self, state: State, words: Sequence[Word] | None = None) -> Floats:
        """Return the log probabilities of words in a state; of all symbols by default."""
        found = self._closed.distribution(state, words)
        if words is None:
            return found
        return found + [self._extra(state, word) for word in words_of(words)]

    def estimate(self, words: Words) -> float:
        """Return an optimistic log probability of words anywhere."""
        given = words_of(words)
        known = self._spelling_model.known
        extra = sum(self._spelling_model.log_prob(w, first=False) for w in given if w not in known)
        return self._closed.estimate(given) + extra

    def score_batch(self, sentences: Sequence[Words], *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences, in flat arrays."""
        sentences = sentences if isinstance(sentences, Sequence) else list(sentences)
        scores = self._closed.score_batch(sentences, threads=threads)
        places = np.flatnonzero(scores.oov)
        if not len(places):
            return replace(scores, closed=scores.log_probs)
        numbers = np.searchsorted(scores.starts, places, side="right") - 1
        offsets = places - scores.starts[numbers]
        words = written_words(sentences, numbers, offsets)
        return self._opened(scores, places, offsets == 0, words)

    @property
    def _sums_words(self) -> bool:
        """Whether the score of a sentence is the sum of those of its words, to the last bit."""
        return type(self._closed).sentence_log_probs is IncrementalModel.sentence_log_probs

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> Floats:
        """Return the log probabilities of sentences, in order."""
        if not self._sums_words:
            return super().sentence_log_probs(sentences, eos=eos, threads=threads)
        return self.score_batch(sentences, threads=threads).sentence_log_probs(eos=eos)

    def log_probs_and_unknown(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> CountedScores:
        """Return what `sentence_log_probs` gives, and how many words are out of vocabulary."""
        if not self._sums_words:
            return super().log_probs_and_unknown(sentences, eos=eos, threads=threads)
        found = self.score_batch(sentences, threads=threads)
        words = len(found.log_probs) - len(found)
        return CountedScores(found.sentence_log_probs(eos=eos), words, int(found.oov.sum()))

    def score_documents(self, text: EncodedText, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of a text in documents.

        Unknown words are spelled if the text says how they are written.
        """
        scores = self._closed.score_documents(text, threads=threads)
        if text.written is None:
            return scores
        places = np.flatnonzero(scores.oov)
        numbers = np.searchsorted(scores.starts, places, side="right") - 1
        return self._opened(scores, places, places == scores.starts[numbers], text.written)

    def _opened(
        self,
        scores: BatchScores,
        places: npt.NDArray[np.intp],
        first: npt.NDArray[np.bool_],
        words: Sequence[str],
    ) -> BatchScores:
        """Return scores with the spellings of the words at some places."""
        word_ids = self._spelling_model.word_ids
        pairs = zip(words, first.tolist(), strict=True)
        symbols = [word_ids.word(word, first=begins) for word, begins in pairs]
        log_probs = scores.log_probs.copy()
        log_probs[places] += self._spelling_model.log_probs(symbols, words)
        return replace(scores, log_probs=log_probs, closed=scores.log_probs)

    def score(self, sentence: Words, *, eos: bool = True, bos: bool = True) -> SentenceScore:
        """Return the score of a sentence and of each of its words."""
        # Where all that spaces separate is known, there is nothing else between the words.
        given = sentence.split(" ") if isinstance(sentence, str) else words_of(sentence)
        if self._known.issuperset(given):
            return self._closed.score(sentence, eos=eos, bos=bos)
        return IncrementalModel.score(self, sentence, eos=eos, bos=bos)

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1, bos: bool = True
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences and of their words, in order."""
        return IncrementalModel.score_many(self, sentences, eos=eos, bos=bos, threads=threads)


def _score_similar(self: Any, lists: Sequence[Sequence[Words]]) -> Floats:
    """Return the log probabilities of the sentences of lists, one list after the other."""
    found: Floats = self._closed.score_similar(lists)
    sums: Floats = self.spelling_sums([sentence for each in lists for sentence in each])
    return found + sums


def _lower_bounds(self: Any, sentences: Sequence[Words], *arguments: Any, **named: Any) -> Floats:
    """Return the log probabilities of sentences in their pruned charts."""
    found: Floats = self._closed.lower_bounds(sentences, *arguments, **named)
    sums: Floats = self.spelling_sums(sentences)
    return found + sums


#: Methods of some systems that score many sentences at once.
_BATCHES: dict[str, Callable[..., Floats]] = {
    "score_similar": _score_similar,
    "lower_bounds": _lower_bounds,
}


def spelling_sums(spelling: Spelling, sentences: Sequence[Words]) -> Floats:
    """Return for every sentence the log probability of the spellings of its unknown words."""
    given = list(sentences_of(sentences))
    text = encode_sentences(given, spelling.vocabulary, written=True)
    sums = np.zeros(len(given))
    if text.written:
        places = np.flatnonzero(spelling.word_ids.is_oov[text.ids])
        numbers = np.searchsorted(text.starts, places, side="right") - 1
        np.add.at(sums, numbers, spelling.log_probs(text.ids[places].tolist(), text.written))
    return sums


def spell_sample(
    sample: Sample,
    number: int,
    choose: Callable[[int], Spelling],
    log_prob_of: Callable[[Sample], float],
) -> Sample:
    """Return a sampled sentence with words in place of the symbols of unknown ones.

    Args:
        sample: The sentence.
        number: Its number.
        choose: Returns the spelling model for the word at a place.
        log_prob_of: Returns the log probability of the sentence with its new words.
    """
    if not sample.words or sample.seed is None:
        return sample
    words = list(sample.words)
    for place, symbol in enumerate(sample.words):
        spelling = choose(place)
        if symbol in spelling.known:
            continue
        id_ = int(spelling.vocabulary.ids_of([symbol])[0])
        word = spelling.sample(id_, first=place == 0, seed=sample.seed, stream=number, place=place)
        if word is not None:
            words[place] = word
    if tuple(words) == sample.words:
        return sample
    tree = None if sample.tree is None else sample.tree.with_words(words)
    spelled = sample._replace(words=tuple(words), tree=tree)
    return spelled._replace(log_prob=log_prob_of(spelled))
