"""The five types of error: their candidates in a sentence, and a random choice among them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from treelm.tasks.corrupt.draws import Draws
from treelm.tasks.corrupt.letter_case import cased_like, first_word
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.spelling import SpellingErrors
from treelm.tasks.corrupt.tagged_sentences import TaggedSentence

ErrorName = Literal["missing", "extra", "spelling", "agreement", "verb-form"]


class Edit(NamedTuple):
    """A change of one token.

    Args:
        way: The kind of error within its type, such as the class of a missing word.
        place: Token that is deleted or replaced, or place at which one is inserted, from 0.
        word: The new word; None if the token is deleted.
        inserts: Whether the new word goes before the token instead of replacing it.
    """

    way: str
    place: int
    word: str | None = None
    inserts: bool = False


class ErrorType(ABC):
    """One type of error."""

    name: ErrorName
    #: Kinds of error within the type, for the counts.
    ways: tuple[str, ...]

    @abstractmethod
    def candidates(self, sentence: TaggedSentence) -> list[tuple[str, int]]:
        """Return the (way, token) pairs to which it applies; it does not apply if there is none."""

    @abstractmethod
    def choose(
        self, sentence: TaggedSentence, candidates: list[tuple[str, int]], draws: Draws
    ) -> Edit:
        """Return a random edit; there are candidates."""


_CLASS_WEIGHTS: Final = {
    "determiner": 28,
    "verb": 23,
    "preposition": 21,
    "pronoun": 10,
    "noun": 7,
    "to": 7,
    "conjunction": 2,
}
_CLASS_TAGS: Final = {
    "determiner": ("DT", "PDT", "PRP$", "WDT"),
    "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "MD"),
    "preposition": ("IN",),
    "pronoun": ("PRP", "WP", "EX"),
    "noun": ("NN", "NNS", "NNP", "NNPS"),
    "to": ("TO",),
    "conjunction": ("CC",),
}
_CLASS_OF: Final = {tag: name for name, tags in _CLASS_TAGS.items() for tag in tags}


class MissingWord(ErrorType):
    """A word is left out: first its class is chosen, then one of its tokens."""

    name = "missing"
    ways = tuple(_CLASS_WEIGHTS)

    def candidates(self, sentence: TaggedSentence) -> list[tuple[str, int]]:
        """Return the tokens of the classes that can be missing."""
        if len(sentence.words) < 2:
            return []
        return [
            (_CLASS_OF[tag], place) for place, tag in enumerate(sentence.tags) if tag in _CLASS_OF
        ]

    def choose(
        self, sentence: TaggedSentence, candidates: list[tuple[str, int]], draws: Draws
    ) -> Edit:
        """Return a deletion."""
        del sentence
        present = {way for way, _ in candidates}
        classes = [name for name in _CLASS_WEIGHTS if name in present]
        weights = list(accumulate(_CLASS_WEIGHTS[name] for name in classes))
        chosen = classes[draws.weighted(weights)]
        return Edit(chosen, draws.one_of([place for way, place in candidates if way == chosen]))


class ExtraWord(ErrorType):
    """A word is inserted: the same again, another with the same tag, or any.

    Args:
        lexicon: Where new words come from.
    """

    name = "extra"
    ways = ("repeated", "same-tag", "any")

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._has_other: dict[tuple[str, str], bool] = {}

    def candidates(self, sentence: TaggedSentence) -> list[tuple[str, int]]:
        """Return all tokens: any can be repeated, and any word can be inserted before it."""
        return [("repeated", place) for place in range(len(sentence.words))]

    def _places_with_others(self, sentence: TaggedSentence) -> list[int]:
        known = self._has_other
        places = []
        for place, pair in enumerate(zip(sentence.words, sentence.tags, strict=True)):
            has_other = known.get(pair)
            if has_other is None:
                has_other = known[pair] = self._lexicon.has_other(*pair)
            if has_other:
                places.append(place)
        return places

    def choose(
        self, sentence: TaggedSentence, candidates: list[tuple[str, int]], draws: Draws
    ) -> Edit:
        """Return an insertion."""
        words, tags = sentence
        others = self._places_with_others(sentence)
        ways = [way for way in self.ways if _is_possible(way, others, self._lexicon)]
        way = draws.one_of(ways)
        if way == "repeated":
            place = draws.below(len(candidates))
            word = words[place]
            if place == first_word(words):
                word = self._lexicon.entry(word, tags[place])
            return Edit(way, place + 1, word, inserts=True)
        if way == "same-tag":
            place = draws.one_of(others)
            after = draws.below(2)
            word = self._lexicon.draw_other(words[place], tags[place], draws)
            return Edit(way, place + after, word, inserts=True)
        word = self._lexicon.draw_token(draws)
        return Edit(way, draws.below(len(words) + 1), word, inserts=True)


def _is_possible(way: str, others: list[int], lexicon: Lexicon) -> bool:
    if way == "same-tag":
        return bool(others)
    return way == "repeated" or bool(lexicon)


class SpellingError(ErrorType):
    """A word becomes another real word, by confusion or by a change of one letter.

    Args:
        errors: What can replace a token.
    """

    name = "spelling"
    ways = ("confusion", "letter")

    def __init__(self, errors: SpellingErrors) -> None:
        self._errors = errors

    def candidates(self, sentence: TaggedSentence) -> list[tuple[str, int]]:
        """Return the tokens that another word can replace."""
        find = self._errors.of
        return [
            ("letter", place)
            for place, (word, tag) in enumerate(zip(*sentence, strict=True))
            if find(word, tag)
        ]

    def choose(
        self, sentence: TaggedSentence, candidates: list[tuple[str, int]], draws: Draws
    ) -> Edit:
        """Return a replacement."""
        _, place = draws.one_of(candidates)
        word, tag = sentence.words[place], sentence.tags[place]
        new = draws.one_of(self._errors.of(word, tag))
        way = "confusion" if self._errors.is_confusion(word) else "letter"
        is_first = place == first_word(sentence.words)
        return Edit(way, place, cased_like(new, word, first=is_first))
