"""Capital letters of words that replace others, or that become first words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: Tags of words that keep their capital letter anywhere.
PROPER_TAGS: Final = frozenset({"NNP", "NNPS"})

_BRACKET_NAME = re.compile(r"-[LR][RSC]B-")


@lru_cache(1 << 16)
def is_word(token: str) -> bool:
    """Return whether a token can be the first word of a sentence; punctuation cannot.

    Examples:
        >>> [token for token in ("``", "-LRB-", "The", "1990s", "--") if is_word(token)]
        ['The', '1990s']
    """
    return any(map(str.isalnum, token)) and not _BRACKET_NAME.fullmatch(token)


def first_word(tokens: list[str]) -> int:
    """Return the place of the first word; 0 if there is none."""
    return next((place for place, token in enumerate(tokens) if is_word(token)), 0)


def capitalized(word: str) -> str:
    """Return the word with its first letter in upper case.

    Examples:
        >>> capitalized("the"), capitalized("DNA"), capitalized("1st")
        ('The', 'DNA', '1st')
    """
    return word[:1].upper() + word[1:]


def cased_like(word: str, model: str, *, first: bool) -> str:
    """Return a lower-case word with the capital letters of the word that it replaces.

    The capital of *I* belongs to that word, not to its place: its replacement has one only at
    the start of a sentence.

    Args:
        word: The new word, in lower case.
        model: The word that it replaces.
        first: Whether that is the first word of its sentence.

    Examples:
        >>> [cased_like("are", model, first=False) for model in ("is", "Is", "IS", "I")]
        ['are', 'Are', 'ARE', 'are']
        >>> cased_like("i", "it", first=False)
        'I'
    """
    if model == "I" and not first:
        return word
    if len(model) > 1 and model.isupper():
        return word.upper()
    if word == "i" or model[:1].isupper():
        return capitalized(word)
    return word


def inflected_like(form: str, word: str, *, first: bool) -> str:
    """Return another form of a noun with its capital letters; an acronym takes a small *s*.

    Examples:
        >>> [inflected_like("rnas", "RNA", first=False), inflected_like("rna", "RNAs", first=False)]
        ['RNAs', 'RNA']
        >>> inflected_like("dogs", "Dog", first=True), inflected_like("loxps", "loxP", first=False)
        ('Dogs', 'loxPs')
    """
    if word not in (word.lower(), word.capitalize()):
        size = min(len(word), len(form))
        if word[:size].lower() == form[:size]:
            return word[:size] + form[size:]
    return cased_like(form, word, first=first)
