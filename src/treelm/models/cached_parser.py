"""A file of parses in the place of a parser."""

from __future__ import annotations

from collections.abc import Sequence

from treelm.errors import UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.words import Words, words_of


class CachedParser:
    """Gives sentences the trees that a file holds.

    Args:
        file: The file.

    Examples:
        A model of trees scores a text that was parsed once::

            model = treelm.load("treelet").with_parser(CachedParser(ForestFile("dev.forest")))
    """

    def __init__(self, file: ForestFile) -> None:
        self.file = file

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` trees of a sentence, the best first; none for no words.

        Raises:
            UsageError: ``E_NOT_CACHED`` for a sentence that the file does not hold, or holds with
                fewer trees.
        """
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
        """Return up to `k` trees of every sentence, the best first; none for no words."""
        lists = self.k_best_many(sentences, k, options=options, threads=threads)
        return [[] if found is None else found[:] for found in lists]

    def k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return the same as arrays; None for no words. Options and threads do not matter."""
        del options, threads
        return [self._found(tuple(words), k) if words else None for words in sentences]

    def _found(self, words: tuple[str, ...], k: int) -> KBest:
        if k < 1:
            raise UsageError(f"{k} trees cannot be listed; choose 1 or more.")
        place = self.file.find(words)
        shown = " ".join(words) if len(words) <= 12 else f"{' '.join(words[:12])} ..."
        if place is None:
            raise UsageError(
                f'{self.file.name}: the file holds no parse of "{shown}". Parse the text it is '
                "needed for, with `treelm parse -o FILE.forest`.",
                code="E_NOT_CACHED",
            )
        found = self.file[place]
        assert found is not None
        held = self.file.header.k
        if k > held and len(found) >= held:
            raise UsageError(
                f"{self.file.name}: the file holds the {held} best trees of a sentence, and {k} "
                f'are asked for. Ask for fewer, or parse the text again with "-k {k}".',
                code="E_NOT_CACHED",
            )
        return found.first(k)
