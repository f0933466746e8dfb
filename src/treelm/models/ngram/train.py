"""How an n-gram model is trained: encode, count, smooth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import encode_text
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError
from treelm.estimation.chain import ChainCounts, CountKind
from treelm.estimation.estimate import Base, NoBase, UniformBase, estimate
from treelm.estimation.jelinek_mercer import jelinek_mercer_weights
from treelm.estimation.kneser_ney import berkeley, kneser_ney, modified_kneser_ney
from treelm.estimation.smoothing import Smoothing
from treelm.events.counts import EventCounts, Ids
from treelm.models.interface.reduction import reduction_loss, text_bits_per_word
from treelm.models.interface.trained_model import corpus_name
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.counts import NgramCounts, encode_measured
from treelm.models.ngram.events import WordSpace, count_ngrams, ngram_chain
from treelm.models.ngram.model import NgramModel
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress


def train_ngram(
    corpus: TextCorpus | TreeCorpus,
    config: NgramConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TextCorpus | None = None,
    measure: TextCorpus | TreeCorpus | None = None,
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
        measure: Text on which to find out what pruning and quantising cost. The whole model is
            then estimated too, and ``config.loss`` is the answer.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used, beside that for the words of the text (four bytes
            each); results do not depend on it.
        progress: Told how far it is.

    Raises:
        UsageError: if ``jm`` has no held-out text, or another smoothing has one.
        EstimationError: ``E_NO_DATA`` for an empty text.
    """
    _check_held_out(config, held_out)
    counts = NgramCounts.count(
        corpus,
        config.order,
        vocabulary=vocabulary,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    return train_on_counts(
        counts,
        config,
        held_out=held_out,
        measure=measure,
        threads=threads,
        memory=memory,
        progress=progress,
    )


def train_on_counts(
    counts: NgramCounts,
    config: NgramConfig,
    *,
    held_out: TextCorpus | None = None,
    measure: TextCorpus | TreeCorpus | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> NgramModel:
    """Return an n-gram model of what was counted.

    Args:
        counts: The n-grams of a text.
        config: Options; the order must be that of the counts.
        held_out: Text on which ``jm`` finds its weights.
        measure: Text on which to find out what pruning and quantising cost. The whole model is
            then estimated too, and ``config.loss`` is the answer.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        progress: Told how far it is.

    Raises:
        UsageError: if the order differs, ``jm`` has no held-out text, or another smoothing has one.
    """
    _check_held_out(config, held_out)
    if config.order != counts.order:
        raise UsageError(f"these are counts of order {counts.order}, not {config.order}.")
    space = counts.space
    unseen = None
    if held_out is not None:
        encoded = encode_text(held_out, counts.vocabulary, threads=threads)
        unseen = count_ngrams(encoded, config.order, space, threads=threads)
    levels, smoothing, base = _smooth(
        counts.events, unseen, config, space, threads=threads, memory=memory
    )
    # What the table looks like and what was measured is added by those who make it so.
    plain = config.model_copy(update={"bits": None, "rounding": None, "loss": None})

    def model_of(smoothing: Smoothing) -> NgramModel:
        table = estimate(levels, smoothing, base, outcomes=space.outcomes, progress=progress)
        return NgramModel(table, counts.vocabulary, counts.unigrams, plain, list(counts.corpora))

    if measure is None or not (config.prunes or config.bits is not None):
        return _coded(model_of(smoothing), config, threads=threads, progress=progress)
    model = model_of(replace(smoothing, min_counts=()))
    measured = encode_measured(measure, counts.vocabulary, threads=threads, progress=progress)
    full = text_bits_per_word(model, measured, threads=threads)
    if config.prunes:
        del model  # the two tables need not be held at once
        model = model_of(smoothing)
    model = _coded(model, config, threads=threads, progress=progress)
    own = text_bits_per_word(model, measured, threads=threads)
    return model.with_loss(reduction_loss(corpus_name(measure), measured, full, own))


def _coded(
    model: NgramModel, config: NgramConfig, *, threads: int, progress: Progress
) -> NgramModel:
    if config.bits is None:
        return model
    return model.quantized(config.bits, threads=threads, progress=progress)


def _check_held_out(config: NgramConfig, held_out: TextCorpus | None) -> None:
    if (config.smoothing == "jm") != (held_out is not None):
        raise UsageError(
            "smoothing jm finds its weights on text that the counts have not seen: give one with "
            "--held-out. No other smoothing takes one."
        )


def _smooth(
    counts: EventCounts,
    held_out: EventCounts | None,
    config: NgramConfig,
    space: WordSpace,
    *,
    threads: int,
    memory: MemoryLimit | None,
) -> tuple[ChainCounts, Smoothing, Base]:
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
        assert held_out is not None  # train_on_counts has looked
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
