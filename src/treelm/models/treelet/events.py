"""What a treelet model counts: the children of phrases, and words, with their contexts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import CorpusFormatError, EstimationError, UsageError, option
from treelm.estimation.yields import Rules
from treelm.events.counts import EventCounter, EventCounts, Places
from treelm.events.extract import EventSymbols, TreeEvents
from treelm.models.interface.tree_events import (
    TreePass,
    WordTags,
    all_words,
    has_late_words,
    is_training_text,
    note_reading,
    usual_tags,
    word_counts,
)
from treelm.models.treelet.config import TreeletConfig
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.manifest import TrainingCorpus
from treelm.transforms.treelet import Treelet
from treelm.trees.profile import ProfileSource, load_profile

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TreeletCounts:
    """Counts of the events of a treelet model.

    Args:
        nonterminal: Right-hand sides with their contexts.
        terminal: Words with their contexts.
        symbols: What the ids mean.
        vocabulary: The words.
        transform: The transform of the trees.
        sentences: Number of trees.
        corpora: What was counted.
        marked_tags: Labels that get the suffix ``~T`` where they are over a word.
        extractor: The extractor that counted it, if it still exists.
    """

    nonterminal: EventCounts
    terminal: EventCounts
    symbols: EventSymbols
    vocabulary: Vocabulary
    transform: Treelet
    sentences: int
    corpora: tuple[TrainingCorpus, ...]
    marked_tags: tuple[str, ...] = ()
    extractor: TreeEvents | None = None

    @cached_property
    def rules(self) -> tuple[Rules, Places]:
        """The rules in the order of the last level of their chain, and their counts."""
        rows, counts = self.nonterminal.summed(2)
        return rules_of(self.symbols, rows[:, 0], rows[:, 1]), counts

    @cached_property
    def unigrams(self) -> Places:
        """Count of each word, then the number of sentences."""
        return word_counts(self.terminal, len(self.vocabulary), self.sentences)

    @cached_property
    def is_tag(self) -> Flags:
        """Whether each label is over words."""
        rows, _ = self.terminal.summed(2)
        return _marked(rows[:, 1], len(self.symbols.labels))

    def word_tags(self) -> WordTags:
        """Return the most frequent category of every word, before any transform."""
        profile = load_profile(self.transform.profile)
        plain = {new: old for old, new in profile.treelet.temporal_tags.items()}
        names = [plain.get(base, base) for base in self.symbols.bases]
        return usual_tags(self.terminal, names, len(self.vocabulary))

    @property
    def tags_that_are_phrases(self) -> tuple[str, ...]:
        """Labels that are over words and over phrases."""
        phrases = _marked(self.rules[0].parents, len(self.symbols.labels))
        return tuple(self.symbols.labels[label] for label in np.flatnonzero(phrases & self.is_tag))

    def check(self) -> None:
        """Refuse counts in which one label is over words and over phrases.

        Raises:
            CorpusFormatError: ``E_TAG_IS_PHRASE``.
            EstimationError: ``E_NO_DATA`` without trees.
        """
        if not len(self.nonterminal) or not len(self.terminal):
            raise EstimationError("there are no trees to train on.", code="E_NO_DATA")
        if both := self.tags_that_are_phrases:
            shown = ", ".join(map(visible, both[:8]))
            raise CorpusFormatError(
                f"{len(both)} labels are used both as tags and as phrases: {shown}. Models need "
                "them distinct: count with these among the marked tags.",
                code="E_TAG_IS_PHRASE",
            )


def rules_of(
    symbols: EventSymbols, yields: npt.NDArray[np.uint32], parents: npt.NDArray[np.uint32]
) -> Rules:
    """Return rules given the ids of their right-hand sides and parents."""
    starts = symbols.yield_starts.astype(np.int64)
    first, lengths = starts[yields], starts[yields.astype(np.int64) + 1] - starts[yields]
    ends = np.cumsum(lengths)
    inside = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return Rules(
        np.ascontiguousarray(parents, dtype=np.uint32),
        symbols.yield_labels[np.repeat(first, lengths) + inside],
        np.concatenate([[0], ends]).astype(np.uint64),
    )


def transform_of(config: TreeletConfig, profile: ProfileSource) -> Treelet:
    """Return the transform of a model, in a form that a manifest can store."""
    return Treelet(
        profile=load_profile(profile).to_config(),
        temporal=frozenset(config.temporal),
        transforms=frozenset(config.applied),
        vp_label=config.vp_label,
    )


def count_treelets(
    corpus: TreeCorpus,
    config: TreeletConfig,
    *,
    vocabulary: Vocabulary | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    report: ReadReport | None = None,
    progress: Progress = SILENT,
) -> TreeletCounts:
    """Count the events of trees.

    Args:
        corpus: Treebank trees.
        config: Options.
        vocabulary: The words to know; by default all words of the trees, read first.
        threads: Number of threads.
        memory: Memory limit.
        report: Filled with counts and problems.
        progress: Progress callback.

    Raises:
        CorpusFormatError: for malformed trees.
        EstimationError: ``E_NO_DATA`` without trees.
    """
    if vocabulary is None:
        vocabulary = all_words(corpus, progress)
    training = has_late_words(vocabulary)
    marked = set(config.marked_tags)
    while True:
        counts, reading = _count_once(
            corpus,
            config.model_copy(update={"marked_tags": tuple(sorted(marked))}),
            vocabulary,
            training=training,
            threads=threads,
            memory=memory,
            progress=progress,
        )
        both = counts.tags_that_are_phrases
        late = not training or is_training_text(vocabulary, reading)
        if late and not both:
            break
        training = training and late
        marked.update(both)  # rare, and known only now: count again
    note_reading(report, reading)
    counts.check()
    return counts


def _count_once(
    corpus: TreeCorpus,
    config: TreeletConfig,
    vocabulary: Vocabulary,
    *,
    training: bool,
    threads: int,
    memory: MemoryLimit | None,
    progress: Progress,
) -> tuple[TreeletCounts, ReadReport]:
    transform = transform_of(config, corpus.options.profile)
    reading = TreePass(corpus, transform.recipe_with(corpus.options))
    templates = [config.nonterminal_template, config.terminal_template]
    events = TreeEvents(templates, vocabulary, training=training, marked_tags=config.marked_tags)
    share = memory.divided(2) if memory is not None else None
    counters = [
        EventCounter(1 + len(template.context), threads=threads, memory=share)
        for template in templates
    ]
    events.count(reading.batches(progress), counters, threads=threads)
    nonterminal, terminal = (counter.finish(progress) for counter in counters)
    counts = TreeletCounts(
        nonterminal,
        terminal,
        events.symbols,
        vocabulary,
        transform,
        events.sentences,
        (reading.record,),
        config.marked_tags,
        events,
    )
    return counts, reading.report


def count_held_out(
    corpus: TreeCorpus, counts: TreeletCounts, config: TreeletConfig, *, threads: int = 1
) -> tuple[EventCounts, EventCounts, EventSymbols]:
    """Return the events of other trees with the ids of those counted, then new ones.

    Raises:
        UsageError: if the counts come from a folder, which has no room for new ids.
    """
    if counts.extractor is None:
        raise UsageError(
            "weights on held-out trees are found together with the counts; train on trees instead "
            f"of {option('counts')}, or smooth with kn or mkn."
        )
    reading = TreePass(corpus, counts.transform.recipe_with(corpus.options))
    counters = [
        EventCounter(1 + len(template.context), threads=threads)
        for template in (config.nonterminal_template, config.terminal_template)
    ]
    counts.extractor.count(reading.batches(), counters, threads=threads)
    nonterminal, terminal = (counter.finish() for counter in counters)
    return nonterminal, terminal, counts.extractor.symbols


def _marked(ids: npt.NDArray[np.uint32], size: int) -> Flags:
    flags = np.zeros(size, dtype=np.bool_)
    flags[ids] = True
    return flags
