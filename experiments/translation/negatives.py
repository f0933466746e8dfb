"""Translations of the training text by tables that have not seen it: what a translator gets wrong.

The text is divided into two halves, every other sentence. The table and the 5-gram model of each
half translate the other one (Cherry & Quirk 2008 take the negatives of their second table from the
output of a translation system).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from decoded import PAPER
from files import write_lines

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import read_lines
from treelm.models.registry import train
from treelm.tasks.phrases import make_phrase_tables
from treelm.translation.decoder import Decoder
from treelm.translation.parallel_text import align_words, read_parallel_text
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

#: Fewer words are too few to tell a good sentence from a bad one.
FEWEST_WORDS = 5
_SIDES = ("de", "en", "links")


@dataclass(frozen=True)
class Pair:
    """A reference and the translation that stands for it."""

    good: str
    bad: str


@dataclass(frozen=True)
class Negatives:
    """Good and bad sentences, made once.

    Args:
        data: Folder of the data.
        folder: Where halves, tables and translations are kept.
        alignment: Word alignments of the training text, in Pharaoh format; None for eflomal.
        threads: Number of threads.
    """

    data: Path
    folder: Path
    alignment: Path | None
    threads: int

    def pairs(self) -> list[Pair]:
        """Return references and translations that differ and have five words, in the file's order.

        Raises:
            MissingExtra: without alignments and without eflomal.
        """
        halves = [self._translated(half) for half in range(2)]
        ordered = [pair for both in zip(*halves, strict=False) for pair in both]
        ordered += halves[0][len(halves[1]) :]
        return [
            pair
            for pair in ordered
            if pair.good != pair.bad
            and min(len(pair.good.split()), len(pair.bad.split())) >= FEWEST_WORDS
        ]

    def _translated(self, half: int) -> list[Pair]:
        """Return a half with its translations by the table of the other half."""
        good = list(read_lines(self._file(half, "en")))
        path = self.folder / f"{half}.translated"
        if not path.exists():
            weights = Weights.read(self.data / "mt/multi30k/weights.ini")
            table = PhraseTable.read(self._table(1 - half))
            text = TextCorpus((self._file(1 - half, "en"),))
            # What the given weights were tuned with; the search may be faster.
            config = replace(PAPER, search="cube", pop_limit=200, distortion_limit=6)
            model = train("ngram", text, order=5, threads=self.threads)
            decoder = Decoder(table, [model], weights, config)
            sources = read_lines(self._file(half, "de"))
            lines = [each.text for each in decoder.translate(sources, threads=self.threads)]
            write_lines(path, lines)
        return [Pair(*both) for both in zip(good, read_lines(path), strict=True)]

    def _table(self, half: int) -> Path:
        path = self.folder / f"{half}.table.gz"
        if not path.exists():
            source, target, links = (self._file(half, side) for side in _SIDES)
            make_phrase_tables(source, target, path, alignment=links)
        return path

    def _file(self, half: int, side: str) -> Path:
        """Return a file of a half, written now or before."""
        path = self.folder / f"{half}.{side}"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_lines(path, self._lines(side)[half::2])
        return path

    def _lines(self, side: str) -> list[str]:
        text = [self.data / f"mt/multi30k/train.{each}" for each in _SIDES[:2]]
        if side != "links":
            return list(read_lines(text[_SIDES.index(side)]))
        if self.alignment is not None:
            return list(read_lines(self.alignment))
        return list(align_words(read_parallel_text(*text)).lines())
