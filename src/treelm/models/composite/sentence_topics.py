"""The topics of sentences in training: those their document keeps, or those it has so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.estimation.lattice import Floats
from treelm.kernel_errors import kernel_errors
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parsed_text import ParsedText
from treelm.models.composite.parts import CompositeParts, Counts, Mixtures
from treelm.models.plsa.em import (
    KeptTopics,
    corpus_topics,
    document_words,
    fit_plsa,
    keep_topics,
    start_plsa,
    with_shares,
)
from treelm.models.plsa.lattice import topic_text
from treelm.models.run import QUIET, Run


@dataclass(frozen=True, eq=False)
class TrainingTopics:
    """The topics of training documents.

    Args:
        kept: The few that each document keeps.
        sizes: Number of words and sentence ends of each document.
        topics: Number of all topics.
    """

    kept: KeptTopics
    sizes: npt.NDArray[np.int64]
    topics: int

    @property
    def prior(self) -> Floats:
        """Shares of all topics in the whole text."""
        return corpus_topics(self.kept, self.sizes, self.topics)

    def mixtures(self, text: ParsedText) -> Mixtures:
        """Return the topics of every sentence: those of its document."""
        width = self.kept.topics.shape[1]
        starts = np.arange(len(text) + 1, dtype=np.uint64) * np.uint64(width)
        rows = text.document_numbers
        topics, shares = self.kept.topics[rows], self.kept.shares[rows]
        return Mixtures(starts, topics.reshape(-1), shares.reshape(-1))

    def counted(self, text: ParsedText, counts: Counts) -> TrainingTopics:
        """Return the topics with new shares.

        Args:
            text: The sentences.
            counts: Expected number of words of each topic of each sentence, in fixed point.
        """
        width = self.kept.topics.shape[1]
        sums = np.zeros(self.kept.topics.shape, np.int64)
        np.add.at(sums, text.document_numbers, counts.reshape(-1, width))
        totals = np.maximum(sums.sum(axis=1, keepdims=True), 1)
        return replace(self, kept=with_shares(self.kept, sums / totals))


def first_topics(
    text: ParsedText,
    words: int,
    config: CompositeConfig,
    *,
    run: Run = QUIET,
) -> tuple[TrainingTopics, Floats]:
    """Return the topics of training documents, and p(w|g) of every word: PLSA.

    Args:
        text: The sentences.
        words: Number of words.
        config: Options.
        run: How the training is run.
    """
    counts = document_words(text.encoded, words)
    start = start_plsa(words, len(counts), config.topics, seed=config.seed)
    found = fit_plsa(counts, start, run=run)
    kept = keep_topics(found.document_topics, config.keep_topics)
    lengths = np.diff(text.starts).astype(np.int64) + 1
    sizes = np.bincount(text.document_numbers, lengths, minlength=len(counts)).astype(np.int64)
    return TrainingTopics(kept, sizes, config.topics), found.word_topics


def word_shares(text: ParsedText, mixtures: Mixtures, word_topics: Floats) -> Floats:
    """Return q(g|d,w) of every word for the topics of its sentence, one after the other.

    Args:
        text: The sentences.
        mixtures: Their topics, equally many for each.
        word_topics: p(w|g), one row per word, one column per topic.
    """
    sentences = np.repeat(np.arange(len(text)), np.diff(text.starts).astype(np.int64))
    topics, before = (
        array.reshape(len(text), -1)[sentences] for array in (mixtures.topics, mixtures.shares)
    )
    shares = before * word_topics[text.ids[:, np.newaxis], topics]
    sums = shares.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, shares / np.where(sums > 0, sums, 1), before)
    return np.ascontiguousarray(shares.reshape(-1))


def topics_so_far(
    text: ParsedText,
    prior: Floats,
    word_topics: Floats,
    config: CompositeConfig,
    *,
    threads: int = 1,
) -> Mixtures:
    """Return the topics before every sentence of documents that PLSA alone reads word by word."""
    encoded = text.encoded
    with kernel_errors("reading held-out documents"):
        rows = _native.topics_so_far(
            topic_text(encoded.ids, encoded.starts, encoded.document_starts, 1, len(word_topics)),
            word_topics,
            prior,
            rate=config.rate,
            threads=threads,
        )
    return largest_of(rows, config.predicting)


def model_topics(
    parts: CompositeParts, text: ParsedText, prior: Floats, *, threads: int
) -> Mixtures:
    """Return the topics before every sentence of documents that the model reads word by word."""
    config = parts.shape.config
    with kernel_errors("reading held-out documents"):
        _, rows = parts.search.score_documents(
            text.ids,
            text.starts,
            text.encoded.document_starts,
            prior,
            rate=config.rate,
            keep=config.predicting,
            threads=threads,
        )
    return largest_of(rows, config.predicting)


def largest_of(rows: Floats, keep: int) -> Mixtures:
    """Return the largest topics of every row, with shares that sum to 1 again."""
    kept = keep_topics(rows, keep)
    starts = np.arange(len(rows) + 1, dtype=np.uint64) * np.uint64(keep)
    return Mixtures(starts, kept.topics.reshape(-1), np.ascontiguousarray(kept.shares.reshape(-1)))
