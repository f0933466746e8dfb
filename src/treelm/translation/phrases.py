"""From aligned sentence pairs to a phrase table and a table of lexicalised reordering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treelm import _native
from treelm.corpus.files import Source, write_atomically
from treelm.errors import CorpusFormatError
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress, kernel_report
from treelm.translation.parallel_text import Links, ParallelText

#: Words per side of a phrase, unless told otherwise.
LONGEST = 7
#: Lines that are written at once.
_LINES_AT_ONCE = 10_000


@dataclass(frozen=True)
class PhraseTables:
    """Phrase pairs that are consistent with word alignments (Koehn, Och & Marcu 2003).

    A pair has at least one link, and no link leads from inside it to outside. Translation
    probabilities are relative frequencies; lexical weights are those of the pair's most frequent
    alignment; orientations are judged by the links of the neighbouring words.
    """

    pairs: _native.PhrasePairs

    def __len__(self) -> int:
        return len(self.pairs)

    def write_table(self, target: Source, progress: Progress = SILENT) -> None:
        """Write ``source ||| target ||| scores ||| links ||| counts``, in the order of the bytes.

        The scores are p(f|e), lex(f|e), p(e|f) and lex(e|f), f the source and e the target.
        """
        self._write(target, self.pairs.table_lines, "writing phrases", progress)

    def write_reordering(self, target: Source, progress: Progress = SILENT) -> None:
        """Write ``source ||| target ||| probabilities`` of monotone, swap and discontinuous.

        The first three are about the phrase before, the last three about the phrase after.
        """
        self._write(target, self.pairs.reordering_lines, "writing orientations", progress)

    def _write(
        self,
        target: Source,
        lines: Callable[[int, int], bytes],
        what: str,
        progress: Progress,
    ) -> None:
        with (
            write_atomically(target) as file,
            progress.step(what, unit="phrases", total=len(self)) as step,
        ):
            for first in range(0, len(self), _LINES_AT_ONCE):
                last = min(first + _LINES_AT_ONCE, len(self))
                file.write(lines(first, last))
                step.advance(last - first)


def extract_phrases(
    text: ParallelText,
    links: Links,
    *,
    longest: int = LONGEST,
    min_count: int = 1,
    progress: Progress = SILENT,
) -> PhraseTables:
    """Extract and count all phrase pairs.

    Args:
        text: The sentence pairs.
        links: Their word alignments.
        longest: Words per side at most.
        min_count: Pairs that occur less often are not written; they still count in the sums that
            probabilities are made of.
        progress: Progress callback.

    Raises:
        CorpusFormatError: ``E_NO_DATA``, if no word is aligned.
    """
    with (
        kernel_errors("extracting phrases"),
        progress.step("extracting phrases", total=len(text), unit="sentences") as step,
    ):
        pairs = _native.PhrasePairs(
            text.source.words,
            text.source.ids,
            text.source.starts,
            text.target.words,
            text.target.ids,
            text.target.starts,
            links.places,
            links.starts,
            longest=longest,
            min_count=min_count,
            progress=kernel_report(step),
        )
    if not len(pairs):
        raise CorpusFormatError(
            "there is no phrase to write: no word is aligned, or no pair occurs often enough.",
            code="E_NO_DATA",
        )
    return PhraseTables(pairs)
