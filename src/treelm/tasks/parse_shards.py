"""Parsing cut into shards, which may be done by anybody: the batches of one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from treelm.corpus.files import Source
from treelm.grammar.forest_format import PackedBatch
from treelm.grammar.forest_writer import packed_forests, packed_k_best
from treelm.grammar.k_best import text_of
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus
from treelm.models.interface.model import LanguageModel
from treelm.tasks.parse import LongSentences, ParsedBatch, forest_batches, parse_batches

#: Most lines whose trees a worker writes as text at a time; few enough to keep many workers busy.
LINES_A_SHARD = 128


class TextShard(NamedTuple):
    """Lines that are parsed together."""

    source: Source
    """The file they come from."""
    first_line: int
    """Number of the first, counted from 1."""
    lines: list[str]


def text_shards(
    source: Source, lines: Iterable[str], size: int, first_line: int = 1
) -> Iterator[TextShard]:
    """Yield the lines of a file in shards.

    Args:
        source: The file.
        lines: Its lines.
        size: Lines in a shard.
        first_line: Number of the first line.

    Examples:
        >>> [shard.first_line for shard in text_shards("-", ["a", "b", "c"], 2)]
        [1, 3]
    """
    rest = iter(lines)
    while shard := list(islice(rest, size)):
        yield TextShard(source, first_line, shard)
        first_line += len(shard)


@dataclass(frozen=True, kw_only=True)
class _Parsing:
    """How shards are parsed.

    Args:
        model: Any model that parses.
        k: Number of trees per sentence.
        options: Parser options; None for the model's own.
        threads: Number of threads.
    """

    model: LanguageModel
    k: int = 1
    options: ParserOptions | None = None
    threads: int = 1

    def batches(self, shard: TextShard) -> Iterator[ParsedBatch]:
        """Yield the best trees of a shard."""
        return parse_batches(
            self.model,
            shard.lines,
            self.k,
            options=self.options,
            threads=self.threads,
            source=shard.source,
            first_line=shard.first_line,
        )


class ParsedText(NamedTuple):
    """The trees of a shard as text."""

    source: Source
    statuses: list[tuple[int, ParseStatus]]
    """Numbers of the lines with words, and how their trees were found."""
    text: bytes


class TextParsing(_Parsing):
    """Parses shards into lines of text."""

    def __call__(self, shard: TextShard) -> ParsedText:
        """Parse a shard."""
        statuses: list[tuple[int, ParseStatus]] = []
        texts = []
        for batch in self.batches(shard):
            statuses += batch.statuses
            texts.append(text_of(batch.k_best, scores=self.k > 1))
        return ParsedText(shard.source, statuses, b"".join(texts))


@dataclass
class ParsedBatches:
    """The parses of a shard as a file of parses holds them."""

    batches: list[PackedBatch] = field(default_factory=list)
    fallbacks: int = 0
    """Number of sentences that got a flat tree for lack of a parse."""
    long: LongSentences = field(default_factory=LongSentences)
    """What became of those that are too long to be parsed as a whole."""


class TreeParsing(_Parsing):
    """Parses shards into k-best lists of a file of parses."""

    def __call__(self, shard: TextShard) -> ParsedBatches:
        """Parse a shard."""
        parsed = ParsedBatches()
        for batch in self.batches(shard):
            parsed.batches.append(packed_k_best(batch.sentences, batch.k_best))
            for _, status in batch.statuses:
                parsed.fallbacks += status == ParseStatus.FAILED
                parsed.long.count(status)
        return parsed


class ForestParsing(_Parsing):
    """Parses shards into pruned forests of a file of parses."""

    def __call__(self, shard: TextShard) -> ParsedBatches:
        """Parse a shard."""
        parsed = ParsedBatches()
        for sentences, found in forest_batches(
            self.model,
            shard.lines,
            options=self.options,
            threads=self.threads,
            source=shard.source,
            first_line=shard.first_line,
        ):
            parsed.batches.append(packed_forests(sentences, found))
            for own in found:
                if own is not None and not len(own.node_symbol):
                    parsed.fallbacks += own.status != ParseStatus.TOO_LONG
                    parsed.long.count(own.status)
        return parsed
