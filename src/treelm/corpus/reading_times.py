"""Reading times of words, joined with the sentences they occur in.

The layout is that of the Natural Stories corpus: a table with the columns ``item``, ``zone`` and
``word`` and one or more columns of times, and trees whose leaves carry ``/item.zone`` or, where a
zone has several tokens, ``/item.zone.part``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.errors import CorpusFormatError

_LEAF = re.compile(r"(.+)/(\d+)\.(\d+)(?:\.\w+)?")

Zone = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word of a text that people read, and how long it took.

    Args:
        item: Number of the text.
        zone: Number of the word in the text.
        word: The word as it was shown, punctuation included.
        time: In the unit of the table; None where there is no measurement.
    """

    item: int
    zone: int
    word: str
    time: float | None


@dataclass(frozen=True, slots=True)
class ZonedSentence:
    """A sentence, with the zone of each token."""

    words: tuple[str, ...]
    zones: tuple[Zone, ...]


def read_times(source: Source, column: str = "mean_rt") -> list[TimedWord]:
    """Return the words of a table with their times.

    Args:
        source: Tab-separated, with a header.
        column: The column of times.

    Raises:
        CorpusFormatError: ``E_TIMES``, naming the line.
    """
    name = source_name(source)
    lines = [line.split("\t") for line in read_lines(source, Wanted.TABLE)]
    wanted = ("item", "zone", "word", column)
    if not lines or not set(wanted) <= set(lines[0]):
        raise CorpusFormatError(
            f"{name}: the first line of a table of times must name the columns "
            f"{', '.join(wanted)}.",
            code="E_TIMES",
            path=name,
            line=1,
        )
    places = [lines[0].index(each) for each in wanted]
    found = []
    for number, cells in enumerate(lines[1:], 2):
        try:
            item, zone, word, time = (cells[place] for place in places)
            value = None if time in ("", "NA", "nan") else float(time)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(time)
            found.append(TimedWord(int(item), int(zone), word, value))
        except (ValueError, IndexError) as error:
            raise CorpusFormatError(
                f"{name}:{number}: this row needs an item, a zone, a word and a positive {column}.",
                code="E_TIMES",
                path=name,
                line=number,
            ) from error
    return found


def read_zoned_trees(source: Source) -> Iterator[ZonedSentence]:
    """Yield the sentences of trees whose leaves carry their item and zone.

    Raises:
        CorpusFormatError: ``E_ZONES`` for a leaf that has none.
    """
    for tree in TreeCorpus((source,), ReadOptions(), on_error="skip"):
        words, zones = [], []
        for leaf in tree.words:
            match = _LEAF.fullmatch(leaf)
            if match is None:
                raise CorpusFormatError(
                    f'{source_name(source)}: the word "{leaf}" does not give its place in the '
                    "text, as in dog/1.12 (text 1, word 12).",
                    code="E_ZONES",
                    path=source_name(source),
                )
            words.append(match[1])
            zones.append((int(match[2]), int(match[3])))
        yield ZonedSentence(tuple(words), tuple(zones))
