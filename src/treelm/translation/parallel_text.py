"""Sentence pairs of two languages and the alignments of their words."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, UsageError
from treelm.extras import import_extra

Ids = npt.NDArray[np.uint32]
Places = npt.NDArray[np.uint64]

#: What separates the fields of a phrase table, and so can be no word of one.
SEPARATOR = "|||"


@dataclass(frozen=True)
class Side:
    """The sentences of one language.

    Attributes:
        words: Spellings, by id.
        ids: Ids of all words.
        starts: Where each sentence starts in them, and where the last one ends.
    """

    words: list[str]
    ids: Ids
    starts: Places

    def __len__(self) -> int:
        return len(self.starts) - 1

    def length(self, sentence: int) -> int:
        """Return the number of words of a sentence."""
        return int(self.starts[sentence + 1] - self.starts[sentence])

    def lines(self) -> Iterable[str]:
        """Yield the sentences, words separated by spaces."""
        ends = self.starts.tolist()
        for first, last in pairwise(ends):
            yield " ".join(self.words[word] for word in self.ids[first:last].tolist())


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs: the source sentences and their translations."""

    source: Side
    target: Side

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Links:
    """Which words of each sentence pair translate each other.

    Attributes:
        places: Place of a source word and place of a target word, link after link.
        starts: Where the links of each pair start, counted in links, and where the last one ends.
    """

    places: Ids
    starts: Places

    def of(self, sentence: int) -> list[tuple[int, int]]:
        """Return the links of a sentence pair."""
        first, last = int(self.starts[sentence]), int(self.starts[sentence + 1])
        flat = self.places[2 * first : 2 * last].reshape(-1, 2)
        return [(int(source), int(target)) for source, target in flat]

    def lines(self) -> Iterable[str]:
        """Yield the links of each pair in Pharaoh format, such as ``0-0 1-2``."""
        for sentence in range(len(self.starts) - 1):
            yield " ".join(f"{source}-{target}" for source, target in self.of(sentence))


def read_parallel_text(source: Source, target: Source) -> ParallelText:
    """Read two files of tokenized text, whose lines translate each other.

    Raises:
        CorpusFormatError: if one has more lines than the other (``E_LENGTH_MISMATCH``), or the word
            ``|||`` (``E_RESERVED_SYMBOL``), which no phrase table can contain.
    """
    sides = _SideBuilder(source), _SideBuilder(target)
    counts = [0, 0]
    files = (read_lines(each, Wanted.TEXT) for each in (source, target))
    for pair in zip_longest(*files):
        for place, (line, side) in enumerate(zip(pair, sides, strict=True)):
            if line is not None:
                counts[place] += 1
                side.add(line, counts[place])
    if counts[0] != counts[1]:
        raise CorpusFormatError(
            f"{source_name(source)} has {counts[0]:,} lines, {source_name(target)} has "
            f"{counts[1]:,}. Line by line they must translate each other.",
            code="E_LENGTH_MISMATCH",
        )
    return ParallelText(sides[0].finish(), sides[1].finish())


class _SideBuilder:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._ids: dict[str, int] = {}
        self._found: list[int] = []
        self._starts = [0]

    def add(self, line: str, number: int) -> None:
        words = split_words(line)
        if SEPARATOR in words:
            name = source_name(self._source)
            raise CorpusFormatError(
                f"{name}:{number}: the word {SEPARATOR} separates the fields of phrase tables. "
                "Escape or remove it.",
                code="E_RESERVED_SYMBOL",
                path=name,
                line=number,
            )
        ids = self._ids
        self._found += [ids.setdefault(word, len(ids)) for word in words]
        self._starts.append(len(self._found))

    def finish(self) -> Side:
        return Side(
            list(self._ids),
            np.array(self._found, dtype=np.uint32),
            np.array(self._starts, dtype=np.uint64),
        )


def read_links(file: Source, text: ParallelText) -> Links:
    """Read alignments in Pharaoh format, one line for each sentence pair.

    Raises:
        CorpusFormatError: naming the line: what is not ``number-number`` (``E_ALIGNMENT``), or
            leads outside its sentences; or if there are not as many lines as pairs.
    """
    places: list[int] = []
    starts = [0]
    for sentence, line in enumerate(read_lines(file)):
        if sentence < len(text):
            lengths = text.source.length(sentence), text.target.length(sentence)
            for link in sorted({_link(each, lengths, file, sentence) for each in line.split()}):
                places += link
        starts.append(len(places) // 2)
    if len(starts) - 1 != len(text):
        raise CorpusFormatError(
            f"{source_name(file)} aligns {len(starts) - 1:,} sentence pairs, and there are "
            f"{len(text):,}. Alignments and text must come from the same files.",
            code="E_LENGTH_MISMATCH",
        )
    return Links(np.array(places, dtype=np.uint32), np.array(starts, dtype=np.uint64))


def _link(text: str, lengths: Sequence[int], file: Source, sentence: int) -> tuple[int, int]:
    left, _, right = text.partition("-")
    digits = left.isascii() and left.isdecimal() and right.isascii() and right.isdecimal()
    if digits and len(left) < 10 and len(right) < 10:
        link = int(left), int(right)
        if link[0] < lengths[0] and link[1] < lengths[1]:
            return link
        what = (
            f"the link {text} leads outside its sentences of {lengths[0]} and {lengths[1]} words. "
            "Places count from 0, source first"
        )
    else:
        what = f"{text[:40]!r} is no link; a link is two places, such as 0-2"
    name, line = source_name(file), sentence + 1
    raise CorpusFormatError(f"{name}:{line}: {what}.", code="E_ALIGNMENT", path=name, line=line)


def symmetrize(text: ParallelText, forward: Links, backward: Links) -> Links:
    """Combine the alignments of two directions: grow-diag-final-and (Och & Ney 2003; Koehn 2005).

    Args:
        text: The sentence pairs.
        forward: Each target word has at most one link.
        backward: Each source word has at most one link; source places come first here too.
    """
    places, starts = _native.symmetrize_links(
        text.source.starts,
        text.target.starts,
        forward.places,
        forward.starts,
        backward.places,
        backward.starts,
    )
    return Links(places, starts)


class _Aligner(Protocol):
    def align(
        self,
        source: Iterable[str],
        target: Iterable[str],
        *,
        links_filename_fwd: str,
        links_filename_rev: str,
    ) -> object: ...


def align_words(text: ParallelText) -> Links:
    """Align the words with eflomal, in both directions, and combine the two.

    eflomal samples, and takes its random numbers from the system: two runs differ a little. Keep
    the links (`Links.lines`) to make the same table again.

    Raises:
        MissingExtra: without eflomal.
        UsageError: if there is nothing to align.
    """
    if not len(text.source.ids) or not len(text.target.ids):
        raise UsageError("there are no words to align. Name files of tokenized text.")
    eflomal = import_extra("eflomal", "Aligning words")
    aligner = cast("_Aligner", eflomal.Aligner())
    with tempfile.TemporaryDirectory(prefix="treelm-") as folder:
        files = [Path(folder) / name for name in ("forward", "backward")]
        aligner.align(
            (f"{line}\n" for line in text.source.lines()),
            (f"{line}\n" for line in text.target.lines()),
            links_filename_fwd=str(files[0]),
            links_filename_rev=str(files[1]),
        )
        forward, backward = (read_links(file, text) for file in files)
    return symmetrize(text, forward, backward)
