"""Sentences in, trees out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from treelm.corpus.corpus import split_words
from treelm.corpus.files import Source, source_name
from treelm.errors import CorpusFormatError, UnsupportedTask, VocabularyError
from treelm.grammar.k_best import KBest
from treelm.grammar.packed_forest import PackedForest
from treelm.grammar.parser_options import ParserOptions, Pruning
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.parser import ListParser, Parser
from treelm.models.pcfg.grammar_model import GrammarModel

#: Lines that are parsed at once, unless each is wanted at once, and trees that are then held.
LINES_AT_ONCE, TREES_AT_ONCE = 512, 65_536

Result = TypeVar("Result")
#: The trees of a sentence, best first: as arrays where the parser gives them; none for no words.
KBestLists = Sequence[KBest | None] | Sequence[Sequence[ScoredTree]]


class ParsedBatch(NamedTuple):
    """What became of some lines."""

    first_line: int
    """Number of the first, counted from 1."""
    sentences: list[tuple[str, ...]]
    """Their words."""
    k_best: KBestLists
    """The trees of each."""

    @property
    def statuses(self) -> Iterator[tuple[int, ParseStatus]]:
        """Numbers of the lines with words, and how their trees were found."""
        for number, found in enumerate(self.k_best, self.first_line):
            if found:
                yield number, found.status if isinstance(found, KBest) else found[0].status


def parser_of(model: LanguageModel) -> Parser:
    """Return a model as the parser it is.

    Raises:
        UnsupportedTask: if the model does not parse.
    """
    model.require(Task.PARSE)
    if not isinstance(model, Parser):
        raise UnsupportedTask(f"a model of the system {model.system} cannot parse.")
    return model


def parser_options(model: LanguageModel, pruning: Pruning) -> ParserOptions:
    """Return how a model parses, with another pruning than its own."""
    own = model.parser_options if isinstance(model, GrammarModel) else ParserOptions()
    return replace(own, pruning=pruning)


def parse_batches(
    model: LanguageModel,
    lines: Iterable[str],
    k: int = 1,
    *,
    options: ParserOptions | None = None,
    threads: int = 1,
    line_buffered: bool = False,
    source: Source = "-",
    first_line: int = 1,
) -> Iterator[ParsedBatch]:
    """Yield the best trees of lines, many lines at once.

    Args:
        model: Any model that parses.
        lines: Tokenized sentences, one a line.
        k: Trees of each.
        options: How the parser works; None for the model's own way.
        threads: Kernel threads; results do not depend on it.
        line_buffered: Parse every line as soon as it comes.
        source: Where the lines come from, for messages.
        first_line: Number of the first line, for messages.

    Raises:
        UnsupportedTask: if the model does not parse.
        CorpusFormatError: with the line, for what is no sentence of words.
    """
    parser = parser_of(model)

    def work(batch: Sequence[tuple[str, ...]]) -> KBestLists:
        if isinstance(parser, ListParser):
            return parser.k_best_many(batch, k, options=options, threads=threads)
        return parser.parse_k_best_many(batch, k, options=options, threads=threads)

    size = 1 if line_buffered else max(16, min(LINES_AT_ONCE, TREES_AT_ONCE // k))
    for first, batch, k_best in worked_batches(model, lines, size, work, source, first_line):
        yield ParsedBatch(first, batch, k_best)


def forest_batches(
    model: GrammarModel[Any],
    lines: Iterable[str],
    *,
    options: ParserOptions | None = None,
    threads: int = 1,
    source: Source = "-",
    first_line: int = 1,
) -> Iterator[tuple[list[tuple[str, ...]], list[PackedForest | None]]]:
    """Yield sentences and what pruning leaves of their trees, many lines at once.

    Args:
        model: A grammar.
        lines: Tokenized sentences, one a line.
        options: How the parser works; None for the model's own way.
        threads: Kernel threads; results do not depend on it.
        source: Where the lines come from, for messages.
        first_line: Number of the first line, for messages.

    Raises:
        CorpusFormatError: with the line, for what is no sentence of words.
    """

    def work(batch: Sequence[tuple[str, ...]]) -> list[PackedForest | None]:
        return model.forests_many(batch, options=options, threads=threads)

    for _, batch, forests in worked_batches(model, lines, 64, work, source, first_line):
        yield batch, forests


def worked_batches(  # noqa: PLR0917 (all of them are needed)
    model: LanguageModel,
    lines: Iterable[str],
    size: int,
    work: Callable[[list[tuple[str, ...]]], Result],
    source: Source,
    first_line: int,
) -> Iterator[tuple[int, list[tuple[str, ...]], Result]]:
    """Yield the first line, the sentences and the result of work on some lines after the other."""
    rest = iter(lines)
    while batch := [split_words(line) for line in islice(rest, size)]:
        try:
            found = work(batch)
        except VocabularyError as error:
            raise _with_line(error, model, batch, first_line - 1, source) from error
        yield first_line, batch, found
        first_line += len(batch)


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
