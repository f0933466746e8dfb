"""How an n-gram model is trained: encode, count, smooth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import EncodedText, encode_open, encode_text, encode_trees
from treelm.corpus.files import source_name
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import CorpusFormatError, EstimationError, UsageError
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
from treelm.models.reduction import reduction_loss, text_bits_per_word
from treelm.parallel.progress import SILENT, Progress
from treelm.store.manifest import TrainingCorpus


def train_ngram(
    corpus: TextCorpus | TreeCorpus,
    config: NgramConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TextCorpus | None = None,
    measure: TextCorpus | TreeCorpus | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
) -> NgramModel:
    """Return an n-gram model of a text.

    Args:
        corpus: The text, or trees whose words it is.
        config: Options.
        vocabulary: The words to know; by default all words of the text.
        held_out: Text on which ``jm`` finds its weights.
        measure: Text on which to find out what pruning and quantising cost; the training corpus
            itself is not read again. The whole model is then estimated too, and ``config.loss``
            is the answer.
        threads: Kernel threads; results do not depend on it.
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
    measured = None
    if measure is not None and (config.prunes or config.bits is not None):
        measured = _encode_measured(
            measure, corpus, vocabulary, text, threads=threads, progress=progress
        )
    space = WordSpace.of(vocabulary)
    counts = count_ngrams(text, config.order, space, threads=threads, progress=progress)
    unseen = None
    if held_out is not None:
        encoded = encode_text(held_out, vocabulary, threads=threads)
        unseen = count_ngrams(encoded, config.order, space, threads=threads)
    levels, smoothing, base = _smooth(counts, unseen, config, space, threads=threads)
    unigrams = np.bincount(text.ids, minlength=space.words + 1).astype(np.uint64)
    unigrams[space.end] = len(text)
    record = _record(corpus, text)
    # What the table looks like and what was measured is added by those who make it so.
    plain = config.model_copy(update={"bits": None, "rounding": None, "loss": None})

    def model_of(smoothing: Smoothing) -> NgramModel:
        table = estimate(levels, smoothing, base, outcomes=space.outcomes, progress=progress)
        return NgramModel(table, vocabulary, unigrams, plain, [record])

    if measured is not None:
        model = model_of(replace(smoothing, min_counts=()))
        full = text_bits_per_word(model, measured, threads=threads)
        if config.prunes:
            del model  # the two tables need not be held at once
            model = model_of(smoothing)
    else:
        model = model_of(smoothing)
    if config.bits is not None:
        model = model.quantized(config.bits, threads=threads, progress=progress)
    if measure is None or measured is None:
        return model
    own = text_bits_per_word(model, measured, threads=threads)
    return model.with_loss(reduction_loss(_name(measure), measured, full, own))


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


def _encode_measured(
    measure: TextCorpus | TreeCorpus,
    corpus: TextCorpus | TreeCorpus,
    vocabulary: Vocabulary,
    text: EncodedText,
    *,
    threads: int,
    progress: Progress,
) -> EncodedText:
    """Return the text that is measured on as ids; the training text has been read already."""
    if measure is corpus:
        return text
    if isinstance(measure, TreeCorpus):
        return encode_trees(measure, vocabulary)[1]
    measured = encode_text(measure, vocabulary, threads=threads, progress=progress)
    if not len(measured):
        raise CorpusFormatError(
            f"{_name(measure)}: holds no sentence to measure on. Is it the right file?",
            code="E_NO_DATA",
        )
    return measured


def _smooth(
    counts: EventCounts,
    held_out: EventCounts | None,
    config: NgramConfig,
    space: WordSpace,
    *,
    threads: int,
) -> tuple[ChainCounts, Smoothing, Base]:
    chain = ngram_chain(config.order, space)
    kind: CountKind = "tokens" if config.smoothing == "jm" else "types"
    least = config.min_counts()[::-1]
    levels = ChainCounts(counts, chain, counts=kind, keep_tokens=max(least) > 1, threads=threads)
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
    return levels, smoothing, base


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


def _name(corpus: TextCorpus | TreeCorpus) -> str:
    """Return the names of the files of a corpus."""
    return " ".join(source_name(path) for path in corpus.paths)


def _record(corpus: TextCorpus | TreeCorpus, text: EncodedText) -> TrainingCorpus:
    fingerprint = text.fingerprint or corpus.fingerprint
    return TrainingCorpus(
        name=_name(corpus)[:1000],
        sha256=fingerprint.sha256,
        sentences=fingerprint.sentences,
        tokens=fingerprint.tokens,
    )
