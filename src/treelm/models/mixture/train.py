"""Mixtures of models whose weights are found on text that none of them was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import encode_text, encode_written
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UsageError
from treelm.models.interface.incremental import BATCH, IncrementalModel
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.words import check_vocabularies
from treelm.models.mixture.config import InterpolatedConfig, MixtureOptions
from treelm.models.mixture.model import (
    InterpolatedModel,
    InterpolatedSentences,
    check_unknown_words,
    mixed,
)
from treelm.models.mixture.weights import WeightFit, fit_weights
from treelm.models.run import QUIET, Run


def train_interpolated(
    models: Sequence[LanguageModel],
    config: MixtureOptions,
    *,
    held_out: TextCorpus | None = None,
    run: Run = QUIET,
) -> InterpolatedModel | InterpolatedSentences:
    """Return a mixture, word by word if all parts go word by word, else sentence by sentence.

    Args:
        models: The parts, all with the same vocabulary.
        config: Options.
        held_out: Text that none of the parts was trained on, in documents, whose probability the
            weights make as large as possible.
        run: How the training is run.

    Raises:
        UsageError: unless weights are given or held-out text to find them on.
    """
    word_by_word = all(isinstance(model, IncrementalModel) for model in models)
    return _mixed(models, config, held_out, run, word_by_word=word_by_word)


def train_interpolated_sentences(
    models: Sequence[LanguageModel],
    config: MixtureOptions,
    *,
    held_out: TextCorpus | None = None,
    run: Run = QUIET,
) -> InterpolatedSentences:
    """Return a mixture of the probabilities of whole sentences.

    Args:
        models: The parts, all with the same vocabulary.
        config: Options.
        held_out: Text that none of the parts was trained on, whose probability the weights make as
            large as possible.
        run: How the training is run.

    Raises:
        UsageError: unless weights are given or held-out text to find them on.
    """
    mixture = _mixed(models, config, held_out, run, word_by_word=False)
    assert isinstance(mixture, InterpolatedSentences)  # what was asked for
    return mixture


def _mixed(
    models: Sequence[LanguageModel],
    config: MixtureOptions,
    held_out: TextCorpus | None,
    run: Run,
    *,
    word_by_word: bool,
) -> InterpolatedModel | InterpolatedSentences:
    if (config.weights is None) == (held_out is None):
        raise UsageError(
            "a mixture needs either weights, or held-out text on which they are found."
        )
    check_vocabularies([model.vocabulary for model in models])
    kind = InterpolatedModel if word_by_word else InterpolatedSentences
    if held_out is None:
        assert config.weights is not None  # one of the two is there
        return mixed(kind, models, InterpolatedConfig(weights=config.weights))
    fit = fit_interpolation(models, held_out, word_by_word=word_by_word, threads=run.threads)
    found = InterpolatedConfig(weights=fit.weights, log_likelihood=fit.log_likelihoods[-1])
    return mixed(kind, models, found)


def fit_interpolation(
    models: Sequence[LanguageModel],
    held_out: Iterable[Words],
    *,
    word_by_word: bool = True,
    threads: int = 1,
) -> WeightFit:
    """Return the weights that make held-out text most likely, and how likely it became.

    Args:
        models: The parts.
        held_out: Sentences that none of them was trained on; a `TextCorpus` is read in documents.
        word_by_word: Whether probabilities of words are mixed where all parts give them.
        threads: Number of threads.
    """
    check_vocabularies([model.vocabulary for model in models])
    check_unknown_words(models)
    parts = [model for model in models if isinstance(model, IncrementalModel)]
    word_level = word_by_word and len(parts) == len(models)
    if word_level and isinstance(held_out, TextCorpus):
        spells = any(model.spelling is not None for model in models)
        encode = encode_written if spells else encode_text
        text = encode(held_out, models[0].vocabulary, threads=threads)
        scores = [part.score_documents(text, threads=threads).log_probs for part in parts]
        return fit_weights(np.stack(scores, axis=-1))
    rest = sentences_of(held_out)
    blocks: list[npt.NDArray[np.float64]] = [np.zeros((0, len(models)))]
    while batch := list(islice(rest, BATCH)):
        columns = [
            model.score_batch(batch, threads=threads).log_probs
            if word_level and isinstance(model, IncrementalModel)
            else model.sentence_log_probs(batch, threads=threads)
            for model in models
        ]
        blocks.append(np.stack(columns, axis=-1))
    return fit_weights(np.concatenate(blocks))
