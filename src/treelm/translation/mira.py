"""Batch MIRA on k-best lists (Cherry and Foster 2012): stable with many features.

For each sentence the weights are moved just as far as it takes to prefer a hypothesis that is good
and likely (the hope) to one that is bad and likely (the fear), by the difference of their BLEU, but
never further than a constant allows. BLEU of a single sentence is that of a pseudo-document to
which it is added: a decaying sum of what was chosen for the sentences before it. The weights of an
epoch are the mean over its sentences; the best epoch wins.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.kernel_errors import kernel_errors
from treelm.seeds import random_bits
from treelm.translation.hypothesis_pool import HypothesisPool, Numbers, Places
from treelm.translation.mert import Tuned, normalized

#: Largest step of all sentences of an epoch together; that of one is its share. Larger steps fit
#: these sentences better, and all others worse.
AGGRESSIVENESS = 10.0
#: Sums of the free weights at the beginning of each part of the epochs. Margins are in words of
#: BLEU: with small weights hope and fear are the best and the worst of a whole list, which corrects
#: weights that are quite wrong; with large ones they are among the likely hypotheses.
SCALES = (1.0, 3.0)
#: Share of the pseudo-document that is left after each sentence.
DECAY = 0.999
#: Passes over the sentences.
EPOCHS = 60


def mira(
    pool: HypothesisPool,
    start: Numbers,
    *,
    seed: int,
    free: npt.NDArray[np.bool_] | None = None,
    epochs: int = EPOCHS,
    aggressiveness: float = AGGRESSIVENESS,
    stream: int = 0,
) -> Tuned:
    """Return weights that prefer good hypotheses to bad ones by as much as they are better.

    Args:
        pool: The hypotheses.
        start: Weights from which the search starts.
        seed: Seed of the order of the sentences.
        free: Which weights are moved; by default all.
        epochs: Passes over the sentences.
        aggressiveness: Largest step of the sentences of an epoch together.
        stream: Tells calls with the same seed apart, such as the rounds of tuning.

    Returns:
        Normalized weights, never worse than the normalized start.
    """
    moved = np.ones(len(start), dtype=np.bool_) if free is None else free
    first = normalized(start, moved)
    best = Tuned(first, pool.value(pool.chosen(first)))
    weights = first
    part = -1
    with kernel_errors("MIRA"):
        lists = _native.MiraLists(
            pool.features.ravel(), pool.starts, pool.statistics.ravel(), metric=pool.metric.name
        )
    background = np.ones(pool.metric.columns)
    mobility = np.where(moved, _mobility(pool), 0.0)
    for epoch in range(epochs):
        if epoch * len(SCALES) // epochs != part:
            part = epoch * len(SCALES) // epochs
            weights = SCALES[part] * best.weights
        with kernel_errors("MIRA"):
            total, weights, background = lists.run_pass(
                weights,
                background,
                order=_order(pool.sentences, seed, stream * epochs + epoch),
                mobility=mobility,
                most_step=aggressiveness / pool.sentences,
                decay=DECAY,
            )
        mean = np.where(moved, normalized(total, moved), first)
        value = pool.value(pool.chosen(mean))
        if value > best.value:
            best = Tuned(mean, value)
    return best


def _mobility(pool: HypothesisPool) -> Numbers:
    """Return how readily each weight is moved: less the more its feature varies within lists.

    It is as if all features had been divided by their standard deviation. Otherwise those with
    large values, such as log probabilities, would be moved most, whether they help or not.
    """
    sizes = np.diff(pool.starts)
    means = np.add.reduceat(pool.features, pool.starts[:-1], axis=0) / sizes[:, None]
    variances = np.mean((pool.features - np.repeat(means, sizes, axis=0)) ** 2, axis=0)
    return np.where(variances > 0, 1 / np.where(variances > 0, variances, 1.0), 0.0)


def _order(number: int, seed: int, epoch: int) -> Places:
    """Return the places of sentences in the random order of an epoch."""
    # Sorted by random bits that depend on nothing but seed, epoch and place.
    keys = [random_bits(seed, epoch, place) for place in range(number)]
    return np.argsort(np.array(keys, dtype=np.uint64), kind="stable")
