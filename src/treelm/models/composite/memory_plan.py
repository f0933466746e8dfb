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
from treelm.models.composite.topic_config import TopicConfig

#: One n-gram in so many is looked at.
SAMPLE = 16
#: How much of its topics another document of an n-gram brings that those before did not have by
#: chance: documents with the same n-grams have the same topics more often than others. Measured.
NEW_TOPICS = 0.75
#: Share of the types that a cut-off keeps where a document keeps five topics. Measured.
KEPT_BY_CUTOFF = (
    (0.0, 1.0),
    (0.002, 0.62),
    (0.005, 0.56),
    (0.01, 0.52),
    (0.05, 0.40),
    (0.1, 0.34),
    (0.2, 0.27),
    (0.5, 0.17),
    (1.0, 0.08),
)
#: Events a second and core: PLSA (of one word in one document, for 200 topics) and one E-step.
PLSA_PAIRS_A_SECOND = 2.0e6
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
        cutoff: Smallest cut-off with which the peak fits into the memory there is; None if none
            does.
        memory: The memory there is; None if it is not known.
    """

    tokens: int
    nodes: tuple[NodePlan, ...]
    table_bytes: int
    peak_bytes: int
    plsa_seconds: float
    em_seconds: float
    cutoff: float | None
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
    events = [_ngrams(text, words, width, with_outcome=True) for width in range(config.order)]
    contexts = [_ngrams(text, words, width, with_outcome=False) for width in range(config.order)]
    nodes = []
    table = 0
    for width, (event, context) in enumerate(zip(events, contexts, strict=True)):
        topics, context_topics = event.topics(config), context.topics(config)
        nodes.append(NodePlan(width, topics=False, types=event.types))
        if config.topics:
            nodes.append(NodePlan(width, topics=True, types=topics))
        table += _bytes(width, event.types, context.types, topics, context_topics)
    tokens = len(text.ids) + len(text)
    held = 4 * len(text.ids) + 12 * len(text)
    full = nodes[-1].types
    record = 8 + 8 * max(1, -(-_key_bits(words, config) // 64))
    # Events are sorted in runs; two runs and their union are held when they are merged.
    sorting = 2 * record * full + record * min(full, 1 << 24)
    top = _bytes(
        config.order - 1,
        events[-1].types,
        contexts[-1].types,
        full if config.topics else 0,
        contexts[-1].topics(config),
    )
    plsa_bytes = 8 * config.topics * (3 * words + 2 * (len(text.document_starts) - 1))
    in_em = table + (3 * 8 * full if config.topics else 0)
    peak = held + plsa_bytes + max(sorting, record * full + top, in_em)
    pairs = int(events[0].documents.sum())
    plsa_seconds = pairs * config.topics / 200 / PLSA_PAIRS_A_SECOND
    em_seconds = tokens / EM_EVENTS_A_SECOND * max(1, config.kept) / 5 if config.topics else 0.0
    return MemoryPlan(
        tokens,
        tuple(nodes),
        table,
        peak,
        plsa_seconds,
        em_seconds,
        _smallest_cutoff(peak - held, held, memory),
        memory,
    )


def _smallest_cutoff(tables: int, held: int, memory: int | None) -> float | None:
    for cutoff, kept in KEPT_BY_CUTOFF:
        if memory is None or held + tables * kept <= memory:
            return cutoff
    return None


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


def _ngrams(text: EncodedText, words: int, width: int, *, with_outcome: bool) -> _Sampled:
    """Look at one in `SAMPLE` contexts of so many words, with what follows or without."""
    starts = text.starts.astype(np.int64)
    sizes = sizes_between(text.starts) + 1
    end = words
    ids = np.insert(text.ids, starts[1:], end).astype(np.uint64)
    place = np.arange(len(ids)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    document_sizes = sizes_between(text.document_starts)
    by_sentence = np.repeat(np.arange(len(document_sizes)), document_sizes)
    document = np.repeat(by_sentence, sizes)
    hashes = np.zeros(len(ids), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for back in range(0 if with_outcome else 1, width + 1):
            shifted = np.full(len(ids), words + 1, dtype=np.uint64)
            shifted[back:] = np.where(place[back:] >= back, ids[: len(ids) - back], words + 1)
            hashes = (hashes ^ shifted) + np.uint64(0x9E3779B97F4A7C15)
            hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            hashes ^= hashes >> np.uint64(27)
    # Single words are all looked at: the few frequent ones meet most topics.
    scale = 1 if width + with_outcome <= 1 else SAMPLE
    chosen = hashes % np.uint64(scale) == 0
    numbers = np.unique(hashes[chosen], return_inverse=True)[1].astype(np.int64)
    size = len(document_sizes)
    pairs = np.unique(numbers * size + document[chosen])
    documents = np.bincount(pairs // max(1, size)).astype(np.int64)
    return _Sampled(len(documents) * scale, documents, scale)
