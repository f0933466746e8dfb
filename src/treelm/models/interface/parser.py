"""The interface of every model that parses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.words import Words, words_of


@runtime_checkable
class Parser(Protocol):
    """Finds the trees of sentences."""

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` trees of a sentence, the best first; none for no words."""

    def parse_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""

    def parse_k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[list[ScoredTree]]:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words."""


@runtime_checkable
class ListParser(Parser, Protocol):
    """A parser that returns lists as arrays, without an object for every tree."""

    def k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return up to `k` distinct trees of every sentence, the best first; None for no words."""


class SentenceParser(ABC):
    """A parser that works sentence by sentence; it ignores options and threads."""

    @abstractmethod
    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` trees of a sentence, the best first; none for no words."""

    def parse_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words or without a tree."""
        lists = self.parse_k_best_many(sentences, 1, options=options, threads=threads)
        return [parses[0] if parses else None for parses in lists]

    def parse_k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[list[ScoredTree]]:
        """Return up to `k` trees of every sentence, the best first; none for no words."""
        del options, threads
        return [self.parse(words, k) for words in sentences]


class ArrayParser(ABC):
    """A parser whose lists are arrays, from which everything else is made."""

    @abstractmethod
    def k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return up to `k` distinct trees of every sentence, the best first; None for no words."""

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` distinct trees of a sentence, the best first; none for no words."""
        return self.parse_k_best_many([words_of(sentence)], k)[0]

    def parse_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""
        lists = self.k_best_many(sentences, 1, options=options, threads=threads)
        return [found[0] if found else None for found in lists]

    def parse_k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[list[ScoredTree]]:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words."""
        lists = self.k_best_many(sentences, k, options=options, threads=threads)
        return [[] if found is None else found[:] for found in lists]
