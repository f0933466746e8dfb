"""Existing parses as a parser: lists in a file, in the order of the sentences."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator

from treelm.corpus.brackets import DEFAULT_OPTIONS, ReadOptions
from treelm.corpus.files import Source, source_name
from treelm.corpus.k_best_lists import ListForm, read_k_best_lists
from treelm.corpus.nbest import NBest
from treelm.corpus.words import Words, words_of
from treelm.errors import UsageError
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.parser import SentenceParser

#: Number of used lists that are kept: texts repeat short sentences.
_KEPT = 4096


def scored_trees(best: NBest, k: int | None = None) -> list[ScoredTree]:
    """Return a list as parses; they are from another parser, so the words have no probability."""
    return [
        ScoredTree(each.tree, math.nan if each.score is None else each.score, math.nan)
        for each in best.hypotheses[:k]
        if each.tree is not None
    ]


class ParseLists(SentenceParser):
    """A parser that reads the parses of its sentences from a file.

    The file is read once, as far as needed: sentences may be requested in the order of the file,
    with others left out, or again a little later.

    Args:
        source: A file of trees, see `read_k_best_lists`.
        form: How it is laid out.
        options: How brackets are read.
    """

    def __init__(
        self,
        source: Source,
        *,
        form: ListForm = "auto",
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._source = source
        self._rest = read_k_best_lists(source, form=form, options=options)
        self._kept: OrderedDict[tuple[str, ...], NBest] = OrderedDict()

    def __repr__(self) -> str:
        return f"ParseLists({source_name(self._source)!r})"

    def _lists(self) -> Iterator[tuple[tuple[str, ...], NBest]]:
        for best in self._rest:
            if best.hypotheses:
                yield best.hypotheses[0].words, best

    def _find(self, words: tuple[str, ...]) -> NBest | None:
        found = self._kept.get(words)
        if found is not None:
            self._kept.move_to_end(words)
            return found
        for own, best in self._lists():
            self._kept[own] = best
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            if own == words:
                return best
        return None

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return the first `k` trees of a sentence; none for no words.

        Raises:
            UsageError: ``E_NO_LIST`` if the file has no trees of these words, or had them too long
                ago.
        """
        words = words_of(sentence)
        if not words:
            return []
        found = self._find(words)
        if found is None:
            shown = " ".join(words)
            raise UsageError(
                f"{source_name(self._source)}: there are no trees of the sentence "
                f'"{shown[:80]}{"..." if len(shown) > 80 else ""}". The lists must be of the '
                "same sentences, in the same order, with the same tokens.",
                code="E_NO_LIST",
            )
        return scored_trees(found, k)
