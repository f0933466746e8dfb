"""Tokenizers by name: what turns raw text into the words that a model was trained on.

`penn` is made for English. `simple` knows no language: letters, digits and the marks inside words
stay together, every other mark is a word. `segment` is for text without spaces between words: the
most probable sequence of the words that a model knows.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from treelm.corpus.sentences import drop_invisible
from treelm.corpus.words import split_words

if TYPE_CHECKING:
    from treelm.corpus.tokenize import TokenizedWords

#: Names of tokenizers.
TokenizerName = Literal["penn", "simple", "segment"]

#: What takes a sentence of raw text apart.
Tokenizing = Callable[[str], "TokenizedWords"]

#: Of text whose letters, digits and combining marks were replaced by w: these, joined by one mark
#: that people write inside words and numbers; dots and dashes; any other mark.
_PIECE = re.compile(r"w+(?:['’\-./:,_&@·]w+)*|\.{2,}|--+|_+|.")
_NUMBER = re.compile(r"^[\d.,:/\-]+$")
_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}


def simple_words(sentence: str) -> TokenizedWords:
    """Return the words and marks of a sentence in any language that writes spaces between words.

    Examples:
        >>> simple_words("¿Qué hay (hoy)? 3,5 kg.").tokens
        ('¿', 'Qué', 'hay', '-LRB-', 'hoy', '-RRB-', '?', '3,5', 'kg', '.')
        >>> simple_words("Hann sagði: „já“, o.s.frv.").tokens[2:]
        (':', '„', 'já', '“', ',', 'o.s.frv', '.')
    """
    words = split_words(sentence)
    tokens: list[str] = []
    ends: list[int] = []
    for word in words:
        for chunk in unicodedata.normalize("NFC", drop_invisible(word)).split():
            for found in _PIECE.finditer("".join(map(_shape, chunk))):
                tokens += _pieces(chunk[found.start() : found.end()])
        ends.append(len(tokens))
    return _tokenized(words, tuple(tokens), tuple(ends))


def _shape(character: str) -> str:
    return "w" if character.isalnum() or unicodedata.category(character)[0] == "M" else character


def _pieces(found: str) -> list[str]:
    """Return a match as words: marks of numbers do not join words, but for abbreviations."""
    if found in _BRACKETS:
        return [_BRACKETS[found]]
    if len(found) == 1 or _NUMBER.match(found) or not any(map(str.isalpha, found)):
        return [found]
    parts = re.split(r"([./:,])", found)
    if len(parts) == 1 or ("." in found and not set(found) & set(":,/") and _is_abbreviated(parts)):
        return [found]
    return [part for part in parts if part]


def _is_abbreviated(parts: Sequence[str]) -> bool:
    """Return whether parts between periods are those of an abbreviation or of a web address."""
    return all(len(part) <= 3 for part in parts[:-1])


class Segmenter:
    """Finds the most probable sequence of known words in text without spaces.

    A character that begins no known word is unknown; neighbours of one kind (Han, kana, letters,
    digits) are one unknown word, which is less probable than any known one, the more so the
    longer it is.

    Args:
        log_probs: Natural log probabilities of words.

    Examples:
        >>> segment = Segmenter({"東京": -2.0, "に": -1.0, "行く": -2.0, "東": -5.0, "京": -5.0})
        >>> segment("東京に行く。").tokens
        ('東京', 'に', '行く', '。')
        >>> segment("ロンドンに行く").tokens
        ('ロンドン', 'に', '行く')
    """

    def __init__(self, log_probs: Mapping[str, float]) -> None:
        self._log_probs = {word: value for word, value in log_probs.items() if word}
        self._longest = max(map(len, self._log_probs), default=1)
        lowest = min(self._log_probs.values(), default=0.0)
        # One unknown word costs more than a rare one, and every character of it a little.
        self._unknown, self._character = lowest - 2.0, -2.0

    @classmethod
    def of_counts(cls, counts: Mapping[str, int]) -> Segmenter:
        """Return a segmenter for words of which it is known how often they occur."""
        total = sum(counts.values()) + len(counts)
        return cls({word: math.log((count + 1) / total) for word, count in counts.items()})

    def __call__(self, sentence: str) -> TokenizedWords:
        """Return the words of a sentence; spaces, where there are any, separate words."""
        tokens: list[str] = []
        for chunk in drop_invisible(sentence).split():
            tokens += self._segment(chunk)
        words = tuple(tokens)
        return _tokenized(words, words, tuple(range(1, len(words) + 1)))

    def _segment(self, text: str) -> list[str]:
        best = [0.0] + [-math.inf] * len(text)
        start = [0] * (len(text) + 1)
        kinds = [_kind(character) for character in text]
        for first in range(len(text)):
            if best[first] == -math.inf:
                continue
            for last in range(first + 1, min(len(text), first + self._longest) + 1):
                value = self._log_probs.get(text[first:last])
                if value is not None and best[first] + value > best[last]:
                    best[last], start[last] = best[first] + value, first
            last = first + 1
            while last <= len(text) and kinds[last - 1] == kinds[first]:
                value = best[first] + self._unknown + self._character * (last - first)
                if value > best[last]:
                    best[last], start[last] = value, first
                last += 1
                if last - first > 20:
                    break
        tokens: list[str] = []
        place = len(text)
        while place:
            tokens.append(text[start[place] : place])
            place = start[place]
        return tokens[::-1]


def _kind(character: str) -> str:
    """Return the kind of a character: its script, digit, or the mark itself."""
    if character.isdecimal():
        return "digit"
    if not character.isalpha():
        return character
    if character == "ー":
        return "KATAKANA"
    return unicodedata.name(character, "UNKNOWN").split()[0]


def _tokenized(
    words: tuple[str, ...], tokens: tuple[str, ...], ends: tuple[int, ...]
) -> TokenizedWords:
    # The patterns beside this class take a tenth of the start of a command without raw text.
    from treelm.corpus.tokenize import TokenizedWords

    return TokenizedWords(words, tokens, ends)


def plain_tokenizer(name: str) -> Tokenizing:
    """Return a tokenizer that needs no model."""
    from treelm.corpus.tokenize import tokenize_words

    return {"penn": tokenize_words, "simple": simple_words}[name]
