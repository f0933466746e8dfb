"""Perplexities, a word cache as a control, and linear mixtures of topic models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import EncodedText
from treelm.models.mixture.weights import fit_weights

Floats = npt.NDArray[np.float64]


def cache_scores(text: EncodedText, words: int) -> Floats:
    """Return the log of every word's share of its document so far, ends of sentences included.

    Half a count of the uniform distribution is added, so that the first word has a probability.
    """
    log_probs = np.empty(len(text.ids) + len(text))
    place = 0
    documents = set(text.document_starts.tolist())
    counts: dict[int, int] = {}
    total = 0
    for number, sentence in enumerate(text):
        if number in documents:
            counts, total = {}, 0
        for word in (*sentence.tolist(), words):
            share = (counts.get(word, 0) + 0.5 / (words + 1)) / (total + 0.5)
            log_probs[place] = np.log(share)
            place += 1
            counts[word] = counts.get(word, 0) + 1
            total += 1
    return log_probs


def perplexity(log_probs: Floats) -> float:
    """Return the perplexity, ends of sentences included."""
    return float(np.exp(-log_probs.mean()))


def mixtures(work: Path, size: int) -> Iterator[tuple[str, float, list[float]]]:
    """Yield linear mixtures of models of one part of the text, with weights from held-out text."""
    wanted = {
        "n-gram + PLSA": (f"ngram-{size}", f"plsa-{size}"),
        "n-gram + n-gram/PLSA": (f"ngram-{size}", f"composite-5-{size}"),
    }
    for name, parts in wanted.items():
        files = [work / f"scores-{part}.npz" for part in parts]
        if not all(file.exists() for file in files):
            continue
        stored = [np.load(file) for file in files]
        weights = np.array(
            fit_weights(np.stack([part["held_out"] for part in stored], axis=-1)).weights
        )
        test = np.exp(np.stack([part["test"] for part in stored], axis=-1)) @ weights
        yield name, perplexity(np.log(test)), weights.tolist()
