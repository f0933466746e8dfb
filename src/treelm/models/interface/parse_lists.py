"""Existing parses as a parser: lists in a file, in the order of the sentences."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from treelm.corpus.brackets import DEFAULT_OPTIONS, ReadOptions
from treelm.corpus.files import Source, source_name
from treelm.corpus.k_best_lists import ListForm, read_packed_lists
from treelm.errors import UsageError
from treelm.grammar.k_best import KBest
from treelm.grammar.k_best_arrays import k_best_of_list
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.parser import ArrayParser

#: Number of used lists that are kept: texts repeat short sentences.
_KEPT = 4096


class ParseLists(ArrayParser):
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
        self._rest = map(k_best_of_list, read_packed_lists(source, form=form, options=options))
        self._kept: OrderedDict[tuple[str, ...], KBest] = OrderedDict()

    def __repr__(self) -> str:
        return f"ParseLists({source_name(self._source)!r})"

    def _find(self, words: tuple[str, ...]) -> KBest:
        found = self._kept.get(words)
        if found is not None:
            self._kept.move_to_end(words)
            return found
        for best in self._rest:
            if best is None:
                continue
            self._kept[best.words] = best
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            if best.words == words:
                return best
        shown = " ".join(words)
        raise UsageError(
            f"{source_name(self._source)}: there are no trees of the sentence "
            f'"{shown[:80]}{"..." if len(shown) > 80 else ""}". The lists must be of the '
            "same sentences, in the same order, with the same tokens.",
            code="E_NO_LIST",
        )

    def k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return the first `k` trees of every sentence; None for no words.

        Raises:
            UsageError: ``E_NO_LIST`` if the file has no trees of these words, or had them too long
                ago.
        """
        del options, threads
        return [self._find(tuple(words)).first(k) if words else None for words in sentences]
