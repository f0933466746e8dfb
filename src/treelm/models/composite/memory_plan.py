"""Planning a training run: types, bytes, time, and what fits.

Types are counted on a sample of the n-grams of the text, chosen by a hash, so that one pass over
the text is enough. How many topics an n-gram meets is not known before PLSA; it is estimated from
the number of documents the n-gram occurs in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import EncodedText, Ids, sizes_between
from treelm.models.composite.plan_sizes import (
    Sampled,
    StemSize,
    building_peak,
    collecting_peak,
    record_bytes,
    sample_types,
)
from treelm.models.plsa.config import KEPT_TOPICS, PlsaConfig

#: Bytes of the program itself.
PROGRAM_BYTES = 70 << 20
#: Share of the types that a cut-off keeps: 3-grams, 200 topics of which a document keeps five, one
#: document in 64 of the topic experiment. Measured.
KEPT_BY_CUTOFF = (
    (0.0, 1.0),
    (0.002, 0.61),
    (0.005, 0.57),
    (0.01, 0.53),
    (0.05, 0.39),
    (0.1, 0.32),
    (0.2, 0.27),
    (0.5, 0.21),
    (1.0, 0.05),
)
#: Numbers of topics that a document may keep, tried to see which fit.
COMPARED = (1, 2, 5, 10, 20, 50, 100, 200)
#: Events per second and core: PLSA (of one word in one document, for 200 topics) and one E-step.
PLSA_PAIRS_A_SECOND = 4.0e6
EM_EVENTS_A_SECOND = 2.0e5


@dataclass(frozen=True)
class NodePlan:
    """One node of the lattice: its columns and its types."""

    words: int
    topics: bool
    types: int
    heads: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """The resources that training will take.

    Args:
        tokens: Number of words and sentence ends of the text.
        nodes: Types by node.
        table_bytes: Bytes of all tables.
        stages: Peak memory of each stage of the training.
        seconds: Time of one iteration of PLSA and of each kind of EM, on one core.
        cutoff: Smallest cut-off with which the tables of the model fit into the available memory;
            None if none does. Training also holds what is cut.
        keep_topics: Largest number of topics that documents can keep so that the training fits;
            None if not even one.
        memory: The available memory; None if unknown.
    """

    tokens: int
    nodes: tuple[NodePlan, ...]
    table_bytes: int
    stages: dict[str, int]
    seconds: dict[str, float]
    cutoff: float | None
    keep_topics: int | None
    memory: int | None

    @property
    def peak_bytes(self) -> int:
        """Peak memory."""
        return max(self.stages.values())

    @property
    def fits(self) -> bool:
        """Whether it fits."""
        return self.memory is None or self.peak_bytes <= self.memory


def plan_topics(
    text: EncodedText, words: int, config: PlsaConfig, *, memory: int | None = None
) -> MemoryPlan:
    """Return what a PLSA or n-gram/PLSA training on a text will take.

    Args:
        text: The text, as ids.
        words: Size of the vocabulary.
        config: Options.
        memory: Available memory in bytes.
    """
    places = _Positions.of(text, words)
    found = [(places.ngrams(0, width), places.ngrams(1, width)) for width in range(config.order)]
    nodes, table, stages = _sizes(text, words, config, found)
    tokens = len(text.ids) + len(text)
    seconds = {}
    if config.topics:
        pairs = int(found[0][0].documents.sum())
        seconds["plsa"] = pairs * config.topics / 200 / PLSA_PAIRS_A_SECOND
    if "em" in stages:
        seconds["em"] = tokens / EM_EVENTS_A_SECOND * config.kept / KEPT_TOPICS
    fitting = [
        keep
        for keep in sorted({keep for keep in COMPARED if keep <= config.topics})
        if memory is None
        or max(
            _sizes(text, words, config.model_copy(update={"keep_topics": keep}), found)[2].values()
        )
        <= memory
    ]
    cutoffs = [cut for cut, kept in KEPT_BY_CUTOFF if memory is None or table * kept <= memory]
    return MemoryPlan(
        tokens,
        tuple(nodes),
        table,
        stages,
        seconds,
        cutoff=cutoffs[0] if cutoffs else None,
        keep_topics=fitting[-1] if fitting else None,
        memory=memory,
    )


def _sizes(
    text: EncodedText, words: int, config: PlsaConfig, found: list[tuple[Sampled, Sampled]]
) -> tuple[list[NodePlan], int, dict[str, int]]:
    """Return types by node, bytes of all tables, and the peak memory of each stage."""
    nodes, stems = [], []
    topics = config.topics, config.kept
    for width, (event, context) in enumerate(found):
        size = StemSize(
            tuple(range(width)),
            event.types,
            context.types,
            event.topics(*topics),
            context.topics(*topics),
        )
        stems.append(size)
        nodes.append(NodePlan(width, topics=False, types=event.types))
        if config.topics:
            nodes.append(NodePlan(width, topics=True, types=size.topics))
    full = stems[-1].rows
    tokens = len(text.ids) + len(text)
    limits = [words + 2] * (config.order - 1) + ([config.topics] if config.topics else [])
    record = record_bytes(limits, words + 1)
    held = PROGRAM_BYTES + 4 * len(text.ids) + 12 * len(text)
    stages = {}
    if config.topics:
        stages["plsa"] = held + plsa_bytes(words, len(text.document_starts) - 1, config.topics)
        held += 8 * config.topics * (words + len(text.document_starts) - 1)
    rows = tokens * max(1, config.kept if config.topics else 1)
    stages["counting"] = held + max(
        collecting_peak(rows, full, record), building_peak(stems, stems, record)
    )
    table = sum(stem.bytes for stem in stems)
    if config.topics and config.order > 1 and config.iterations:
        # The tables after cutting are a second set; three sets of counts are held.
        copies = 2 if config.cutoff > 0 else 1
        stages["em"] = held + copies * table + 3 * 8 * full
    return nodes, table, stages


def plsa_bytes(words: int, documents: int, topics: int) -> int:
    """Return the memory of PLSA: p(w|g) three times, p(g|d) twice."""
    return 8 * topics * (3 * words + 2 * documents)


@dataclass(frozen=True)
class _Positions:
    """Every word and sentence end of a text: its id, its place in the sentence, its document."""

    ids: npt.NDArray[np.uint32]
    place: npt.NDArray[np.int32]
    document: npt.NDArray[np.int32]
    documents: int
    start: int

    @classmethod
    def of(cls, text: EncodedText, words: int) -> _Positions:
        starts = text.starts.astype(np.int64)
        sizes = sizes_between(text.starts) + 1
        document_sizes = sizes_between(text.document_starts)
        by_sentence = np.repeat(np.arange(len(document_sizes), dtype=np.int32), document_sizes)
        firsts = np.repeat((np.cumsum(sizes) - sizes).astype(np.int32), sizes)
        return cls(
            np.insert(text.ids, starts[1:], np.uint32(words)),
            np.arange(len(firsts), dtype=np.int32) - firsts,
            np.repeat(by_sentence, sizes),
            len(document_sizes),
            words + 1,
        )

    def back(self, steps: int) -> Ids:
        """Return the id a number of words back at every position."""
        if not steps:
            return self.ids
        ids = np.full(len(self.ids), self.start, dtype=np.uint32)
        ids[steps:] = np.where(self.place[steps:] >= steps, self.ids[:-steps], self.start)
        return ids

    def ngrams(self, first: int, last: int) -> Sampled:
        """Sample the words from `first` to `last` steps back; 0 is the predicted word."""
        steps = range(first, last + 1)
        columns = (self.back(step) for step in steps)
        return sample_types(columns, len(steps), self.document, self.documents)
