"""What the words before tell about the next one: its form given its tag, and its tag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import GivenBase, Precision, UniformBase, estimate
from treelm.estimation.kneser_ney import modified_kneser_ney
from treelm.events.counts import EventCounter, EventCounts
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.observation import Observations
from treelm.models.hhmm.rules import Floats
from treelm.models.run import Run
from treelm.store.schema import Tensor, probabilities, read_tensors

#: How the tensors of the tables begin in a model folder.
WORD_TABLE, TAG_TABLE = "word_contexts", "tag_contexts"
_TAG_SHARES = Tensor("tag_shares", np.float64, ("tags",), probabilities)

#: Rows that are counted at a time.
_BLOCK = 1 << 20

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordContexts:
    """Words by their tag and the words before, and tags by the words before.

    Tags count from 0 in both tables. Before the first word stands the number of words.

    Args:
        words: P(word | tag, words before), above P(word | tag); None to know the tag alone.
        tags: P(tag | words before), the end of the sentence among the tags; None for none.
        tag_shares: P(tag), for which the stacks have accounted already; empty without `tags`.
    """

    words: BackoffTable | None
    tags: BackoffTable | None
    tag_shares: Floats

    @property
    def lengths(self) -> tuple[int, int]:
        """How many words before each of the tables remembers."""
        words = self.words.context_columns - 1 if self.words else 0
        return words, self.tags.context_columns if self.tags else 0

    def changed(self, change: Callable[[BackoffTable], BackoffTable]) -> WordContexts:
        """Return the tables after each was changed, such as to a smaller one."""
        words, tags = (
            None if table is None else change(table) for table in (self.words, self.tags)
        )
        return WordContexts(words, tags, self.tag_shares)

    @property
    def table(self) -> BackoffTable | None:
        """One of the tables; both are stored alike."""
        return self.words or self.tags

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model folder stores."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        if self.words is not None:
            arrays |= self.words.to_tensors(WORD_TABLE)
        if self.tags is not None:
            arrays |= self.tags.to_tensors(TAG_TABLE)
            arrays[_TAG_SHARES.name] = self.tag_shares
        return arrays

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, npt.NDArray[Any]], config: HhmmConfig, *, tags: int
    ) -> WordContexts | None:
        """Return the tables that the options ask for, from arrays that nobody vouches for.

        Args:
            tensors: The arrays.
            config: The options of the model.
            tags: Number of tags, the end of the sentence among them.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if they are no such tables.
            EstimationError: ``E_MODEL_TABLES`` if they are those of other options.
        """
        if not config.remembers_words:
            return None
        words = _table(tensors, WORD_TABLE, config.word_context, config.word_context + 1)
        known = _table(tensors, TAG_TABLE, config.tag_context, config.tag_context)
        shares = np.zeros(0)
        if known is not None:
            shares = read_tensors(tensors, (_TAG_SHARES,), tags=tags)[_TAG_SHARES.name]
        return cls(words, known, shares)


#: Nothing is remembered.
NO_CONTEXTS = WordContexts(None, None, np.zeros(0))


def _table(
    tensors: Mapping[str, npt.NDArray[Any]], name: str, length: int, columns: int
) -> BackoffTable | None:
    if length == 0:
        return None
    table = BackoffTable.from_tensors(tensors, name)
    if table.context_columns != columns:
        raise EstimationError(
            f'the table "{name}" has {table.context_columns} columns, not {columns}.',
            code="E_MODEL_TABLES",
        )
    return table


def learn_contexts(
    words: Words,
    tags: Words,
    starts: Words,
    observed: Observations,
    config: HhmmConfig,
    *,
    phrasal: int,
    run: Run,
) -> WordContexts | None:
    """Return the tables of a tagged text, or None if no words are to be remembered.

    Args:
        words: The id of every word of the text.
        tags: Its tag, as a symbol.
        starts: Where each sentence begins, and where the last one ends.
        observed: The words of each tag.
        config: Options.
        phrasal: How many symbols are no tags.
        run: How the training is run.
    """
    if not config.remembers_words:
        return None
    size, tag_count = len(observed.unigram), len(observed.tag_counts) - phrasal
    precision: Precision = "double" if config.precision == "exact" else "single"
    by_tag = with_tags = None
    shares = np.zeros(0)
    own_tags = tags - phrasal
    if config.word_context:
        before = _before(words, starts, config.word_context, pad=size)
        counts = _count(words, [own_tags, *before], run)
        names = ("tag", *_names(config.word_context))
        widths = tuple(range(config.word_context + 1, 0, -1))
        levels = _levels(counts, Chain(names, widths, (None, *[size] * config.word_context)), run)
        rows, _, _ = levels.entries(len(levels) - 1)
        base = observed.probabilities(rows[:, 0], rows[:, 1].astype(np.int64) + phrasal)
        by_tag = estimate(
            levels,
            modified_kneser_ney(levels, min_counts=_cuts(config.context_min_count, widths, 2)),
            GivenBase(base),
            outcomes=size,
            first_contexts=tag_count,
            precision=precision,
            progress=run.progress,
        )
    if config.tag_context:
        # The end of a sentence, the last tag, comes after its last word.
        ends = starts[1:]
        longer = np.insert(words, ends, size)
        outcomes = np.insert(own_tags, ends, tag_count - 1)
        places = starts + np.arange(len(starts))
        before = _before(longer, places, config.tag_context, pad=size)
        counts = _count(outcomes, before, run)
        widths = tuple(range(config.tag_context, -1, -1))
        chain = Chain(_names(config.tag_context), widths, (size,) * config.tag_context)
        levels = _levels(counts, chain, run)
        with_tags = estimate(
            levels,
            modified_kneser_ney(levels, min_counts=_cuts(config.context_min_count, widths, 2)),
            UniformBase(tag_count),
            outcomes=tag_count,
            first_contexts=size + 1,
            precision=precision,
            progress=run.progress,
        )
        shares = np.bincount(outcomes, minlength=tag_count) / len(outcomes)
    return WordContexts(by_tag, with_tags, shares)


def _names(length: int) -> tuple[str, ...]:
    return tuple(f"word-{back}" for back in range(1, length + 1))


def _cuts(least: int, widths: tuple[int, ...], longest_kept: int) -> tuple[int, ...]:
    """Return the smallest count kept per level: rare entries of long contexts only are left out."""
    return tuple(least if width > longest_kept else 1 for width in widths)


def _before(words: Words, starts: Words, length: int, *, pad: int) -> list[Words]:
    """Return for every place the words before it, the latest first; the pad before sentences."""
    place = np.arange(len(words)) - np.repeat(starts[:-1], np.diff(starts))
    found = []
    for back in range(1, length + 1):
        column = np.full(len(words), pad, np.int64)
        here = np.flatnonzero(place >= back)
        column[here] = words[here - back]
        found.append(column)
    return found


def _count(outcomes: Words, columns: list[Words], run: Run) -> EventCounts:
    counter = EventCounter(columns=len(columns) + 1, threads=run.threads)
    for first in range(0, len(outcomes), _BLOCK):
        part = slice(first, first + _BLOCK)
        rows = [outcomes[part], *(column[part] for column in columns)]
        counter.add(np.stack(rows, axis=1).astype(np.uint32))
    return counter.finish()


def _levels(counts: EventCounts, chain: Chain, run: Run) -> ChainCounts:
    return ChainCounts(counts, chain, threads=run.threads)
