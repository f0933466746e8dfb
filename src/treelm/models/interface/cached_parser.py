"""A parse file in place of a parser."""

from __future__ import annotations

from collections.abc import Sequence

from treelm.corpus.words import Words, sentences_of
from treelm.errors import UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.parser import ArrayParser


class CachedParser(ArrayParser):
    """Returns the trees of sentences from a file.

    Args:
        file: The file.

    Examples:
        A tree model scores a text that was parsed once::

            model = treelm.load("treelet").with_parser(CachedParser(ForestFile("dev.forest")))
    """

    def __init__(self, file: ForestFile) -> None:
        self.file = file
        # A longer list may be all the trees that there are; one tree of a sentence never is.
        self.most_trees = 1 if file.header.k == 1 else None

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return up to `k` trees of every sentence; options and threads are ignored.

        Raises:
            UsageError: ``E_NOT_CACHED`` for a sentence that the file does not have, or has with
                fewer trees.
        """
        del options, threads
        return [self._found(words, k) if words else None for words in sentences_of(sentences)]

    def _found(self, words: tuple[str, ...], k: int) -> KBest:
        if k < 1:
            raise UsageError(f"{k} trees cannot be listed; choose 1 or more.")
        place = self.file.find(words)
        shown = " ".join(words) if len(words) <= 12 else f"{' '.join(words[:12])} ..."
        if place is None:
            raise UsageError(
                f'{self.file.name}: the file has no parse of "{shown}". Parse your text with '
                "`treelm parse -o FILE.forest`.",
                code="E_NOT_CACHED",
            )
        found = self.file[place]
        assert found is not None
        held = self.file.header.k
        if k > held and len(found) >= held:
            raise UsageError(
                f"{self.file.name}: the file has the {held} best trees of a sentence, but {k} "
                f"are wanted. Ask for fewer, or parse the text again with `treelm parse -k {k}`.",
                code="E_NOT_CACHED",
            )
        return found.first(k)
