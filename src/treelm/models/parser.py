"""What every model that parses can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from treelm.grammar.chart import ParserOptions, ScoredTree
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
