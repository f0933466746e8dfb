"""Whether a text fits a model: the share of unknown words, and signs that it is not tokenized.

A model takes ``fell.`` for one unknown word, and words in capitals too, and gives all of them one
probability: numbers come out, and mean nothing. Whoever reads text for a model counts its unknown
words and looks at the first sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from treelm.characters import visible
from treelm.corpus.files import Source, can_be_read_twice, read_lines
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import SENTENCE_END, Vocabulary
from treelm.corpus.words import split_words

if TYPE_CHECKING:
    from treelm.corpus.tokenize import TokenizedWords
    from treelm.tasks.surprisal.rows import SentenceRows

#: A larger share of unknown words is worth a warning.
MANY_UNKNOWN = 0.10
#: What is said where nothing was there to read.
NO_SENTENCE = "warning: no sentence was read."
#: Sentences at the start of a text that are looked at.
LOOKED_AT = 1000
#: Shares of words that tell untokenized text from text with an abbreviation or a headline in it.
_GLUED_SHARE, _CAPITAL_SHARE = 0.02, 0.10

_GLUED = re.compile(r"""["'“‘(\[]*(.*\w)[.,;:!?…"'”’)\]]+""")
_INNER_SPACE = re.compile(r"[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]")


@dataclass(slots=True)
class _Sign:
    """Words that look wrong in one way."""

    count: int = 0
    example: str = ""

    def see(self, word: str) -> None:
        self.count += 1
        self.example = self.example or word


@dataclass(slots=True)
class TextCheck:
    """Counts the unknown words of a text.

    Args:
        vocabulary: The words that the model knows.
        tokenized: Whether the text is tokenized already, by treelm or as a list of translations
            is, so that nobody need be told to.
        has_option: Whether the command has an option for raw text; otherwise another command is
            named, which tokenizes it.
        model: What messages call the model.

    Examples:
        >>> check = TextCheck(Vocabulary.from_counts({"it": 3, "fell": 2, ".": 3}))
        >>> check.add_sentences([("it", "fell", "."), ("it", "fell.")])
        >>> for message in check.messages():
        ...     print(message[:72])
        warning: 20.0 % of the words (1 of 5) are unknown to the model. Is the t
        warning: the text looks untokenized: words such as "fell." (1 in the fir
    """

    vocabulary: Vocabulary
    tokenized: bool = False
    has_option: bool = True
    model: str = "the model"
    words: int = 0
    unknown: int = 0
    _sentences: int = 0
    _words_seen: int = 0
    _glued: _Sign = field(default_factory=_Sign)
    _spaced: _Sign = field(default_factory=_Sign)
    _capitals: _Sign = field(default_factory=_Sign)

    def add(self, words: int, unknown: int) -> None:
        """Add numbers that somebody else counted."""
        self.words += words
        self.unknown += unknown

    @property
    def wanted(self) -> int:
        """Number of sentences that are still looked at."""
        return LOOKED_AT - self._sentences

    def add_sentences(self, sentences: Iterable[Sequence[str]]) -> None:
        """Count sentences, and look at the first ones."""
        known = self.vocabulary
        for words in sentences:
            self.add(len(words), sum(word not in known or word == UNKNOWN for word in words))
            self.look(words)

    def add_words(self, sentence: TokenizedWords) -> None:
        """Count the words of raw text; a word with an unknown token is unknown."""
        unknown = [word not in self.vocabulary for word in sentence.tokens]
        pieces = zip(sentence.starts, sentence.ends, strict=True)
        self.add(len(sentence.words), sum(any(unknown[first:last]) for first, last in pieces))

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines of tokenized text and count their words."""
        for line in lines:
            self.add_sentences([split_words(line)])
            yield line

    def watch_rows(self, sentences: Iterable[SentenceRows]) -> Iterator[SentenceRows]:
        """Yield the rows of a surprisal table and count those of unknown words."""
        for rows in sentences:
            words = [word for word in rows.words if word != SENTENCE_END]
            self.add(len(words), int(rows.oov.sum()))
            self.look(words)
            yield rows

    def look_at_files(self, files: Iterable[Source]) -> None:
        """Look at the first lines of files that were counted by somebody else."""
        for file in files:
            if self.wanted > 0 and can_be_read_twice(file):
                for line in islice(read_lines(file), self.wanted):
                    self.look(split_words(line))

    def look(self, words: Sequence[str]) -> None:
        """Look for signs that a sentence is not tokenized, if it is among the first."""
        if self.wanted <= 0 or not words:
            return
        self._sentences += 1
        self._words_seen += len(words)
        known = self.vocabulary
        for word in words:
            if word in known:
                continue
            if _INNER_SPACE.search(word):
                self._spaced.see(word)
            elif word.isupper() and len(word) > 1:
                if word.lower() in known or word.capitalize() in known:
                    self._capitals.see(word)
            elif (found := _GLUED.fullmatch(word)) and found[1] in known and _splits(word):
                self._glued.see(word)

    def messages(self) -> Iterator[str]:
        """Yield what there is to say, in sentences."""
        if not self.words:
            yield NO_SENTENCE
        if self.unknown:
            share = self.unknown / self.words
            counts = f"{share:.1%} of the words ({self.unknown} of {self.words})".replace("%", " %")
            if share > MANY_UNKNOWN:
                yield (
                    f"warning: {counts} are unknown to {self.model}. Is the text of the kind that "
                    "it was trained on, and tokenized in the same way?"
                    + self._advice("--tokenize takes raw text.")
                )
            else:
                yield f"{counts} are unknown to {self.model}."
        yield from (f"warning: {sign}" for sign in self.signs())

    def signs(self) -> Iterator[str]:
        """Yield what makes it doubtful that the text is tokenized as the model wants it."""
        if self._glued.count > _GLUED_SHARE * self._words_seen:
            yield self._untokenized(self._glued, "known only without their punctuation")
        if self._spaced.count:
            yield self._untokenized(self._spaced, "joined by a no-break space")
        if self._capitals.count > _CAPITAL_SHARE * self._words_seen:
            yield (
                f"words in capitals{_such_as(self._capitals)} are known only in small "
                "letters; all that are unknown look the same to the model."
            )

    def _untokenized(self, sign: _Sign, what: str) -> str:
        advice = self._advice("Use --tokenize.")
        return f"the text looks untokenized: words{_such_as(sign)} are {what}.{advice}"

    def _advice(self, with_option: str) -> str:
        """Return what to do with raw text, if anything, after a space."""
        if self.tokenized:
            return ""
        return f" {with_option}" if self.has_option else " `treelm tokenize` tokenizes raw text."


def _splits(word: str) -> bool:
    """Return whether a tokenizer takes a word apart; it leaves abbreviations whole."""
    from treelm.corpus.tokenize import tokenize

    return tokenize(f"{word} it")[0] != word


def _such_as(sign: _Sign) -> str:
    return f' such as "{visible(sign.example[:40])}" ({sign.count} in the first sentences)'
