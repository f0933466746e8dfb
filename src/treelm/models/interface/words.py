"""Words as a model takes them: checked, and turned into the ids of its vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.vocabulary import RESERVED, SENTENCE_END, SENTENCE_START, Vocabulary
from treelm.corpus.words import Word, split_words, words_of
from treelm.errors import VocabularyError

_SHOWN_DIFFERENCES = 5


class WordIds:
    """Ids of words as a model uses them: the vocabulary's, then one each for end and start.

    Args:
        vocabulary: The words that the model knows.

    Examples:
        >>> ids = WordIds(Vocabulary.from_counts({"the": 3, "boat": 2}))
        >>> ids.sentence(("the", "old", "boat")), ids.end, ids.start
        ([1, 0, 2], 3, 4)
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.end = len(vocabulary)
        self.start = len(vocabulary) + 1
        #: Whether the first word of a sentence may get another symbol than the same word later.
        self.position_matters = any(vocabulary.signature_marks)

    @cached_property
    def is_oov(self) -> npt.NDArray[np.bool_]:
        """By id, the end of the sentence included: whether it replaces unknown words."""
        marks = np.frombuffer(self.vocabulary.signature_marks + b"\0", dtype=np.bool_).copy()
        marks[0] = True
        return marks

    @cached_property
    def _all(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.vocabulary.symbols)}

    @cached_property
    def _known(self) -> dict[str, int]:
        if not self.position_matters:
            return self._all
        marks = self.vocabulary.signature_marks
        return {symbol: index for symbol, index in self._all.items() if not marks[index]}

    def word(self, word: Word, *, first: bool) -> int:
        """Return the id of a word.

        Args:
            word: The word, or its id, which is checked.
            first: Whether it is the first word of its sentence.

        Raises:
            VocabularyError: ``E_RESERVED_SYMBOL`` for a sentence boundary, ``E_BAD_TOKEN`` for an
                invalid word.
        """
        if isinstance(word, str):
            found = self._known.get(word)
            return self._unknown(word, first=first) if found is None else found
        if 0 <= word < self.end:
            return int(word)
        if word in (self.end, self.start):
            raise reserved_word(SENTENCE_END if word == self.end else SENTENCE_START)
        raise VocabularyError(
            f"there is no word with the id {word}; the vocabulary has 0 to {self.end - 1}.",
            code="E_BAD_TOKEN",
        )

    def sentence(self, words: Sequence[Word]) -> list[int]:
        """Return the ids of a whole sentence."""
        known = self._known
        words = words_of(words)
        try:
            return [known[word] for word in words]  # type: ignore[index]  # the common case
        except KeyError:
            return [self.word(word, first=not place) for place, word in enumerate(words)]

    def _unknown(self, word: str, *, first: bool) -> int:
        if word in RESERVED:
            raise reserved_word(word)
        if split_words(word) != (word,):
            what = (
                "an empty string" if not word else f'"{visible(word)}", which contains white space,'
            )
            raise VocabularyError(
                f"{what} is not a word. Give a sentence as one string, which is split at white "
                "space, or as a list of its words.",
                code="E_BAD_TOKEN",
            )
        return self._all[self.vocabulary.symbol(word, 0 if first else 1)]


def reserved_word(word: str) -> VocabularyError:
    """Return the error for a sentence boundary among the words."""
    return VocabularyError(
        f'"{word}" marks a sentence boundary and cannot be a word of the text. Models add '
        "boundaries themselves; the end is scored by `finish`.",
        code="E_RESERVED_SYMBOL",
    )


def check_vocabularies(vocabularies: Sequence[Vocabulary]) -> None:
    """Refuse models with different vocabularies.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH``, showing the first words that differ.
    """
    first, *others = vocabularies
    for number, other in enumerate(others, 2):
        if other.fingerprint == first.fingerprint:
            continue
        raise VocabularyError(
            f"the vocabulary of model {number} differs from that of model 1 ({len(other)} symbols, "
            f"{other.fingerprint[:8]}; {len(first)} symbols, {first.fingerprint[:8]}). "
            f"{_differences(first, other)} Probabilities over different words cannot be compared "
            "or mixed: build one vocabulary with `treelm vocabulary` and train both with it.",
            code="E_VOCABULARY_MISMATCH",
        )


def _differences(first: Vocabulary, second: Vocabulary) -> str:
    ours, theirs = set(first.symbols), set(second.symbols)
    parts = []
    for which, mine, other in (("first", first, theirs), ("other", second, ours)):
        only = [symbol for symbol in mine.symbols if symbol not in other][:_SHOWN_DIFFERENCES]
        if only:
            parts.append(f"Only the {which} knows: {' '.join(map(visible, only))}.")
    if parts:
        return " ".join(parts)
    pairs = zip(first.symbols, second.symbols, strict=True)
    moved = [f"{visible(a)}/{visible(b)}" for a, b in pairs if a != b][:_SHOWN_DIFFERENCES]
    if moved:
        return f"The same symbols have different ids: {' '.join(moved)}."
    return "The symbols are the same, but the rules of the signatures differ."
