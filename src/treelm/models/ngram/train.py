"""How an n-gram model is trained: encode, count, smooth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import encode_text
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError, flag, option
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
from treelm.models.run import QUIET, Run


def train_ngram(
    corpus: TextCorpus | TreeCorpus | NgramCounts,
    config: NgramConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TextCorpus | None = None,
    measure: TextCorpus | None = None,
    no_measure: bool = False,
    run: Run = QUIET,
) -> NgramModel:
    """Return an n-gram model of a text.

    Args:
        corpus: The text, trees whose words are the text, or counts. Of counts the order is that of
            the model, unless another one is asked for, which is refused.
        config: Options.
        vocabulary: Vocabulary file. Default: all words of the text.
        held_out: Text on which smoothing jm finds its weights.
        measure: With min_count or bits: text on which bits per word and perplexity of the whole
            model, which is estimated too for this, and of the smaller one are measured. Default:
            the training text.
        no_measure: Do not measure what min_count and bits cost, which saves time and memory.
        run: How the training is run; whatever the memory limit, the words of the text are in
            memory, four bytes each.

    Raises:
        UsageError: if options and inputs do not fit together.
        EstimationError: ``E_NO_DATA`` for an empty text.
    """
    if config.smoothing == "arpa":
        raise UsageError(
            'smoothing "arpa" marks models that were read from an ARPA file; to train one, choose '
            "kn, mkn, jm or berkeley."
        )
    _check_measure(config, measure, no_measure=no_measure)
    # Memory is used again within the training; under a limit, what is in use must be known.
    kept = None if run.memory else _native.KeptBlocks()
    if isinstance(corpus, NgramCounts):
        if vocabulary is not None:
            raise UsageError("counts have their vocabulary already; they cannot be given another.")
        counts, own = corpus, False
        if "order" not in config.model_fields_set:
            config = config.model_copy(update={"order": counts.order})
        measured: TextCorpus | TreeCorpus | None = measure
    else:
        _check_held_out(config, held_out)
        own = True
        counts = NgramCounts.count(
            corpus,
            config.order,
            vocabulary=vocabulary,
            threads=run.threads,
            memory=run.memory,
            progress=run.progress,
        )
        measured = None if no_measure else measure or corpus
    model = _train_on_counts(counts, config, held_out=held_out, measure=measured, own=own, run=run)
    del kept
    return model


def _check_measure(config: NgramConfig, measure: TextCorpus | None, *, no_measure: bool) -> None:
    if measure is None and not no_measure:
        return
    if measure is not None and no_measure:
        raise UsageError(f"{option('measure')} and {flag('no_measure')} cannot be combined.")
    if not config.prunes and config.bits is None:
        raise UsageError(
            f"{option('measure')} and {flag('no_measure')} are about what "
            f"{option('min_count')} and {option('bits')} cost; give one of these. "
            "`treelm evaluate perplexity` measures any model."
        )


def _train_on_counts(
    counts: NgramCounts,
    config: NgramConfig,
    *,
    held_out: TextCorpus | None,
    measure: TextCorpus | TreeCorpus | None,
    own: bool,
    run: Run,
) -> NgramModel:
    """Return the model of counts; where `measure` is given, ``config.loss`` says what was lost.

    Args:
        counts: The counts; their events are used up where they are `own`.
        config: Options.
        held_out: Text on which smoothing jm finds its weights.
        measure: Text to measure on.
        own: Whether nobody else needs the counts.
        run: How the training is run.
    """
    _check_held_out(config, held_out)
    if config.order != counts.order:
        raise UsageError(f"these are counts of order {counts.order}, not {config.order}.")
    space = counts.space
    unseen = None
    if held_out is not None:
        encoded = encode_text(held_out, counts.vocabulary, threads=run.threads)
        unseen = count_ngrams(encoded, config.order, space, threads=run.threads)
    levels, smoothing, base = _smooth(counts.events, unseen, config, space, run, own=own)
    # What the table looks like and what was measured is added by those who make it so.
    plain = config.model_copy(
        update={"bits": None, "layout": "hashed", "rounding": None, "loss": None}
    )

    def model_of(smoothing: Smoothing, *, again: bool = False) -> NgramModel:
        table = estimate(
            levels,
            smoothing,
            base,
            outcomes=space.outcomes,
            use_up=not again,
            progress=run.progress,
        )
        return NgramModel(table, counts.vocabulary, counts.unigrams, plain, list(counts.corpora))

    if measure is None or not (config.prunes or config.bits is not None):
        return _coded(model_of(smoothing), config, run)
    model = model_of(replace(smoothing, min_counts=()), again=config.prunes)
    measured = encode_measured(
        measure, counts.vocabulary, threads=run.threads, progress=run.progress
    )
    full = text_bits_per_word(model, measured, threads=run.threads)
    if config.prunes:
        del model  # the two tables need not be held at once
        model = model_of(smoothing)
    model = _coded(model, config, run)
    reduced = text_bits_per_word(model, measured, threads=run.threads)
    return model.with_loss(reduction_loss(corpus_name(measure), measured, full, reduced))


def _coded(model: NgramModel, config: NgramConfig, run: Run) -> NgramModel:
    if config.bits is not None:
        model = model.quantized(config.bits, threads=run.threads, progress=run.progress)
    if config.layout in ("hashed", model.layout):
        return model
    return model.compacted(memory=run.memory, progress=run.progress)


def _check_held_out(config: NgramConfig, held_out: TextCorpus | None) -> None:
    if (config.smoothing == "jm") != (held_out is not None):
        raise UsageError(
            "smoothing jm finds its weights on text that the counts have not seen: give one with "
            f"{option('held_out')}. No other smoothing takes one."
        )


def _smooth(
    counts: EventCounts,
    held_out: EventCounts | None,
    config: NgramConfig,
    space: WordSpace,
    run: Run,
    *,
    own: bool,
) -> tuple[ChainCounts, Smoothing, Base]:
    chain = ngram_chain(config.order, space)
    kind: CountKind = "tokens" if config.smoothing == "jm" else "types"
    least = config.min_counts()[::-1]
    levels = ChainCounts(
        counts,
        chain,
        counts=kind,
        keep_tokens=max(least) > 1,
        threads=run.threads,
        memory=run.memory,
        # Jelinek-Mercer looks up the counts of the events of another text.
        outcomes=None if config.smoothing == "jm" else space.outcomes,
        use_up=own,
    )
    base: Base = UniformBase(space.predicted)
    if config.smoothing == "kn":
        smoothing = kneser_ney(levels, min_counts=least)
    elif config.smoothing == "mkn":
        smoothing = modified_kneser_ney(levels, lmplz=config.lmplz, min_counts=least)
    elif config.smoothing == "berkeley":
        smoothing, base = berkeley(levels, min_counts=least), NoBase()
    else:
        assert held_out is not None  # _train_on_counts has looked
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
