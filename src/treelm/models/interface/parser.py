"""What every parser can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from treelm.corpus.words import Words, sentences_of, words_of
from treelm.errors import UsageError
from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.abilities import systems_that

#: The trees of sentences, best first, as arrays where the parser has them; none for no words.
TreeLists = Sequence[KBest | None] | Sequence[Sequence[ScoredTree]]


@runtime_checkable
class Parser(Protocol):
    """The least that a parser must do; a `BatchParser` also takes many sentences at once.

    An attribute `most_trees`, where there is one, says how many trees of a sentence it can give at
    most: None for any number, 0 for what is no parser after all.
    """

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` trees of a sentence, the best first; none for no words."""


class BatchParser(ABC):
    """A parser of many sentences at once."""

    #: Trees of a sentence that it can give at most; None for any number.
    most_trees: int | None = None

    @abstractmethod
    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> TreeLists:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words."""

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` distinct trees of a sentence, the best first; none for no words."""
        return list(self.k_best_many([words_of(sentence)], k)[0] or ())

    def parse_many(
        self,
        sentences: Sequence[Words],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words or without a tree."""
        lists = self.k_best_many(sentences, 1, options=options, threads=threads)
        return [found[0] if found else None for found in lists]


class SentenceParser(BatchParser):
    """A parser that works sentence by sentence; options and threads do not matter to it."""

    @abstractmethod
    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` trees of a sentence, the best first; none for no words."""

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> TreeLists:
        """Return up to `k` trees of every sentence, the best first; none for no words."""
        del options, threads
        return [self.parse(words, k) for words in sentences_of(sentences)]


class ArrayParser(BatchParser):
    """A parser that gives lists as arrays, without an object for every tree."""

    @abstractmethod
    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return up to `k` distinct trees of every sentence, the best first; None for no words."""


def k_best_lists(
    parser: Parser,
    sentences: Sequence[Words],
    k: int,
    *,
    threads: int = 1,
) -> list[Sequence[ScoredTree]]:
    """Return up to `k` trees of every sentence, all sentences at once if the parser can.

    Lists that a parser has as arrays stay so.
    """
    if isinstance(parser, BatchParser):
        lists = parser.k_best_many(sentences, k, threads=threads)
        return [[] if found is None else found for found in lists]
    return [parser.parse(words, k) if words else [] for words in sentences_of(sentences)]


def best_trees(
    parser: Parser,
    sentences: Sequence[Words],
    *,
    options: ParserOptions | None = None,
    threads: int = 1,
) -> list[ScoredTree | None]:
    """Return the best tree of every sentence, all sentences at once if the parser can."""
    if isinstance(parser, BatchParser):
        return parser.parse_many(sentences, options=options, threads=threads)
    return [next(iter(parser.parse(words, 1)), None) for words in sentences_of(sentences)]


def check_parser(parser: object, k: int = 1) -> None:
    """Refuse what is no parser, or cannot give so many trees of a sentence.

    Args:
        parser: What should parse.
        k: Trees of a sentence that will be asked of it.

    Raises:
        UsageError: naming what can.
    """
    if k < 1:
        raise UsageError(f"k is {k}; at least one tree is needed.")
    most = getattr(parser, "most_trees", None)
    if isinstance(parser, Parser) and (most is None or k <= most):
        return
    name = str(getattr(parser, "system", type(parser).__name__))
    able = ", ".join(systems_that(lambda kind: kind.most_trees is None or kind.most_trees >= k))
    if not isinstance(parser, Parser):
        what = f"{name} is no parser: it has no method `parse`. Give"
    elif not most:
        what = f"{name} models do not parse. Give"
    else:
        what = (
            f"this parser ({name}) gives at most {most} tree{'s'[: most > 1]} of a sentence, and "
            f"{k} are asked for. Ask for fewer, with k={most} or -k {most}, or give"
        )
    raise UsageError(f"{what} a model of one of these systems: {able}; or a file of parses.")
