"""Text that was typed or pasted, as sentences of words within the limits of the server."""

from __future__ import annotations

from collections.abc import Iterator

from treelm.corpus.tokenize import tokenize_stream
from treelm.corpus.words import split_words
from treelm.web.refusals import Refusal

Sentence = tuple[str, ...]


def read_text(text: str, *, tokenized: bool, words: int, sentence_words: int) -> list[Sentence]:
    """Return the sentences of a text.

    Args:
        text: What was typed; a sentence never goes on in the next line.
        tokenized: Whether words are split at spaces; if not, lines are split into sentences, and
            these into tokens.
        words: Most words of the text.
        sentence_words: Most words of a sentence.

    Raises:
        Refusal: for too many words, none at all, or characters that are no text.

    Examples:
        >>> read_text("We can't. Why?", tokenized=False, words=9, sentence_words=9)
        [('We', 'ca', "n't", '.'), ('Why', '?')]
    """
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Refusal(422, "E_ENCODING", "the text contains half a character (a surrogate).")
    found, left = [], words
    for sentence in _sentences(text, tokenized=tokenized):
        left -= len(sentence)
        if left < 0:
            raise Refusal(413, "E_TOO_LONG", f"the text has more than {words} words. Send less.")
        if len(sentence) > sentence_words:
            raise Refusal(
                413,
                "E_TOO_LONG",
                f"a sentence has {len(sentence)} words; at most {sentence_words} are read here.",
            )
        found.append(sentence)
    if not found:
        raise Refusal(422, "E_NO_DATA", "there are no words in the text.")
    return found


def read_sentence(text: str, *, tokenized: bool, sentence_words: int) -> Sentence:
    """Return the only sentence of a text; what would be several is taken for one."""
    lines = read_text(
        " ".join(text.split()),
        tokenized=tokenized,
        words=sentence_words,
        sentence_words=sentence_words,
    )
    return tuple(word for line in lines for word in line)


def _sentences(text: str, *, tokenized: bool) -> Iterator[Sentence]:
    for line in text.splitlines():
        if tokenized:
            if words := split_words(line):
                yield words
        else:
            yield from (tuple(tokens) for tokens in tokenize_stream([line]) if tokens)
