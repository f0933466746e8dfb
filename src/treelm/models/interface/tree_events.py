"""What all tree models share in counting events: reading, transforming, the vocabulary."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.brackets import ReadReport, read_packed
from treelm.corpus.corpus import Fingerprint, TreeCorpus, hashed_blocks
from treelm.corpus.encoder import open_encoder, vocabulary_of_all_words
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, size_if_known, source_name
from treelm.corpus.vocabulary import Vocabulary
from treelm.events.counts import EventCounts, Places
from treelm.events.extract import tree_event_errors
from treelm.models.interface.trained_model import corpus_record
from treelm.parallel.progress import SILENT, Progress
from treelm.store.manifest import TrainingCorpus
from treelm.trees.packed import PackedTrees


@dataclass
class TreePass:
    """One reading of a corpus of trees, with a record of what was read.

    Args:
        corpus: The trees.
        recipe: How they are transformed while being read; None for cleaning only.
        report: Filled with counts and problems.
    """

    corpus: TreeCorpus
    recipe: _native.TreeRecipe | None = None
    report: ReadReport = field(default_factory=ReadReport)

    def __post_init__(self) -> None:
        self._digest = hashlib.sha256()

    def batches(self, progress: Progress = SILENT) -> Iterator[PackedTrees]:
        """Yield the trees in packed batches."""
        for path in self.corpus.paths:
            with progress.step(
                f"reading {source_name(path)}", total=size_if_known(path), unit="B"
            ) as step:

                def blocks(path: Source = path) -> Iterator[bytes]:
                    for block in hashed_blocks(path, self._digest, Wanted.TREES):
                        yield block
                        step.advance(len(block))

                yield from read_packed(
                    blocks(),
                    self.corpus.options,
                    recipe=self.recipe,
                    name=source_name(path),
                    on_error=self.corpus.on_error,
                    report=self.report,
                    threads=self.corpus.threads,
                )

    @property
    def fingerprint(self) -> Fingerprint:
        """Fingerprint of what was read."""
        return Fingerprint(self._digest.hexdigest(), self.report.trees, self.report.tokens)

    @property
    def record(self) -> TrainingCorpus:
        """What the manifest of a model says about what was read."""
        return corpus_record(self.corpus, self.fingerprint)


def note_reading(target: ReadReport | None, source: ReadReport) -> None:
    """Copy one report into another."""
    for item in fields(source) if target is not None else ():
        setattr(target, item.name, getattr(source, item.name))


def all_words(corpus: TreeCorpus, progress: Progress = SILENT) -> Vocabulary:
    """Return the vocabulary of all words of trees.

    Raises:
        VocabularyError: ``E_NO_DATA`` for trees without words.
        CorpusFormatError: ``E_RESERVED_SYMBOL`` for a word that is reserved.
    """
    encoder = open_encoder()
    for batch in TreePass(corpus).batches(progress):
        with tree_event_errors():
            batch.native.encode_words(encoder)
        encoder.take()
    return vocabulary_of_all_words(encoder, corpus)


def is_training_text(vocabulary: Vocabulary, report: ReadReport) -> bool:
    """Return whether a vocabulary was made from a text of exactly this size.

    Where the streaming rule made it from this very text, words are unknown until the place where
    they entered it.
    """
    source = vocabulary.source
    return (source.get("sentences"), source.get("tokens")) == (report.trees, report.tokens)


def has_late_words(vocabulary: Vocabulary) -> bool:
    """Return whether some words are known only from some place in the training text on."""
    return any(item.entry is not None for item in vocabulary.entries)


class WordTags(NamedTuple):
    """The most frequent category of every word."""

    names: tuple[str, ...]
    """Categories."""
    of_word: npt.NDArray[np.uint32]
    """By word, the place of its category in `names`."""


def word_counts(events: EventCounts, words: int, sentences: int) -> Places:
    """Return how often each word is an outcome of events, then the number of sentences."""
    rows, counts = events.summed(1)
    result = np.zeros(words + 1, dtype=np.uint64)
    result[rows[:, 0]] = counts
    result[-1] = sentences
    return result


def usual_tags(events: EventCounts, names: Sequence[str], words: int) -> WordTags:
    """Return the most frequent category of every word.

    Args:
        events: Words with the label above them as the first column of the context.
        names: Category of every label.
        words: Number of words; words never read get the most frequent category of all.
    """
    rows, counts = events.summed(2)
    tags = tuple(sorted({names[label] for label in set(rows[:, 1].tolist())}))
    places = {tag: place for place, tag in enumerate(tags)}
    tag_of = np.array([places.get(name, 0) for name in names], dtype=np.int64)
    pairs = rows[:, 0].astype(np.int64) * len(tags) + tag_of[rows[:, 1]]
    found, place_of = np.unique(pairs, return_inverse=True)
    sums = np.bincount(place_of, weights=counts.astype(np.float64))
    overall = np.bincount(found % len(tags), weights=sums)
    best = np.full(words, int(overall.argmax()), dtype=np.uint32)
    # The most frequent category of a word comes last; of several the first by name.
    order = np.lexsort((-found, sums, found // len(tags)))
    best[found[order] // len(tags)] = found[order] % len(tags)
    return WordTags(tags, best)
