"""Mixtures of models whose weights are found on text that none of them was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import encode_text
from treelm.models.interface.incremental import BATCH, IncrementalModel
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.words import Words, check_vocabularies, words_of
from treelm.models.mixture.model import InterpolatedModel, InterpolatedSentences, interpolate
from treelm.models.mixture.weights import WeightFit, fit_weights


def train_interpolated(
    models: Sequence[LanguageModel], held_out: Iterable[Words], *, threads: int = 1
) -> InterpolatedModel | InterpolatedSentences:
    """Return the mixture whose weights make held-out text most likely.

    Args:
        models: The parts.
        held_out: Sentences none of them was trained on; a `TextCorpus` is read in documents.
        threads: Kernel threads; results do not depend on it.
    """
    check_vocabularies([model.vocabulary for model in models])
    fit = fit_interpolation(models, held_out, threads=threads)
    return interpolate(models, fit.weights, log_likelihood=fit.log_likelihoods[-1])


def fit_interpolation(
    models: Sequence[LanguageModel], held_out: Iterable[Words], *, threads: int = 1
) -> WeightFit:
    """Return the weights that make held-out text most likely, and how likely it became."""
    parts = [model for model in models if isinstance(model, IncrementalModel)]
    word_level = len(parts) == len(models)
    if word_level and isinstance(held_out, TextCorpus):
        text = encode_text(held_out, models[0].vocabulary, threads=threads)
        scores = [part.score_documents(text, threads=threads).log_probs for part in parts]
        return fit_weights(np.stack(scores, axis=-1))
    rest = iter(held_out)
    blocks: list[npt.NDArray[np.float64]] = [np.zeros((0, len(models)))]
    while batch := [words_of(sentence) for sentence in islice(rest, BATCH)]:
        columns = [
            model.score_batch(batch, threads=threads).log_probs
            if word_level and isinstance(model, IncrementalModel)
            else model.sentence_log_probs(batch, threads=threads)
            for model in models
        ]
        blocks.append(np.stack(columns, axis=-1))
    return fit_weights(np.concatenate(blocks))
