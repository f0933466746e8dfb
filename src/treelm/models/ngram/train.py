"""How an n-gram model is trained: encode, count, smooth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import EncodedText, encode_open, encode_text, encode_trees
from treelm.corpus.files import source_name
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, UsageError
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import ChainCounts, CountKind
from treelm.estimation.estimate import (
    Base,
    NoBase,
    Smoothing,
    UniformBase,
    berkeley,
    estimate,
    kneser_ney,
    modified_kneser_ney,
)
from treelm.estimation.jelinek_mercer import jelinek_mercer_weights
from treelm.events.counts import EventCounts, Ids
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.events import WordSpace, count_ngrams, ngram_chain
from treelm.models.ngram.model import NgramModel
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.manifest import TrainingCorpus


def train_ngram(
    corpus: TextCorpus | TreeCorpus,
    config: NgramConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TextCorpus | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> NgramModel:
    """Return an n-gram model of a text.

    Args:
        corpus: The text, or trees whose words it is.
        config: Options.
        vocabulary: The words to know; by default all words of the text.
        held_out: Text on which ``jm`` finds its weights.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used, beside that for the words of the text (four bytes
            each); results do not depend on it.
        progress: Told how far it is.

    Raises:
        UsageError: if ``jm`` has no held-out text, or another smoothing has one.
        EstimationError: ``E_NO_DATA`` for an empty text.
    """
    if (config.smoothing == "jm") != (held_out is not None):
        raise UsageError(
            "smoothing jm finds its weights on text that the counts have not seen: give one with "
            "--held-out. No other smoothing takes one."
        )
    vocabulary, text = _encode(corpus, vocabulary, threads=threads, progress=progress)
    space = WordSpace.of(vocabulary)
    counts = count_ngrams(
        text, config.order, space, threads=threads, memory=memory, progress=progress
    )
    unigrams = np.bincount(text.ids, minlength=space.words + 1).astype(np.uint64)
    unigrams[space.end] = len(text)
    record = _record(corpus, text)
    del text  # its memory is needed for the estimation
    unseen = None
    if held_out is not None:
        encoded = encode_text(held_out, vocabulary, threads=threads)
        unseen = count_ngrams(encoded, config.order, space, threads=threads)
    table = _estimate(
        counts, unseen, config, space, threads=threads, memory=memory, progress=progress
    )
    return NgramModel(table, vocabulary, unigrams, config, [record])


def _encode(
    corpus: TextCorpus | TreeCorpus,
    vocabulary: Vocabulary | None,
    *,
    threads: int,
    progress: Progress,
) -> tuple[Vocabulary, EncodedText]:
    if vocabulary is None:
        if isinstance(corpus, TreeCorpus):
            return encode_trees(corpus)
        return encode_open(corpus, threads=threads, progress=progress)

    def encode(*, training: bool) -> EncodedText:
        if isinstance(corpus, TreeCorpus):
            return encode_trees(corpus, vocabulary, training=training)[1]
        return encode_text(
            corpus, vocabulary, training=training, threads=threads, progress=progress
        )

    # Where the vocabulary was made from this very text by the streaming rule, words are unknown
    # up to the place at which they entered it.
    text = encode(training=True)
    if not len(text.ids):
        raise EstimationError("the text holds no words to train on.", code="E_NO_DATA")
    source = vocabulary.source
    same = (source.get("sentences"), source.get("tokens")) == (len(text), len(text.ids))
    if not same and any(item.entry is not None for item in vocabulary.entries):
        text = encode(training=False)
    return vocabulary, text


def _estimate(
    counts: EventCounts,
    held_out: EventCounts | None,
    config: NgramConfig,
    space: WordSpace,
    *,
    threads: int,
    memory: MemoryLimit | None,
    progress: Progress,
) -> BackoffTable:
    chain = ngram_chain(config.order, space)
    kind: CountKind = "tokens" if config.smoothing == "jm" else "types"
    least = config.min_counts()[::-1]
    levels = ChainCounts(
        counts, chain, counts=kind, keep_tokens=max(least) > 1, threads=threads, memory=memory
    )
    base: Base = UniformBase(space.predicted)
    if config.smoothing == "kn":
        smoothing = kneser_ney(levels, min_counts=least)
    elif config.smoothing == "mkn":
        smoothing = modified_kneser_ney(levels, lmplz=config.lmplz, min_counts=least)
    elif config.smoothing == "berkeley":
        smoothing, base = berkeley(levels, min_counts=least), NoBase()
    else:
        assert held_out is not None  # train_ngram has looked
        smoothing = _jelinek_mercer(levels, held_out, space, least)
    return estimate(levels, smoothing, base, outcomes=space.outcomes, progress=progress)


def _jelinek_mercer(
    levels: ChainCounts, held_out: EventCounts, space: WordSpace, least: tuple[int, ...]
) -> Smoothing:
    def uniform(rows: Ids) -> npt.NDArray[np.float64]:
        return np.full(len(rows), 1 / space.predicted)

    weights = jelinek_mercer_weights([(levels, held_out)], levels, uniform)
    return Smoothing(
        ((0.0, 0.0, 0.0),) * len(levels),
        weights=tuple(tuple(level.weights.tolist()) for level in weights),
        min_counts=least,
    )


def _record(corpus: TextCorpus | TreeCorpus, text: EncodedText) -> TrainingCorpus:
    fingerprint = text.fingerprint or corpus.fingerprint
    return TrainingCorpus(
        name=" ".join(source_name(path) for path in corpus.paths)[:1000],
        sha256=fingerprint.sha256,
        sentences=fingerprint.sentences,
        tokens=fingerprint.tokens,
    )
