"""The Python module of KenLM over models of treelm: ``import treelm.interop.kenlm as kenlm``.

Names, arguments and units are KenLM's, which its users know: scores are base 10 logarithms here,
unlike everywhere else in treelm, and states are filled in by the methods that are given them.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelm.errors import TreelmError, TreelmWarning, VocabularyError

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel as LanguageModel_
    from treelm.models.interface.states import State as ModelState
    from treelm.models.interface.states import Step
    from treelm.models.ngram.model import NgramModel

__all__ = [
    "ARPALoadComplain",
    "Config",
    "FullScoreReturn",
    "LanguageModel",
    "LoadMethod",
    "Model",
    "State",
]

_START, _END = "<s>", "</s>"
_BOUNDARIES = frozenset((_START, _END))
_LOG10 = 1 / math.log(10)
#: `Model.order` where every word of the sentence may count.
_WHOLE_SENTENCE = 1 << 30
#: Id of the unknown word in every vocabulary.
_UNKNOWN = 0


class LoadMethod:
    """How KenLM loads its binary files; models of treelm are mapped, whatever is chosen."""

    LAZY = 0
    POPULATE_OR_LAZY = 1
    POPULATE_OR_READ = 2
    READ = 3
    PARALLEL_READ = 4


class ARPALoadComplain:
    """Which oddities of an ARPA file are worth a warning; `NONE` silences them."""

    ALL = 0
    EXPENSIVE = 1
    NONE = 2


class Config:
    """How a model is loaded; of KenLM's settings `arpa_complain` changes something here."""

    def __init__(self) -> None:
        self.load_method = LoadMethod.POPULATE_OR_READ
        self.show_progress = True
        self.arpa_complain = ARPALoadComplain.ALL


class FullScoreReturn:
    """A word's score: base 10 logarithm, length of the n-gram that matched, whether it is unknown.

    Args:
        log_prob: Base 10 logarithm of the probability.
        ngram_length: Words of the longest n-gram that the word ends; 0 for models without n-grams.
        oov: Whether the word is out of vocabulary.
    """

    __slots__ = ("log_prob", "ngram_length", "oov")

    def __init__(self, log_prob: float, ngram_length: int, oov: bool) -> None:
        self.log_prob = log_prob
        self.ngram_length = ngram_length
        self.oov = oov

    def __repr__(self) -> str:
        return f"FullScoreReturn({self.log_prob!r}, {self.ngram_length!r}, {self.oov!r})"


