"""Sentences in, trees out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from treelm.corpus.corpus import split_words
from treelm.corpus.files import Source, source_name
from treelm.errors import CorpusFormatError, UnsupportedTask, VocabularyError
from treelm.grammar.chart import ParserOptions, ScoredTree
from treelm.models.model import LanguageModel, Task
from treelm.models.parser import Parser

#: Lines that are parsed at once, unless each is wanted at once.
LINES_AT_ONCE = 512


class ParsedLine(NamedTuple):
    """What became of a line."""

    line: int
    """Its number, counted from 1."""
    parse: ScoredTree | None
    """None for a blank line."""


def parse_lines(
    model: LanguageModel,
    lines: Iterable[str],
    *,
    options: ParserOptions | None = None,
    threads: int = 1,
    line_buffered: bool = False,
    source: Source = "-",
) -> Iterator[ParsedLine]:
    """Yield the best tree of every line.

    Args:
        model: Any model that parses.
        lines: Tokenized sentences, one a line.
        options: How the parser works; None for the model's own way.
        threads: Kernel threads; results do not depend on it.
        line_buffered: Parse every line as soon as it comes.
        source: Where the lines come from, for messages.

    Raises:
        UnsupportedTask: if the model does not parse.
        CorpusFormatError: with the line, for what is no sentence of words.
    """
    model.require(Task.PARSE)
    if not isinstance(model, Parser):
        raise UnsupportedTask(f"a model of the system {model.system} cannot parse.")
    rest = iter(lines)
    size = 1 if line_buffered else LINES_AT_ONCE
    done = 0
    while batch := [split_words(line) for line in islice(rest, size)]:
        try:
            parses = model.parse_many(batch, options=options, threads=threads)
        except VocabularyError as error:
            raise _with_line(error, model, batch, done, source) from error
        for number, parse in enumerate(parses, done + 1):
            yield ParsedLine(number, parse)
        done += len(batch)


def _with_line(
    error: VocabularyError,
    model: LanguageModel,
    batch: Sequence[Sequence[str]],
    done: int,
    source: Source,
) -> CorpusFormatError | VocabularyError:
    """Return the error with the first line of a batch that gives it."""
    name = source_name(source)
    for number, words in enumerate(batch, done + 1):
        try:
            model.vocabulary.encode(words)
        except VocabularyError as found:
            return CorpusFormatError(
                f"{name}:{number}: {found}", code=found.code, path=name, line=number
            )
    return error
