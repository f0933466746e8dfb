"""From sentences to trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from treelm.corpus.files import Source
from treelm.grammar.k_best import KBest
from treelm.grammar.packed_forest import PackedForest
from treelm.grammar.parser_options import Long, ParserOptions, Pruning
from treelm.grammar.scored_tree import ParseStatus
from treelm.models.interface.abilities import GivesForests, ask_for
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.parser import TreeLists
from treelm.models.interface.sentence_batches import worked_batches

#: Number of lines parsed together, unless line-buffered, and of trees then kept.
LINES_AT_ONCE, TREES_AT_ONCE = 512, 65_536
#: The same where forests are kept.
FORESTS_AT_ONCE = 64


class ParsedBatch(NamedTuple):
    """The parses of some lines."""

    first_line: int
    """Number of the first, counted from 1."""
    sentences: list[tuple[str, ...]]
    """Their words."""
    k_best: TreeLists
    """The trees of each."""

    @property
    def statuses(self) -> Iterator[tuple[int, ParseStatus]]:
        """Numbers of the lines with words, and how their trees were found."""
        for number, found in enumerate(self.k_best, self.first_line):
            if found:
                yield number, found.status if isinstance(found, KBest) else found[0].status


def parser_options(
    model: LanguageModel, pruning: Pruning, *, long: Long = "split", max_words: int | None = None
) -> ParserOptions:
    """Return how a model parses, with another pruning than its own.

    Args:
        model: The model.
        pruning: How much is dropped.
        long: What becomes of sentences that are too long.
        max_words: Longest sentence that is parsed as a whole; None for the model's own limit.
    """
    own = model.parser_options
    most = own.max_words if max_words is None else max_words
    return replace(own, pruning=pruning, long=long, max_words=most)


@dataclass(slots=True)
class LongSentences:
    """How many sentences were too long, and what was done about it; filled while batches go by."""

    split: int = 0
    """Those parsed in pieces."""
    flat: int = 0
    """Those with flat trees."""

    def count(self, status: ParseStatus) -> None:
        """Count a sentence."""
        self.split += status == ParseStatus.SPLIT
        self.flat += status == ParseStatus.TOO_LONG

    def add(self, others: LongSentences) -> None:
        """Count those that somebody else counted."""
        self.split += others.split
        self.flat += others.flat


def lines_at_once(k: int, *, forests: bool = False) -> int:
    """Return the number of lines parsed together, with `k` trees of each or forests."""
    return FORESTS_AT_ONCE if forests else max(16, min(LINES_AT_ONCE, TREES_AT_ONCE // k))


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
        lines: Tokenized sentences, one per line.
        k: Number of trees of each.
        options: Parser options; None for the model's own.
        threads: Number of threads.
        line_buffered: Parse every line as soon as it arrives.
        source: Where the lines come from, for messages.
        first_line: Number of the first line, for messages.

    Raises:
        UnsupportedTask: if the model does not parse.
        CorpusFormatError: with the line, for anything but a sentence of words.
    """
    model.require(Task.PARSE)

    def work(batch: Sequence[tuple[str, ...]]) -> TreeLists:
        return model.k_best_many(batch, k, options=options, threads=threads)

    size = 1 if line_buffered else lines_at_once(k)
    for first, batch, k_best in worked_batches(
        model.vocabulary, lines, size, work, source, first_line
    ):
        yield ParsedBatch(first, batch, k_best)


def forest_batches(
    model: LanguageModel,
    lines: Iterable[str],
    *,
    options: ParserOptions | None = None,
    threads: int = 1,
    source: Source = "-",
    first_line: int = 1,
) -> Iterator[tuple[list[tuple[str, ...]], list[PackedForest | None]]]:
    """Yield sentences and their pruned forests, many lines at once.

    Args:
        model: A grammar.
        lines: Tokenized sentences, one per line.
        options: Parser options; None for the model's own.
        threads: Number of threads.
        source: Where the lines come from, for messages.
        first_line: Number of the first line, for messages.

    Raises:
        UnsupportedTask: if the model gives no forests.
        CorpusFormatError: with the line, for what is no sentence of words.
    """
    grammar = ask_for(model, GivesForests, "give forests of trees")

    def work(batch: Sequence[tuple[str, ...]]) -> list[PackedForest | None]:
        return grammar.forests_many(batch, options=options, threads=threads)

    for _, batch, forests in worked_batches(
        model.vocabulary, lines, FORESTS_AT_ONCE, work, source, first_line
    ):
        yield batch, forests
