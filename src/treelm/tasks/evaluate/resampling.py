"""Bootstrap resampling of items, and intervals.

Everything depends on the items, the number of rounds and the seed, never on the order of the items:
they are sorted first. Equal items are sampled together, as the count of each kind; that is the same
distribution, and a thousand times faster for right and wrong answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.errors import CorpusFormatError, UsageError

Numbers = npt.NDArray[np.float64]

#: Default number of bootstrap samples.
ROUNDS = 10_000

_FEW_KINDS = 64
_DRAWN_AT_ONCE = 1 << 22


class Interval(NamedTuple):
    """The range of a value in 95 of 100 cases."""

    low: float
    high: float


def checked_scores(values: Sequence[float] | npt.NDArray[np.generic], what: str) -> Numbers:
    """Return scores as an array; minus infinity is a score, NaN and infinity are not.

    Raises:
        CorpusFormatError: ``E_NAN``, naming the item; ``E_NO_DATA`` if there are none.
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1:
        raise ValueError(f"{what}: one number for each item is needed, not shape {scores.shape}")
    if not len(scores):
        raise CorpusFormatError(f"{what}: there is nothing to measure.", code="E_NO_DATA")
    wrong = np.flatnonzero(np.isnan(scores) | (scores == np.inf))
    if len(wrong):
        raise CorpusFormatError(
            f"{what}: the score of item {wrong[0] + 1} is {scores[wrong[0]]}; a score is a number "
            "or -inf. Something went wrong when it was made.",
            code="E_NAN",
        )
    return scores


def check_rounds(rounds: int) -> None:
    """Refuse a number of rounds that gives no result."""
    if rounds < 1:
        raise UsageError(f"the number of rounds is {rounds}; it must be 1 or more.")


def resampled_sums(items: Numbers, *, rounds: int, generator: np.random.Generator) -> Numbers:
    """Return the sums of bootstrap samples of the items.

    Args:
        items: One row per item, one column per quantity; values may be infinite.
        rounds: Number of samples.
        generator: Random number generator.

    Returns:
        One row per round; NaN where a sample has infinities of both signs.
    """
    infinite = ~np.isfinite(items).all(axis=0)
    marks = [items == sign for sign in (np.inf, -np.inf)]
    columns = [np.where(np.isfinite(items), items, 0.0), *(mark[:, infinite] for mark in marks)]
    drawn = _sums(np.concatenate(columns, axis=1, dtype=np.float64), rounds, generator)
    sums = drawn[:, : items.shape[1]]
    if infinite.any():
        high, low = np.split(drawn[:, items.shape[1] :] > 0, 2, axis=1)
        found = sums[:, infinite]
        found[high] = np.inf
        found[low] = -np.inf
        found[high & low] = np.nan
        sums[:, infinite] = found
    return sums


def _sums(items: Numbers, rounds: int, generator: np.random.Generator) -> Numbers:
    kinds, counts = np.unique(items, axis=0, return_counts=True)
    number = len(items)
    if len(kinds) <= _FEW_KINDS:
        drawn = generator.multinomial(number, counts / number, size=rounds)
        return drawn.astype(np.float64) @ kinds
    ordered = items[np.lexsort(items.T)]
    sums = np.empty((rounds, items.shape[1]))
    for first, places in drawn_places(number, rounds, generator):
        for column in range(items.shape[1]):
            sums[first : first + len(places), column] = ordered[:, column][places].sum(axis=1)
    return sums


def drawn_places(
    number: int, rounds: int, generator: np.random.Generator
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield (first round, places) with one row of `number` places below `number` per round."""
    at_once = max(1, _DRAWN_AT_ONCE // number)
    for first in range(0, rounds, at_once):
        size = min(at_once, rounds - first)
        yield first, random_places(number, size * number, generator).reshape(size, number)


def random_places(number: int, count: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return places below `number`, made from raw bits so that no version of numpy changes them."""
    raw = np.asarray(generator.bit_generator.random_raw((count + 1) // 2), dtype="<u8")
    halves = raw.view("<u4")[:count].astype(np.uint64)
    return ((halves * np.uint64(number)) >> np.uint64(32)).astype(np.int64)


def percentile_interval(values: Numbers) -> Interval:
    """Return the 2.5 and 97.5 percentiles, with linear interpolation between order statistics.

    Examples:
        >>> percentile_interval(np.arange(41.0))
        Interval(low=1.0, high=39.0)
    """
    ordered = np.sort(values)
    return Interval(_percentile(ordered, 0.025), _percentile(ordered, 0.975))


def _percentile(ordered: Numbers, share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    part = place - below
    # There is no point between an infinity and anything else.
    if part == 0 or low in (high, -math.inf):
        return low
    return high if high == math.inf else low + part * (high - low)


def check_defined(values: Numbers | float, statistic: str) -> None:
    """Refuse a statistic that is 0/0, or the difference of two infinities.

    Raises:
        CorpusFormatError: ``E_UNDEFINED``.
    """
    if np.isnan(values).any():
        raise CorpusFormatError(
            f"the difference in {statistic} is not defined: a difference of two infinities, or "
            "0/0. Does each system give some sentence a probability of 0? Then compare their "
            "choices, for example the accuracy on pairs.",
            code="E_UNDEFINED",
        )