class State:
    """The words before the next one; comparable, hashable and ordered.

    A new one has no words before it, as after `Model.NullContextWrite`.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: ModelState | None = None

    def _bytes(self) -> bytes:
        return b"" if self._held is None else self._held.to_bytes()

    def __eq__(self, other: object) -> bool:
        return self._held == other._held if isinstance(other, State) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._held)

    def __lt__(self, other: State) -> bool:
        return self._bytes() < other._bytes()

    def __le__(self, other: State) -> bool:
        return self._bytes() <= other._bytes()

    def __gt__(self, other: State) -> bool:
        return self._bytes() > other._bytes()

    def __ge__(self, other: State) -> bool:
        return self._bytes() >= other._bytes()

    def __copy__(self) -> State:
        return _state_of(self._held)

    def __deepcopy__(self, memo: object) -> State:
        return _state_of(self._held)

    def __reduce__(self) -> tuple[Any, ...]:
        return _state_of, (self._held,)


def _state_of(held: ModelState | None) -> State:
    state = State()
    state._held = held
    return state


class Model:
    """A language model with the methods of ``kenlm.Model``.

    Args:
        path: An ARPA file, perhaps compressed; a model folder; or a model of treelm itself, which
            must go word by word.
        config: How it is loaded.

    Raises:
        OSError: if it cannot be read, as KenLM does; KenLM's binary files cannot.
        UnsupportedTask: ``E_NOT_INCREMENTAL`` if it scores whole sentences only.
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | LanguageModel_,
        config: Config | None = None,
    ) -> None:
        from treelm.models.interface.incremental import as_incremental

        self._given = path
        if isinstance(path, (str, bytes, os.PathLike)):
            name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  # as text, like KenLM's
            self.path = os.fsencode(name)
            found = _loaded(name, config or Config())
        else:
            self.path = b""
            found = path
        self._model = as_incremental(found)
        self._advance: Callable[[ModelState, str | int], Step] = self._model.advance
        self._initial: ModelState = self._model.initial()
        self._ngrams = _as_ngram(self._model)

    @property
    def order(self) -> int:
        """Words that an n-gram model looks at; a large number where the whole sentence counts."""
        from treelm.models.history import ngram_order

        return ngram_order(self._model) or _WHOLE_SENTENCE

    def score(self, sentence: str | bytes, bos: bool = True, eos: bool = True) -> float:
        """Return the base 10 logarithm of the probability of a sentence.

        Args:
            sentence: Its words, separated by white space.
            bos: Whether the words begin the sentence; if not, only n-gram models can say.
            eos: Whether the sentence ends after them.
        """
        text = _text(sentence)
        if bos:
            try:
                return self._model.score(text, eos=eos).log_prob * _LOG10
            except VocabularyError:
                pass  # boundaries among the words, which KenLM takes as they come
        return sum(log_prob for log_prob, _, _ in self._steps(text, bos=bos, eos=eos)) * _LOG10

    def perplexity(self, sentence: str | bytes) -> float:
        """Return the perplexity of a sentence, its end counted."""
        text = _text(sentence)
        return float(10.0 ** (-self.score(text) / (len(_words(text)) + 1)))

    def full_scores(
        self, sentence: str | bytes, bos: bool = True, eos: bool = True
    ) -> Iterator[tuple[float, int, bool]]:
        """Yield the score of every word, the n-gram length that matched, and whether it is unknown.

        The end of the sentence comes last.

        Args:
            sentence: Its words, separated by white space.
            bos: Whether the words begin the sentence.
            eos: Whether the sentence ends after them.
        """
        for log_prob, state, word in self._steps(_text(sentence), bos=bos, eos=eos):
            yield log_prob * _LOG10, self._ngram_length(state, word), word not in self

    def BeginSentenceWrite(self, state: State) -> None:
        """Make a state that of the beginning of a sentence."""
        state._held = self._initial

    def NullContextWrite(self, state: State) -> None:
        """Make a state that of no known words before.

        Raises:
            UnsupportedTask: if the model needs sentences from their start.
        """
        self._model.fragment()
        state._held = None

    def BaseScore(self, in_state: State, word: str, out_state: State) -> float:
        """Return the base 10 logarithm of the probability of a word, and change `out_state`.

        Args:
            in_state: The words before.
            word: The word, or ``</s>``.
            out_state: Becomes the state after the word; it may be `in_state`.
        """
        held = in_state._held
        if held is None or word in _BOUNDARIES:
            step = self._step(held, word)
        else:
            try:
                step = self._advance(held, word)
            except VocabularyError:
                step = self._advance(held, _UNKNOWN)
        log_prob, out_state._held = step
        return log_prob * _LOG10

    def BaseFullScore(self, in_state: State, word: str, out_state: State) -> FullScoreReturn:
        """Return everything about a word, and change `out_state`; see `BaseScore`."""
        held = self._start(in_state._held)
        log_prob = self.BaseScore(in_state, word, out_state)
        return FullScoreReturn(log_prob, self._ngram_length(held, word), word not in self)

    def __contains__(self, word: str | bytes) -> bool:
        name = _text(word)
        if name in _BOUNDARIES:
            return True
        ids = self._model.word_ids
        try:
            return not ids.is_oov[ids.word(name, first=False)]
        except VocabularyError:
            return False

    def __repr__(self) -> str:
        name = Path(os.fsdecode(self.path)).name if self.path else repr(self._model)
        return f"<Model from {name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._given,)

    # -- one word -----------------------------------------------------------------------------

    def _start(self, held: ModelState | None) -> ModelState:
        return self._model.fragment() if held is None else held

    def _steps(self, text: str, *, bos: bool, eos: bool) -> Iterator[tuple[float, ModelState, str]]:
        """Yield the natural log probability of every word, the state before it, and the word."""
        state = self._initial if bos else self._model.fragment()
        for word in (*_words(text), *((_END,) if eos else ())):
            step = self._step(state, word)
            yield step.log_prob, state, word
            state = step.state

    def _step(self, held: ModelState | None, word: str) -> Step:
        """Return what a word, a boundary, or what cannot be a word, has in a state."""
        state = self._start(held)
        if word in _BOUNDARIES:
            return self._step_over(state, word)
        try:
            return self._advance(state, word)
        except VocabularyError:
            return self._advance(state, _UNKNOWN)

    def _step_over(self, state: ModelState, boundary: str) -> Step:
        """Return what a boundary has in a state; after one, others than n-grams begin anew."""
        from treelm.models.interface.states import Step

        if self._ngrams is not None:
            return self._ngrams.advance_boundary(state, end=boundary == _END)
        return Step(self._model.finish(state) if boundary == _END else 0.0, self._initial)

    def _ngram_length(self, state: ModelState, word: str) -> int:
        """Return the length of the n-gram that matched, at least 1; 0 without n-grams."""
        if self._ngrams is None:
            return 0
        ids = self._ngrams.word_ids
        try:
            number = {_START: ids.start, _END: ids.end}.get(word)
            number = ids.word(word, first=False) if number is None else number
        except VocabularyError:
            number = _UNKNOWN
        return max(1, self._ngrams.matched_words(state, number))


class LanguageModel(Model):
    """The old name of `Model`."""


def _text(sentence: str | bytes) -> str:
    if isinstance(sentence, bytes):
        return sentence.decode()
    if isinstance(sentence, str):
        return sentence
    raise TypeError(f"Cannot convert {type(sentence)} to string")


def _words(text: str) -> tuple[str, ...]:
    from treelm.corpus.words import split_words

    return split_words(text)


def _loaded(path: str, config: Config) -> LanguageModel_:
    """Return the model of a file or folder; whatever is wrong with it is an OSError here."""
    from treelm.models.ngram.arpa import read_arpa
    from treelm.models.registry import load

    try:
        if Path(path).is_dir():
            return load(path)
        with warnings.catch_warnings():
            if config.arpa_complain == ARPALoadComplain.NONE:
                warnings.simplefilter("ignore", TreelmWarning)
            return read_arpa(path)
    except TreelmError as error:
        raise OSError(f"Cannot read model '{path}' ({error})") from error


def _as_ngram(model: LanguageModel_) -> NgramModel | None:
    from treelm.models.ngram.model import NgramModel

    return model if isinstance(model, NgramModel) else None
