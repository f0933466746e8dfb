"""What an n-gram model counts: every word, and the end of every sentence, given those before."""

from __future__ import annotations

from dataclasses import dataclass

from treelm.corpus.encoder import EncodedText
from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.chain import Chain
from treelm.events.counts import (
    MOST_WORDS,
    EventCounter,
    EventCounts,
    count_sequences,
    memory_to_count,
)
from treelm.events.template import EventTemplate
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress


@dataclass(frozen=True, slots=True)
class WordSpace:
    """Ids of an n-gram model: those of the vocabulary, then ``</s>``, then ``<s>``.

    Examples:
        >>> space = WordSpace(words=10)
        >>> space.end, space.start, space.outcomes, space.predicted
        (10, 11, 12, 11)
    """

    words: int

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> WordSpace:
        """Return the ids over a vocabulary."""
        return cls(len(vocabulary))

    @property
    def end(self) -> int:
        """Id of the end of a sentence."""
        return self.words

    @property
    def start(self) -> int:
        """Id of the start of a sentence, which is never predicted."""
        return self.words + 1

    @property
    def outcomes(self) -> int:
        """All ids are below this number."""
        return self.words + 2

    @property
    def predicted(self) -> int:
        """Ids that can be predicted are below this number."""
        return self.words + 1


def ngram_template(order: int) -> EventTemplate:
    """Return what is counted: a word, given the ``order - 1`` before it, the nearest kept longest.

    Examples:
        >>> ngram_template(3).context
        ('word-1', 'word-2')
    """
    return EventTemplate("ngram", "word", "word", tuple(f"word-{back}" for back in range(1, order)))


def ngram_chain(order: int, space: WordSpace) -> Chain:
    """Return the chain of an n-gram model: one word fewer at each level."""
    return Chain.words(order, space.start)


#: Number of sentences passed to the kernel at a time: in between, Ctrl-C works and progress is
#: shown.
PIECE = 1 << 16


def count_ngrams(
    text: EncodedText,
    order: int,
    space: WordSpace,
    *,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> EventCounts:
    """Return the n-grams of a text, counted in temporary files where memory does not suffice."""
    if _fits(text, order, space, threads, memory):
        return count_sequences(
            text.ids,
            text.starts,
            order,
            end=space.end,
            pad=space.start,
            threads=threads,
            progress=progress,
        )
    counter = EventCounter(order, threads=threads, memory=memory)
    with progress.step("counting n-grams", total=len(text), unit="sentences") as step:
        for first in range(0, len(text), PIECE):
            starts = text.starts[first : first + PIECE + 1]
            counter.add_sequences(text.ids, starts, end=space.end, pad=space.start)
            step.advance(len(starts) - 1)
    return counter.finish(progress)


def _fits(
    text: EncodedText, order: int, space: WordSpace, threads: int, memory: MemoryLimit | None
) -> bool:
    """Return whether all n-grams of a text fit into memory."""
    if len(text.ids) > MOST_WORDS:
        return False
    if memory is None:
        return True
    needed = memory_to_count(len(text.ids), len(text), order, largest=space.start, threads=threads)
    return needed <= memory.share
