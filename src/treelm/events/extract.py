"""From trees to counted events: templates run by the kernel, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treelm import _native
from treelm.characters import visible
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import CorpusFormatError
from treelm.events.counts import EventCounter, EventCounts, Ids, Places
from treelm.events.template import EventTemplate
from treelm.kernel_errors import kernel_errors
from treelm.trees.packed import PackedTrees

#: Kernels that turn trees into rows.
RowExtractor = _native.EventExtractor | _native.HeadlexExtractor

#: Custom events: rows of ids for the trees of a batch, outcome first.
Extractor = Callable[[PackedTrees], Ids]


class TreeEvents:
    """Event rows of many trees, with one set of ids for all of them.

    Args:
        templates: What is counted.
        vocabulary: Which words are known; None to give every word its own id.
        training: Whether the vocabulary was made from these trees.
        marked_tags: Labels that get the suffix ``~T`` where they are over a word, because they
            are also labels of phrases.

    Examples:
        >>> from treelm.events.template import TREELET_NONTERMINAL
        >>> from treelm.trees.tree import Tree
        >>> events = TreeEvents([TREELET_NONTERMINAL])
        >>> tree = Tree.from_string("(ROOT (S (N dogs) (V bark)))")
        >>> [rows] = events.extract(PackedTrees.from_trees([tree]))
        >>> [events.symbols.yield_text(int(row[0])) for row in rows]
        ['S', 'N V']
    """

    def __init__(
        self,
        templates: Sequence[EventTemplate],
        vocabulary: Vocabulary | None = None,
        *,
        training: bool = False,
        marked_tags: Sequence[str] = (),
    ) -> None:
        self.templates = tuple(templates)
        self.vocabulary = vocabulary
        with kernel_errors("preparing to extract events"):
            self._native = _native.EventExtractor(
                [template.native for template in self.templates],
                None if vocabulary is None else vocabulary.encoder,
                training=training,
                marked_tags=list(marked_tags),
            )

    def extract(self, trees: PackedTrees) -> list[Ids]:
        """Return the rows of every template.

        Raises:
            CorpusFormatError: ``E_RESERVED_SYMBOL`` if a label or word is reserved.
        """
        with tree_event_errors():
            return self._native.extract(trees.native)

    def count(
        self,
        batches: Iterable[PackedTrees],
        counters: Sequence[EventCounter],
        *,
        threads: int = 1,
    ) -> None:
        """Count the rows of every template, several batches at a time if there are several threads.

        Args:
            batches: The trees.
            counters: One for each template.
            threads: Number of threads.

        Raises:
            CorpusFormatError: ``E_RESERVED_SYMBOL`` if a label or word is reserved.
        """
        count_in_groups([(self._native, counters)], batches, threads=threads)

    @property
    def native(self) -> _native.EventExtractor:
        """The kernel that extracts."""
        return self._native

    @property
    def symbols(self) -> EventSymbols:
        """What the ids so far mean."""
        return EventSymbols(
            tuple(self._native.labels),
            *self._native.yields,
            self._native.rules,
            self._native.word_count,
            self._native.sentence_end,
            self._native.sentence_start,
            tuple(self._native.label_bases),
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The words by id."""
        return tuple(self._native.words) if self.vocabulary is None else self.vocabulary.symbols

    @property
    def sentences(self) -> int:
        """Trees seen so far."""
        return self._native.sentences

    @property
    def tokens(self) -> int:
        """Words seen so far."""
        return self._native.tokens


