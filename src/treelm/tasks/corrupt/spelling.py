"""Real-word spelling errors: confusions, and words one letter away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Final

from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError
from treelm.tasks.corrupt.letter_case import PROPER_TAGS

#: Smallest count in the treebank of a word that can replace others.
RAREST_NEIGHBOUR: Final = 10

#: A single letter is a name, not a word, except for these with these tags.
_LETTER_WORDS: Final = frozenset({"a", "I"})
_LETTER_WORD_TAGS: Final = frozenset({"DT", "PRP"})

#: Parts of *gonna*, *can't* and the like, which are words only together.
_PARTS: Final = frozenset({"gon", "wan", "na", "ta", "gim", "lem", "ca", "wo", "sha", "ai"})
_VOWELS: Final = frozenset("aeiouy")

Confusions = Mapping[str, tuple[str, ...]]


def read_confusions(source: Source | None = None) -> Confusions:
    """Return the words that each word is confused with, in lower case.

    Args:
        source: File with two words per line; ``#`` starts a comment. Default: the packaged list.

    Raises:
        CorpusFormatError: ``E_CONFUSIONS`` if a line does not have two different words.

    Examples:
        >>> read_confusions()["it"]
        ('its', 'is')
    """
    name = "confusions.txt" if source is None else source_name(source)
    if source is None:
        packaged = resources.files("treelm.tasks.corrupt") / "confusions.txt"
        lines: Iterable[str] = packaged.read_text(encoding="utf-8").splitlines()
    else:
        lines = read_lines(source)
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        words = split_words(line.partition("#")[0].lower())
        if not words:
            continue
        if len(words) != 2 or words[0] == words[1]:
            raise CorpusFormatError(
                f"{name}:{number}: a line of a confusion list must have two different words, "
                "separated by a space; this one does not. Write pairs of single words, one per "
                "line.",
                code="E_CONFUSIONS",
                path=name,
                line=number,
            )
        for word, other in (words, words[::-1]):
            others = found.setdefault(word, [])
            if other not in others:
                others.append(other)
    return {word: tuple(others) for word, others in found.items()}


class Neighbours:
    """Finds the words at Levenshtein distance 1 among given ones.

    Args:
        words: The words, in lower case.

    Examples:
        >>> Neighbours(["cat", "cart", "cut", "at", "dog"]).of("cat")
        ['at', 'cart', 'cut']
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._by_pattern: dict[str, list[str]] = {}
        self._by_shorter: dict[str, list[str]] = {}
        for word in self._words:
            for pattern in _patterns(word):
                self._by_pattern.setdefault(pattern, []).append(word)
            for shorter in _shorter(word):
                self._by_shorter.setdefault(shorter, []).append(word)

    def of(self, word: str) -> list[str]:
        """Return the words that differ from this one by one letter, sorted."""
        found = set(self._by_shorter.get(word, ())) | (_shorter(word) & self._words)
        for pattern in _patterns(word):
            found.update(self._by_pattern.get(pattern, ()))
        return sorted(found - {word})


def _patterns(word: str) -> Iterator[str]:
    for place in range(len(word)):
        yield f"{word[:place]}\0{word[place + 1 :]}"


def _shorter(word: str) -> set[str]:
    return {word[:place] + word[place + 1 :] for place in range(len(word))}


def _is_real(word: str) -> bool:
    """Return whether a token is a word, not a part of one or a sign made of consonants.

    Examples:
        >>> [word for word in ("the", "bp", "gon", "I", "x", "n't") if _is_real(word)]
        ['the', 'I']
    """
    if len(word) == 1:
        return word in _LETTER_WORDS
    return word.isalpha() and word not in _PARTS and not _VOWELS.isdisjoint(word.lower())


class SpellingErrors:
    """Real words that can replace a token by mistake.

    Proper names are mistaken for any word, other words only for words that are not proper names.

    Args:
        frequency: Words as they are written inside a sentence, with their counts.
        confusions: Words that are confused with each other; they come before neighbours.
        rarest: Smallest count of a neighbour.
    """

    def __init__(
        self,
        frequency: Mapping[str, int],
        confusions: Confusions,
        *,
        rarest: int = RAREST_NEIGHBOUR,
    ) -> None:
        frequent = [word for word, count in frequency.items() if count >= rarest and _is_real(word)]
        self._all = Neighbours(word.lower() for word in frequent)
        self._ordinary = Neighbours(
            word.lower() for word in frequent if word.islower() or word == "I"
        )
        self._confusions = confusions
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, token: str, tag: str) -> tuple[str, ...]:
        """Return the possible replacements of a token, in lower case, all equally likely."""
        key = (token, tag)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(token, tag)
        return found

    def is_confusion(self, token: str) -> bool:
        """Return whether the replacements of a token come from the confusion list."""
        return token.lower() in self._confusions

    def _find(self, token: str, tag: str) -> tuple[str, ...]:
        word = token.lower()
        if word in self._confusions:
            return self._confusions[word]
        if len(token) == 1 and tag not in _LETTER_WORD_TAGS:
            return ()
        # Capitals inside a word mark names and symbols, which are not mistaken for words.
        if not token.isalpha() or token not in (word, word.upper(), word.capitalize()):
            return ()
        return tuple((self._all if tag in PROPER_TAGS else self._ordinary).of(word))
