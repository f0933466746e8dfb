"""The rows of a surprisal table: one per word, kept as the columns of a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


class SurprisalRow(NamedTuple):
    """One word of a text.

    Args:
        doc_id: Number of the document, from 1.
        sent_id: Number of the sentence in the whole text, from 1.
        word_id: Number of the word in its sentence, from 1.
        word: The word as written.
        surprisal: In bits.
        log_prob: Natural logarithm of the probability.
        oov: Whether the word is out of vocabulary.
        measures: Other requested measures, in the order of the columns.
    """

    doc_id: int
    sent_id: int
    word_id: int
    word: str
    surprisal: float
    log_prob: float
    oov: bool
    measures: tuple[float, ...] = ()


#: The columns that every model has.
COLUMNS = SurprisalRow._fields[:-1]


@dataclass(frozen=True, slots=True, eq=False)
class SentenceRows(Sequence[SurprisalRow]):
    """The rows of one sentence, made on demand.

    Args:
        doc_id: Number of the document, from 1.
        sent_id: Number of the sentence in the whole text, from 1.
        words: The words, perhaps with the end of the sentence.
        surprisal: In bits.
        log_prob: Natural logarithms.
        oov: Which words are out of vocabulary.
        measures: Other columns.
    """

    doc_id: int
    sent_id: int
    words: tuple[str, ...]
    surprisal: Numbers
    log_prob: Numbers
    oov: npt.NDArray[np.bool_]
    measures: tuple[Numbers, ...] = ()

    @classmethod
    def of(cls, rows: Sequence[SurprisalRow]) -> SentenceRows:
        """Return rows of one sentence as columns."""
        if isinstance(rows, SentenceRows):
            return rows
        measures = np.array([row.measures for row in rows], np.float64).reshape(len(rows), -1)
        return cls(
            rows[0].doc_id if rows else 0,
            rows[0].sent_id if rows else 0,
            tuple(row.word for row in rows),
            np.array([row.surprisal for row in rows], np.float64),
            np.array([row.log_prob for row in rows], np.float64),
            np.array([row.oov for row in rows], np.bool_),
            tuple(np.ascontiguousarray(column) for column in measures.T),
        )

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[SurprisalRow]:
        size = len(self.words)
        besides = zip(*(column.tolist() for column in self.measures), strict=True)
        columns = (self.surprisal.tolist(), self.log_prob.tolist(), self.oov.tolist())
        numbers = repeat(self.doc_id, size), repeat(self.sent_id, size), range(1, size + 1)
        extra = besides if self.measures else repeat((), size)
        return map(SurprisalRow._make, zip(*numbers, self.words, *columns, extra, strict=True))

    @overload
    def __getitem__(self, index: int) -> SurprisalRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[SurprisalRow]: ...
    def __getitem__(self, index: int | slice) -> SurprisalRow | list[SurprisalRow]:
        return list(self)[index]
