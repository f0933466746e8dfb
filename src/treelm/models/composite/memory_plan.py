"""What a training will take, before it begins: types, bytes, time, and what fits.

Types are counted on a sample of the n-grams of the text, chosen by a hash, so that one pass over
the text is enough. How many topics an n-gram meets is not known before PLSA; it is estimated from
the number of documents the n-gram stands in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import EncodedText, sizes_between
from treelm.models.composite.topic_config import KEPT_TOPICS, TopicConfig

#: One n-gram in so many is looked at.
SAMPLE = 16
#: How much of its topics another document of an n-gram brings that those before did not have by
#: chance: documents with the same n-grams have the same topics more often than others. Measured.
NEW_TOPICS = 0.75
#: Share of the types that a cut-off keeps: 3-grams, 200 topics of which a document keeps five, one
#: document in 64 of the experiment with topics. Measured.
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
#: Numbers of topics that a document may keep, for the question which fit.
COMPARED = (1, 2, 5, 10, 20, 50, 100, 200)
#: Events a second and core: PLSA (of one word in one document, for 200 topics) and one E-step.
PLSA_PAIRS_A_SECOND = 4.0e6
EM_EVENTS_A_SECOND = 2.0e5


@dataclass(frozen=True)
class NodePlan:
    """One node of the lattice: words and topics that it looks at, and its types."""

    words: int
    topics: bool
    types: int


@dataclass(frozen=True)
class MemoryPlan:
    """What a training will take.

    Args:
        tokens: Words and sentence ends of the text.
        nodes: Types by node.
        table_bytes: Of all tables.
        peak_bytes: Most that is held at once: while events are sorted, or in EM.
        plsa_seconds: One iteration of PLSA, on one core.
        em_seconds: One iteration of EM, on one core.
        cutoff: Smallest cut-off with which the tables of the model fit into the memory there is;
            None if none does. Training holds what is cut, too.
        keep_topics: Most topics that documents can keep so that the training fits; None if not even
            one.
        memory: The memory there is; None if it is not known.
    """

    tokens: int
    nodes: tuple[NodePlan, ...]
    table_bytes: int
    peak_bytes: int
    plsa_seconds: float
    em_seconds: float
    cutoff: float | None
    keep_topics: int | None
    memory: int | None

    @property
    def fits(self) -> bool:
        """Whether it fits as it is."""
        return self.memory is None or self.peak_bytes <= self.memory


@dataclass(frozen=True)
class _Sampled:
    """N-grams of one width: how many, and in how many documents each."""

    types: int
    documents: npt.NDArray[np.int64]
    scale: int

    def topics(self, config: TopicConfig) -> int:
        """Return how many pairs of an n-gram and a topic there will be."""
        if not config.topics:
            return 0
        more = 1 + NEW_TOPICS * (self.documents - 1)
        distinct = config.topics * (1 - (1 - config.kept / config.topics) ** more)
        return int(distinct.sum() * self.scale)


def plan_topics(
    text: EncodedText, words: int, config: TopicConfig, *, memory: int | None = None
) -> MemoryPlan:
    """Return what a PLSA or n-gram/PLSA training on a text will take.

    Args:
        text: The text, as ids.
        words: Words of the vocabulary.
        config: Options.
        memory: Memory that there is, in bytes.
    """
    places = _Positions.of(text, words)
    found = [
        (places.ngrams(width, with_outcome=True), places.ngrams(width, with_outcome=False))
        for width in range(config.order)
    ]
    nodes, table, peak = _sizes(text, words, config, found)
    tokens = len(text.ids) + len(text)
    pairs = int(found[0][0].documents.sum())
    share = max(1, config.kept) / KEPT_TOPICS
    fitting = [
        keep
        for keep in sorted({keep for keep in COMPARED if keep <= config.topics})
        if memory is None
        or _sizes(text, words, config.model_copy(update={"keep_topics": keep}), found)[2] <= memory
    ]
    cutoffs = [cut for cut, kept in KEPT_BY_CUTOFF if memory is None or table * kept <= memory]
    return MemoryPlan(
        tokens,
        tuple(nodes),
        table,
        peak,
        plsa_seconds=pairs * config.topics / 200 / PLSA_PAIRS_A_SECOND,
        em_seconds=tokens / EM_EVENTS_A_SECOND * share if config.topics else 0.0,
        cutoff=cutoffs[0] if cutoffs else None,
        keep_topics=fitting[-1] if fitting else None,
        memory=memory,
    )


def _sizes(
    text: EncodedText, words: int, config: TopicConfig, found: list[tuple[_Sampled, _Sampled]]
) -> tuple[list[NodePlan], int, int]:
    """Return types by node, bytes of all tables, and the most bytes that are held at once."""
    nodes, stems = [], []
    for width, (event, context) in enumerate(found):
        topics = event.topics(config)
        nodes.append(NodePlan(width, topics=False, types=event.types))
        if config.topics:
            nodes.append(NodePlan(width, topics=True, types=topics))
        sizes = event.types, context.types, topics, context.topics(config)
        stems.append(_bytes(width, *sizes))
    full = nodes[-1].types
    record = 8 + 8 * max(1, -(-_key_bits(words, config) // 64))
    # Two runs of sorted events and their union are held when they are merged, then the events and
    # the tables of the last node, then all tables and in EM three sets of counts.
    sorting = 2 * record * full + record * min(full, 1 << 24)
    in_em = sum(stems) + (3 * 8 * full if config.topics else 0)
    held = 4 * len(text.ids) + 12 * len(text)
    held += 8 * config.topics * (3 * words + 2 * (len(text.document_starts) - 1))
    return nodes, sum(stems), held + max(sorting, record * full + stems[-1], in_em)


def _key_bits(words: int, config: TopicConfig) -> int:
    word = (words + 2).bit_length()
    return config.order * word + max(0, config.topics - 1).bit_length()


def _bytes(width: int, entries: int, contexts: int, topics: int, context_topics: int) -> int:
    """Return the bytes of the tables of one stem; see native/core/lattice_tables.h."""
    slots = 1 << int(contexts + contexts // 2).bit_length()
    size = entries * (4 + 8) + contexts * (4 * width + 8 + 8) + 4 * slots
    if topics:
        size += 4 * (entries + contexts) + (2 + 8) * (topics + context_topics)
    return size


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

    def back(self, steps: int) -> npt.NDArray[np.uint32]:
        """Return the id so many words back at every position."""
        if not steps:
            return self.ids
        ids = np.full(len(self.ids), self.start, dtype=np.uint32)
        ids[steps:] = np.where(self.place[steps:] >= steps, self.ids[:-steps], self.start)
        return ids

    def ngrams(self, width: int, *, with_outcome: bool) -> _Sampled:
        """Look at contexts of so many words, with what follows or without; one in `SAMPLE`."""
        columns = range(0 if with_outcome else 1, width + 1)
        if not columns:  # the context without words is one, and stands everywhere
            return _Sampled(1, np.array([self.documents]), 1)
        if len(columns) == 1:  # single words are all looked at: the frequent ones meet most topics
            return self._count(self.back(columns[0]).astype(np.int64), self.document, 1)
        hashes = np.zeros(len(self.ids), dtype=np.uint64)
        with np.errstate(over="ignore"):
            for steps in columns:
                hashes ^= self.back(steps)
                hashes += np.uint64(0x9E3779B97F4A7C15)
                hashes ^= hashes >> np.uint64(30)
                hashes *= np.uint64(0xBF58476D1CE4E5B9)
                hashes ^= hashes >> np.uint64(27)
        chosen = hashes % np.uint64(SAMPLE) == 0
        numbers = np.unique(hashes[chosen], return_inverse=True)[1].astype(np.int64)
        return self._count(numbers, self.document[chosen], SAMPLE)

    def _count(
        self, numbers: npt.NDArray[np.int64], document: npt.NDArray[np.int32], scale: int
    ) -> _Sampled:
        pairs = np.unique(numbers * self.documents + document)
        documents = np.bincount(pairs // max(1, self.documents)).astype(np.int64)
        documents = documents[documents > 0]
        return _Sampled(len(documents) * scale, documents, scale)
