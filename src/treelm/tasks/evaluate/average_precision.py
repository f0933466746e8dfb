"""Average precision: how high a ranking puts the good sentences.

Precision is interpolated at the recalls 0, 0.1, ..., 1 and averaged. It is taken only where a run
of equal scores ends, so the order of the input never matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from treelm.errors import CorpusFormatError
from treelm.tasks.evaluate.resampling import Numbers, drawn_places

LEVELS = 11


def average_precision(good: Numbers, bad: Numbers) -> float:
    """Return the average precision of scores, where good sentences should have the higher ones.

    Args:
        good: Scores of the good sentences.
        bad: Scores of the others.

    Raises:
        CorpusFormatError: ``E_NO_DATA`` if there are no good sentences.

    Examples:
        >>> round(average_precision(np.array([3.0, 1.0]), np.array([2.0])), 6)
        0.848485
        >>> average_precision(np.array([0.0, 0.0]), np.array([0.0, 0.0]))
        0.5
    """
    ranking = _Ranking(good, bad)
    weights = np.ones((1, ranking.number), dtype=np.int64)
    return float(ranking.precision(weights[:, : len(good)], weights[:, len(good) :])[0])


def resampled_average_precision(
    systems: list[tuple[Numbers, Numbers]], *, rounds: int, generator: np.random.Generator
) -> Numbers:
    """Return average precisions of bootstrap samples, drawn within each class.

    Args:
        systems: Scores of the good and of the other sentences, by each of some systems; all
            get the same samples.
        rounds: Number of samples.
        generator: Random number generator.

    Returns:
        One row per system, one column per round.
    """
    order = [np.lexsort([system[kind] for system in systems]) for kind in (0, 1)]
    rankings = [_Ranking(good[order[0]], bad[order[1]]) for good, bad in systems]
    found = np.empty((len(systems), rounds))
    done = 0
    for good, bad in _drawn_weights(len(order[0]), len(order[1]), rounds, generator):
        for row, ranking in enumerate(rankings):
            found[row, done : done + len(good)] = ranking.precision(good, bad)
        done += len(good)
    return found


def _drawn_weights(
    good: int, bad: int, rounds: int, generator: np.random.Generator
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield how often each sentence was sampled, for some rounds at a time."""
    at_once = max(1, (1 << 21) // (good + bad))
    edges = [*range(0, rounds, at_once), rounds]
    for first, last in pairwise(edges):
        yield _counts(good, last - first, generator), _counts(bad, last - first, generator)


def _counts(number: int, rounds: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    counts = np.zeros((rounds, number), dtype=np.int64)
    if number:
        for first, places in drawn_places(number, rounds, generator):
            size = len(places)
            flat = (places + np.arange(size)[:, None] * number).ravel()
            counts[first : first + size] = np.bincount(flat, minlength=size * number).reshape(
                size, number
            )
    return counts


class _Ranking:
    """Sentences by descending score, ready to be weighted repeatedly."""

    def __init__(self, good: Numbers, bad: Numbers) -> None:
        if not len(good):
            raise CorpusFormatError(
                "there are no good sentences, so there is no average precision.", code="E_NO_DATA"
            )
        scores = np.concatenate([good, bad])
        self.number = len(scores)
        self.order = np.argsort(-scores, kind="stable")
        ordered = scores[self.order]
        self.is_good = self.order < len(good)
        self.ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], [True]))

    def precision(
        self, good: npt.NDArray[np.int64], bad: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Return the average precision for each row of weights."""
        weights = np.concatenate([good, bad], axis=1, dtype=np.int32)[:, self.order]
        seen = np.cumsum(weights, axis=1)
        hits = np.cumsum(weights * self.is_good, axis=1)
        if len(self.ends) < self.number:
            seen, hits = seen[:, self.ends], hits[:, self.ends]
        # Nothing sampled so far: no precision, and never a maximum.
        precision = hits / np.maximum(seen, 1)
        best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        # Smallest number of hits for each recall, in whole numbers: 10 hits >= level * total.
        total = int(hits[0, -1])
        needed = [-(-level * total // 10) for level in range(LEVELS)]
        return np.array(
            [
                row[np.searchsorted(found, needed)].mean()
                for row, found in zip(best, hits, strict=True)
            ]
        )
