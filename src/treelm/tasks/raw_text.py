"""Raw text for a model that wants tokens: tokenized line by line, figures summed back to words.

A word of the text, as white space separates it, may be several tokens (``can't``, ``stay.``). What
a model says about tokens is told about words: log probabilities and surprisals are summed, a word
is unknown if one of its tokens is, and measures of a parser are those after its last token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Content, Source, read_lines, source_name
from treelm.corpus.tokenize import TokenizedWords, tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.models.interface.model import LanguageModel
from treelm.tasks.surprisal.rows import Numbers, SentenceRows
from treelm.tasks.text_check import TextCheck

if TYPE_CHECKING:
    from treelm.models.interface.perplexity import Perplexity


def tokenized_lines(lines: Iterable[str], tokenize: Tokenizing = tokenize_words) -> Iterator[str]:
    """Yield the tokens of each line of raw text, with spaces between.

    Examples:
        >>> list(tokenized_lines(["We can't stay.", ""]))
        ["We ca n't stay .", '']
    """
    return (" ".join(tokenize(line).tokens) for line in lines)


class RawText:
    """Tokenizes lines, and remembers the words of those whose figures have not come back.

    Examples:
        >>> raw = RawText()
        >>> list(raw.tokenized(["We can't stay.", "", "Why?"]))
        ["We ca n't stay .", '', 'Why ?']
        >>> raw.word_counts()
        (3, 1)
    """

    def __init__(self, tokenize: Tokenizing = tokenize_words) -> None:
        self._tokenize = tokenize
        self._waiting: deque[TokenizedWords] = deque()

    def tokenized(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the tokens of each line, with spaces between."""
        for line in lines:
            found = self._tokenize(line)
            if found.tokens:
                self._waiting.append(found)
            yield " ".join(found.tokens)

    def word_rows(self, rows: Iterable[SentenceRows]) -> Iterator[SentenceRows]:
        """Yield rows of words for rows of tokens, sentence by sentence."""
        for each in rows:
            yield rows_of_words(each, self._waiting.popleft())

    def word_counts(self) -> tuple[int, ...]:
        """Return the number of words of each sentence so far."""
        return tuple(len(each.words) for each in self._waiting)


def rows_of_words(rows: SentenceRows, sentence: TokenizedWords) -> SentenceRows:
    """Return the rows of the words of a sentence, given those of its tokens.

    Args:
        rows: One for each token, perhaps one more for the end of the sentence.
        sentence: The words and their tokens.
    """
    pieces = list(zip(sentence.starts, sentence.ends, strict=True))
    end = len(sentence.tokens)
    pieces += [(place, place + 1) for place in range(end, len(rows))]

    def sums(values: Numbers) -> Numbers:
        return np.array([values[first:last].sum() for first, last in pieces], np.float64)

    # A word of invisible characters has no tokens; the parser is where the word before left it.
    lasts = [max(last - 1, 0) for _, last in pieces]
    return SentenceRows(
        rows.doc_id,
        rows.sent_id,
        (*sentence.words, *rows.words[end:]),
        sums(rows.surprisal),
        sums(rows.log_prob),
        np.array([rows.oov[first:last].any() for first, last in pieces], np.bool_),
        tuple(np.ascontiguousarray(column[lasts]) for column in rows.measures),
    )


def raw_text_perplexity(
    model: LanguageModel,
    files: Iterable[Source],
    *,
    limit: int | None = None,
    check: TextCheck,
    tokenize: Tokenizing = tokenize_words,
    strict_docs: bool = False,
    allow_overlap: bool = False,
    threads: int = 1,
) -> Perplexity:
    """Return the perplexity of raw text, one sentence per line, for each word as it is written.

    Args:
        model: A model whose probabilities add up to 1.
        files: The text; a blank line ends a document.
        limit: Number of sentences that are read; None for all.
        check: Told the words, and those with an unknown token.
        tokenize: What takes sentences apart.
        strict_docs: As for `LanguageModel.perplexity`.
        allow_overlap: As there.
        threads: Kernel threads; results do not depend on it.
    """
    from treelm.models.interface.perplexity import characters_of

    left = -1 if limit is None else limit
    tokenized: list[Source] = []
    characters = 0
    for file in files:
        lines: list[str] = []
        for line in read_lines(file, Wanted.RAW_TEXT):
            if not left:
                break
            found = tokenize(line)
            left -= bool(found.tokens)
            check.add_words(found)
            characters += characters_of([found.words])
            lines.append(" ".join(found.tokens) + "\n")
        tokenized.append(Content(source_name(file), "".join(lines).encode()))
    corpus = TextCorpus(tuple(tokenized))
    whole = model.perplexity(
        corpus, strict_docs=strict_docs, allow_overlap=allow_overlap, threads=threads
    )
    return whole.of_words(check.words, check.unknown, characters)
