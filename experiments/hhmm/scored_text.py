"""Scores of every word of a text, kept in files, and mixtures of two models."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from corpora import Places, Sentences

from treelm.models.interface.incremental import IncrementalModel
from treelm.models.mixture.weights import fit_weights

Numbers = npt.NDArray[np.float64]

ROUNDS = 1000


@dataclass(frozen=True)
class Scored:
    """A model's scores of the words and ends of sentences."""

    log_probs: Numbers
    starts: Places

    @property
    def sentences(self) -> Numbers:
        """Log probability of every sentence."""
        return np.add.reduceat(self.log_probs, self.starts[:-1])

    @property
    def lengths(self) -> Places:
        """Number of words of every sentence, its end included."""
        return np.diff(self.starts)

    @property
    def perplexity(self) -> float:
        """Per word and sentence end."""
        return math.exp(-self.log_probs.mean())

    def mixed(self, other: Scored, weight: float | Numbers) -> Scored:
        """Return the mixture with another model, which has the rest of the weight.

        Args:
            other: The other model, on the same text.
            weight: Weight of this model, one for all words or one for each.
        """
        with np.errstate(divide="ignore"):
            own, rest = np.log(weight), np.log(1 - np.asarray(weight))
        return Scored(np.logaddexp(self.log_probs + own, other.log_probs + rest), self.starts)

    def of_words(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return a selection of sentences as a selection of their words."""
        return np.repeat(chosen, self.lengths)

    def part(self, chosen: npt.NDArray[np.bool_]) -> Scored:
        """Return some of the sentences."""
        starts = np.concatenate([[0], np.cumsum(self.lengths[chosen])])
        return Scored(self.log_probs[self.of_words(chosen)], starts)

    def interval(self, blocks: Places, seed: int) -> tuple[float, float]:
        """Return the 95 % interval of the perplexity: a bootstrap over blocks of sentences."""
        groups = np.unique(blocks, return_inverse=True)[1]
        total = np.bincount(groups, self.sentences)
        size = np.bincount(groups, self.lengths)
        drawn = np.random.default_rng(seed).integers(0, len(total), (ROUNDS, len(total)))
        values = np.exp(-total[drawn].sum(axis=1) / size[drawn].sum(axis=1))
        low, high = np.percentile(values, [2.5, 97.5])
        return float(low), float(high)


def joined(texts: list[Scored]) -> Scored:
    """Return several texts as one."""
    lengths = np.concatenate([text.lengths for text in texts])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Scored(np.concatenate([text.log_probs for text in texts]), starts)


def best_weight(one: Scored, two: Scored) -> float:
    """Return the weight of the first of two models that makes a text most likely, by EM."""
    return fit_weights(np.stack([one.log_probs, two.log_probs], axis=1)).weights[0]


def crossed_weights(
    one: Scored, two: Scored, half: npt.NDArray[np.bool_]
) -> tuple[Numbers, tuple[float, float]]:
    """Return the weight of the first model for each word: the one that EM finds on the other half.

    Returns:
        One weight per word, and those found on the first and on the second half.
    """
    first = best_weight(one.part(~half), two.part(~half))
    second = best_weight(one.part(half), two.part(half))
    return np.where(one.of_words(half), first, second), (first, second)


def grid(one: Scored, two: Scored, step: float = 0.1) -> list[tuple[float, float]]:
    """Return the perplexities of mixtures by the weight of the first model."""
    weights = np.linspace(0.0, 1.0, round(1 / step) + 1)
    return [(round(float(w), 3), one.mixed(two, float(w)).perplexity) for w in weights]


def sentence_oracle(one: Scored, two: Scored) -> float:
    """Return the perplexity if the better of two models were known for every sentence."""
    best = np.maximum(one.sentences, two.sentences)
    return math.exp(-best.sum() / one.lengths.sum())


class ScoreFiles:
    """Scores of texts, each computed once, so that an interrupted run resumes.

    Args:
        folder: Folder of the files.
        threads: Number of threads.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._threads = folder, threads

    def scored(
        self, text: str, name: str, model: Callable[[], IncrementalModel], sentences: Sentences
    ) -> Scored:
        """Return a model's scores of sentences, from a file or by scoring them.

        Args:
            text: Name of the text.
            name: Name of the model.
            model: Returns the model, if it is needed.
            sentences: The text.
        """
        lengths = [len(words) + 1 for words in sentences]
        starts = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))])
        path = self._path(text, name)
        if not path.exists():
            asked = model()
            asked.reset_stats()
            began = time.process_time()
            found = asked.score_batch(sentences, threads=self._threads)
            seconds = time.process_time() - began
            partial = path.with_suffix(".partial.npz")
            np.savez(
                partial,
                log_probs=found.log_probs,
                seconds=seconds,
                restarts=asked.stats().get("dead_restarts", 0),
            )
            partial.rename(path)
            print(f"{text}: {name}, {len(found.log_probs)} words, {seconds:.0f} s", flush=True)
        with np.load(path) as kept:
            log_probs = kept["log_probs"]
        if len(log_probs) != starts[-1]:
            raise SystemExit(f"{path} is about another text; remove it or choose another --output")
        return Scored(log_probs, starts)

    def has(self, text: str, name: str) -> bool:
        """Return whether a text was already scored."""
        return self._path(text, name).exists()

    def facts(self, text: str, name: str) -> tuple[int, float, int]:
        """Return the words, processor seconds and restarts of a scored text."""
        with np.load(self._path(text, name)) as kept:
            return len(kept["log_probs"]), float(kept["seconds"]), int(kept["restarts"])

    def _path(self, text: str, name: str) -> Path:
        return self._folder / f"{text}.{name.replace(' ', '-').replace(',', '')}.npz"
