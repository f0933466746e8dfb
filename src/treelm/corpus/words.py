"""What people give as words and sentences: a string is split at white space, never into letters."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from treelm.errors import UsageError

#: A sentence: its words, or a string that is split at white space only.
Words = str | Sequence[str]
#: A word as written, or its id in the vocabulary of the model.
Word = str | int

#: What separates words; other Unicode spaces are part of a word.
SPACE = " \t\n\r\v\f"
_SPACES = re.compile(f"[{SPACE}]+")


def split_words(line: str) -> tuple[str, ...]:
    r"""Return the words of a line, split at ASCII white space as in brackets.

    A no-break space or another Unicode space is part of a word.

    Examples:
        >>> split_words(" one\ttwo\u00a0three ")
        ('one', 'two\xa0three')
    """
    stripped = line.strip(SPACE)
    return tuple(_SPACES.split(stripped)) if stripped else ()


@overload
def words_of(sentence: Words) -> tuple[str, ...]: ...
@overload
def words_of(sentence: Sequence[Word]) -> tuple[Word, ...]: ...
def words_of(sentence: Words | Sequence[Word]) -> tuple[Word, ...]:
    """Return the words of a sentence; a string is split at white space.

    Raises:
        UsageError: for bytes, or for anything that has no words.

    Examples:
        >>> words_of("the  old boat"), words_of(["the", "boat"])
        (('the', 'old', 'boat'), ('the', 'boat'))
    """
    if type(sentence) is tuple:  # the common case, of which there are millions
        return sentence
    if isinstance(sentence, str):
        return split_words(sentence)
    if isinstance(sentence, bytes) or not isinstance(sentence, Iterable):
        raise UsageError(
            "a sentence is a string, which is split at white space, or a list of its words, not "
            f"{_kind_of(sentence)}."
        )
    return tuple(sentence)


def sentences_of(sentences: Iterable[Words]) -> Iterator[tuple[str, ...]]:
    """Return the words of each of several sentences, one after the other.

    Raises:
        UsageError: for what is not several sentences; see `check_sentences`.

    Examples:
        >>> list(sentences_of(["the old boat", ["the", "boat"]]))
        [('the', 'old', 'boat'), ('the', 'boat')]
    """
    check_sentences(sentences)
    return map(words_of, sentences)


def check_sentences(sentences: object) -> None:
    """Refuse one string where several sentences are wanted: its letters are no sentences.

    Raises:
        UsageError: saying how one sentence, and how a file, is given.
    """
    if isinstance(sentences, str | bytes | os.PathLike) or not isinstance(sentences, Iterable):
        raise UsageError(
            f"several sentences are needed, not {_kind_of(sentences)}. Give a list of sentences, "
            'such as ["the boat left ."] for one of them, or a file as TextCorpus("FILE").'
        )


def check_raw(text: object) -> None:
    """Refuse anything but a string where raw text is wanted.

    Raises:
        UsageError: saying what was given.
    """
    if not isinstance(text, str):
        raise UsageError(
            f"raw text is one string, not {_kind_of(text)}. Give each of several sentences by "
            "itself; what is in words already need not be tokenized."
        )


def _kind_of(value: object) -> str:
    names = {str: "one string", bytes: "bytes", type(None): "None"}
    return names.get(type(value), f"an object of the type {type(value).__name__}")
