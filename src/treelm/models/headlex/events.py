"""What a head-lexicalised model counts, and how each kind of event backs off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError
from treelm.estimation.chain import Chain
from treelm.events.counts import EventCounter, EventCounts, Places
from treelm.events.extract import TreeEvents, count_in_groups
from treelm.events.template import EventTemplate
from treelm.kernel_errors import kernel_errors
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
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.manifest import TrainingCorpus
from treelm.trees.profile import load_profile

#: Ids of labels that no tree has: before the first modifier, after the last, never seen.
START, STOP, UNKNOWN_LABEL = 0, 1, 2

#: Kinds of events in the order of the kernel, with the columns of their contexts and how many of
#: them each level keeps. The one before is the previous modifier on the same side.
KINDS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "top_label": (("root",), (1,)),
    "top_word": (("label",), (1, 0)),
    "head_label": (("label", "head word"), (2, 1)),
    "modifier": (
        ("label", "head label", "side", "head word", "label before", "word before"),
        (6, 5, 4, 3, 1),
    ),
    "word": (
        ("modifier", "label", "head label", "side", "head word", "label before", "word before"),
        (7, 5, 4, 1, 0),
    ),
}

#: Words with the tags above them, for sentences without a tree.
_TAGS = EventTemplate("tag", "tag", "word", ("label",))


def headlex_chain(kind: str) -> Chain:
    """Return how a kind of event backs off.

    Examples:
        >>> headlex_chain("modifier").pads
        (None, None, None, None, 0, None)
    """
    columns, widths = KINDS[kind]
    pads = tuple(START if name == "label before" else None for name in columns)
    return Chain(columns, widths, pads)


@dataclass(frozen=True, eq=False)
class HeadlexCounts:
    """Counts of the events of a head-lexicalised model.

    Args:
        events: By kind.
        labels: Labels by id, reserved ones first.
        vocabulary: The words.
        unigrams: Count of each word, then the number of sentences.
        tags: The most frequent category of every word.
        corpora: What was counted.
    """

    events: dict[str, EventCounts]
    labels: tuple[str, ...]
    vocabulary: Vocabulary
    unigrams: Places
    tags: WordTags
    corpora: tuple[TrainingCorpus, ...]

    @cached_property
    def is_child(self) -> npt.NDArray[np.bool_]:
        """Whether each label was seen below another."""
        seen = np.zeros(len(self.labels), dtype=np.bool_)
        for kind in ("top_label", "head_label", "modifier"):
            seen[self.events[kind].summed(1)[0][:, 0]] = True
        seen[STOP] = False
        return seen


def count_headlex(
    corpus: TreeCorpus,
    *,
    vocabulary: Vocabulary | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    report: ReadReport | None = None,
    progress: Progress = SILENT,
) -> HeadlexCounts:
    """Count the events of trees.

    Args:
        corpus: The trees.
        vocabulary: The words to know; by default all words of the trees, read first.
        threads: Number of threads.
        memory: Memory limit.
        report: Filled with counts and problems.
        progress: Progress callback.

    Raises:
        EstimationError: ``E_NO_DATA`` without trees.
    """
    if vocabulary is None:
        vocabulary = all_words(corpus, progress)
    training = has_late_words(vocabulary)
    profile = load_profile(corpus.options.profile).native
    while True:
        reading = TreePass(corpus)
        with kernel_errors("preparing to extract events"):
            kernel = _native.HeadlexExtractor(profile, vocabulary.encoder, training=training)
        tagged = TreeEvents([_TAGS], vocabulary, training=training)
        share = memory.divided(len(KINDS) + 1) if memory is not None else None
        counters = [
            EventCounter(1 + len(columns), threads=threads, memory=share)
            for columns, _ in KINDS.values()
        ]
        tags = EventCounter(2, threads=threads, memory=share)
        count_in_groups(
            [(kernel, counters), (tagged.native, [tags])],
            reading.batches(progress),
            threads=threads,
        )
        if not training or is_training_text(vocabulary, reading.report):
            break
        training = False
    note_reading(report, reading.report)
    events = {kind: counter.finish(progress) for kind, counter in zip(KINDS, counters, strict=True)}
    if not len(events["top_label"]):
        raise EstimationError("there are no trees to train on.", code="E_NO_DATA")
    pairs = tags.finish(progress)
    return HeadlexCounts(
        events,
        tuple(kernel.labels),
        vocabulary,
        word_counts(pairs, len(vocabulary), kernel.sentences),
        usual_tags(pairs, tagged.symbols.bases, len(vocabulary)),
        (reading.record,),
    )
