"""What every model that parses can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.words import Words


@runtime_checkable
class Parser(Protocol):
    """Gives sentences trees."""

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
    """A parser that gives lists as arrays, without an object for every tree."""

    def k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return up to `k` distinct trees of every sentence, the best first; None for no words."""