@dataclass(frozen=True)
class EventSymbols:
    """What the ids of labels, rules and right-hand sides mean.

    Args:
        labels: Labels by id; the first ones are reserved: ``<none>``, ``<top>``, START, STOP.
        yield_labels: Labels of all right-hand sides, one after the other.
        yield_starts: Where each right-hand side begins, and the total.
        rules: Label and right-hand side of each rule; rule 0 is the one above a root.
        words: Number of words.
        end: Id of the end of a sentence.
        start: Id of the padding before the first word.
        bases: Categories of the labels, without what transforms appended.
    """

    labels: tuple[str, ...]
    yield_labels: Ids
    yield_starts: Places
    rules: Ids
    words: int
    end: int
    start: int
    bases: tuple[str, ...] = ()

    NO_SIBLING = 0
    TOP = 1
    START = 2
    STOP = 3
    TOP_RULE = 0

    @cached_property
    def label_ids(self) -> dict[str, int]:
        """Ids of labels."""
        return {label: index for index, label in enumerate(self.labels)}

    def yield_of(self, index: int) -> tuple[str, ...]:
        """Return the labels of a right-hand side."""
        first, last = self.yield_starts[index], self.yield_starts[index + 1]
        return tuple(self.labels[label] for label in self.yield_labels[first:last])

    def yield_text(self, index: int) -> str:
        """Return a right-hand side in words."""
        return " ".join(self.yield_of(index))

    def rule_text(self, index: int) -> str:
        """Return a rule in words, such as ``S -> NP VP``."""
        if index == self.TOP_RULE:
            return "<top>"
        label, right = self.rules[index].tolist()
        return f"{self.labels[label]} -> {self.yield_text(right)}"


def count_tree_events(
    batches: Iterable[PackedTrees],
    templates: Sequence[EventTemplate],
    vocabulary: Vocabulary | None = None,
    *,
    training: bool = False,
    extractors: Sequence[tuple[int, Extractor]] = (),
    threads: int = 1,
) -> tuple[list[EventCounts], TreeEvents]:
    """Return the counts of every template over trees, and what its ids mean.

    Args:
        batches: The trees.
        templates: What is counted.
        vocabulary: Which words are known; None for all.
        training: Whether the vocabulary was made from these trees.
        extractors: Events that no template can express: number of columns, and a function that
            gives rows. Their counts come after those of the templates.
        threads: Number of threads.
    """
    events = TreeEvents(templates, vocabulary, training=training)
    widths = [1 + len(template.context) for template in templates]
    counters = [
        EventCounter(width, threads=threads)
        for width in (*widths, *(columns for columns, _ in extractors))
    ]
    own, others = counters[: len(templates)], counters[len(templates) :]

    def passed_on() -> Iterator[PackedTrees]:
        for batch in batches:
            yield batch
            for counter, (_, extract) in zip(others, extractors, strict=True):
                counter.add(np.ascontiguousarray(extract(batch), dtype=np.uint32))

    events.count(passed_on(), own, threads=threads)
    return [counter.finish() for counter in counters], events


#: Number of tokens in the batches that the kernel takes at once, per thread.
GROUP_TOKENS = 1 << 16


def count_in_groups(
    extractors: Sequence[tuple[RowExtractor, Sequence[EventCounter]]],
    batches: Iterable[PackedTrees],
    *,
    threads: int,
) -> None:
    """Hand batches to kernels that extract and count, several batches at a time.

    Args:
        extractors: Kernels, each with the counters of its rows.
        batches: The trees.
        threads: Number of threads.
    """
    group: list[_native.PackedTrees] = []
    tokens = 0
    pairs = [
        (extractor, [counter.native for counter in counters]) for extractor, counters in extractors
    ]

    def count() -> None:
        with tree_event_errors():
            for extractor, counters in pairs:
                extractor.count(group, counters, threads=threads)

    for batch in batches:
        group.append(batch.native)
        tokens += batch.token_count
        if tokens >= GROUP_TOKENS * threads:
            count()
            group, tokens = [], 0
    if group:
        count()


@contextmanager
def tree_event_errors() -> Iterator[None]:
    """Turn the kernel's errors about labels and words into corpus errors."""
    with kernel_errors("extracting events"):
        try:
            yield
        except _native.KernelError as error:
            code, message, *_ = error.args
            if code != "E_RESERVED_SYMBOL":
                raise
            raise CorpusFormatError(
                f'the trees contain "{visible(message)}", which is reserved for the models. '
                "Rename it.",
                code=code,
            ) from error
