"""Minimum error rate training (Och 2003): weights that maximise the figure of what they choose.

Along a line through the space of weights the score of every hypothesis is a line too. The best
hypotheses of a sentence are the upper envelope of its lines; where it bends, the sum of the
statistics changes. So the figure is known everywhere on the line, and its best point exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.kernel_errors import kernel_errors
from treelm.seeds import generator
from treelm.translation.hypothesis_pool import HypothesisPool, Numbers, Places
from treelm.translation.metrics import Metric

#: Distance from the outermost bend that is gone where a best interval has no end.
BEYOND = 0.1
#: Smallest gain for which the search continues.
LEAST_GAIN = 1e-5
#: Random directions of each round.
RANDOM_DIRECTIONS = 5
#: Random points from which the search starts, besides the given and the uniform one.
RESTARTS = 20


class Bends(NamedTuple):
    """Where the best hypotheses of sentences change along a line, sentence by sentence unordered.

    Args:
        first: Best hypothesis of each sentence at minus infinity.
        gammas: Where each bend is.
        old: Best hypothesis before it.
        new: Best hypothesis after it.
    """

    first: Places
    gammas: Numbers
    old: Places
    new: Places


class BestPoint(NamedTuple):
    """The best point of a line.

    Args:
        gamma: Distance from where the line starts.
        value: The figure there.
    """

    gamma: float
    value: float


def upper_envelopes(offsets: Numbers, slopes: Numbers, starts: Places) -> Bends:
    """Return the bends of the upper envelopes of lines ``offset + gamma * slope``.

    Args:
        offsets: Of all lines.
        slopes: Of all lines.
        starts: Where each group of lines begins, and their number.
    """
    with kernel_errors("searching a line"):
        return Bends(*_native.upper_envelopes(offsets, slopes, starts))


def best_point(bends: Bends, statistics: npt.NDArray[np.int64], metric: Metric) -> BestPoint:
    """Return the best point of a line.

    It is in the middle of the best interval between bends; of equal ones of the widest, and then of
    the one closest to the start.
    """
    total = statistics[bends.first].sum(axis=0)
    if not len(bends.gammas):
        return BestPoint(0.0, float(metric.value(total)))
    order = np.argsort(bends.gammas, kind="stable")
    gammas = bends.gammas[order]
    changes = statistics[bends.new[order]] - statistics[bends.old[order]]
    # Bends at the same place are one.
    last = np.flatnonzero(np.r_[gammas[1:] != gammas[:-1], True])
    edges = gammas[last]
    sums = np.concatenate([total[None], total + np.cumsum(changes, axis=0)[last]])
    values = metric.value(sums)
    widths = np.r_[np.inf, np.diff(edges), np.inf]
    middles = np.r_[edges[0] - BEYOND, (edges[1:] + edges[:-1]) / 2, edges[-1] + BEYOND]
    best = np.lexsort((np.abs(middles), -widths, -values))[0]
    return BestPoint(float(middles[best]), float(values[best]))


def line_search(pool: HypothesisPool, offsets: Numbers, slopes: Numbers) -> BestPoint:
    """Return the best point of the line on which scores are ``offsets + gamma * slopes``."""
    bends = upper_envelopes(offsets, slopes, pool.starts)
    return best_point(bends, pool.statistics, pool.metric)


#: Searches lines, and gives what it found in the order of the lines.
_InOrder = Callable[[Callable[[int], BestPoint], Sequence[int]], Iterator[BestPoint]]


@dataclass(frozen=True, slots=True)
class Tuned:
    """Weights that were found.

    Args:
        weights: One for each value of the features.
        value: The figure of what they choose.
    """

    weights: Numbers
    value: float


def normalized(weights: Numbers, free: npt.NDArray[np.bool_]) -> Numbers:
    """Return weights of which the free ones have absolute values that sum to 1.

    Examples:
        >>> normalized(np.array([2.0, -2.0, 1.0]), np.array([True, True, False])).tolist()
        [0.5, -0.5, 1.0]
    """
    size = np.abs(weights[free]).sum()
    return np.where(free, weights / size, weights) if size > 0 else weights


def mert(
    pool: HypothesisPool,
    start: Numbers,
    *,
    seed: int,
    free: npt.NDArray[np.bool_] | None = None,
    restarts: int = RESTARTS,
    stream: int = 0,
    threads: int = 1,
) -> Tuned:
    """Return weights that maximise the figure of the hypotheses that they choose.

    Args:
        pool: The hypotheses.
        start: Weights from which the search starts.
        seed: Seed of directions and restarts.
        free: Which weights are moved; by default all.
        restarts: Number of random points from which the search starts again.
        stream: Tells calls with the same seed apart, such as the rounds of tuning.
        threads: Lines that are searched at a time; results do not depend on it.

    Returns:
        Normalized weights, never worse than the normalized start.
    """
    moved = np.ones(len(start), dtype=np.bool_) if free is None else free
    source = generator(seed, stream)
    columns = np.ascontiguousarray(pool.features.T)  # the slopes along every axis
    best: Tuned | None = None
    with ThreadPoolExecutor(threads) as executor:
        # One thread is this one: a second that works alone would only be in the way of Ctrl-C.
        in_order: _InOrder = executor.map if threads > 1 else map
        for point in _starting_points(pool, start, moved, restarts, source):
            found = _climb(pool, columns, point, moved, source, in_order=in_order)
            if best is None or found.value > best.value:
                best = found
    assert best is not None  # there is always the start
    return best


def _starting_points(
    pool: HypothesisPool,
    start: Numbers,
    free: npt.NDArray[np.bool_],
    restarts: int,
    source: np.random.Generator,
) -> Iterator[Numbers]:
    """Yield the given point, the uniform one, and random ones."""
    yield start
    yield np.where(free, 1.0, start)
    reach = np.array([3.0 if name.startswith("WordPenalty") else 1.0 for name in _names(pool)])
    for _ in range(restarts):
        yield np.where(free, reach * (2 * _uniform(source, len(start)) - 1), start)


def _names(pool: HypothesisPool) -> list[str]:
    return [name for name, count in pool.layout for _ in range(count)]


def _uniform(source: np.random.Generator, size: int) -> Numbers:
    """Return numbers in [0, 1), made from raw bits so that no version of numpy changes them."""
    raw = np.asarray(source.bit_generator.random_raw(size), dtype=np.uint64)
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _climb(
    pool: HypothesisPool,
    columns: Numbers,
    point: Numbers,
    free: npt.NDArray[np.bool_],
    source: np.random.Generator,
    *,
    in_order: _InOrder,
) -> Tuned:
    """Return the point that is reached by going along the best of some directions, repeatedly."""
    weights = normalized(point, free)
    value = pool.value(pool.chosen(weights))
    dimensions = np.flatnonzero(free)
    axes = list(np.eye(len(weights))[dimensions])
    while len(dimensions):
        offsets = pool.features @ weights
        random = np.zeros((RANDOM_DIRECTIONS, len(weights)))
        random[:, dimensions] = (
            2 * _uniform(source, RANDOM_DIRECTIONS * len(dimensions)).reshape(RANDOM_DIRECTIONS, -1)
            - 1
        )
        directions = [*axes, *random]

        def search(number: int, offsets: Numbers = offsets, random: Numbers = random) -> BestPoint:
            if number < len(axes):
                slopes = columns[dimensions[number]]
            else:
                slopes = pool.features @ random[number - len(axes)]
            return line_search(pool, offsets, slopes)

        points = list(in_order(search, range(len(directions))))
        found = _best_move(pool, points, weights, directions, free=free, value=value)
        if found is None:
            break
        gain = found.value - value
        weights, value = found.weights, found.value
        if gain < LEAST_GAIN:
            break
    return Tuned(weights, value)


def _best_move(
    pool: HypothesisPool,
    points: Sequence[BestPoint],
    weights: Numbers,
    directions: Sequence[Numbers],
    *,
    free: npt.NDArray[np.bool_],
    value: float,
) -> Tuned | None:
    """Return the best point on any line, None if none is better than the current one.

    What a line promises is looked at again with the weights themselves: an interval may be too
    narrow to be hit, and normalizing moves what is free against what is fixed.
    """
    order = sorted(range(len(points)), key=lambda place: -points[place].value)
    for place in order:
        if points[place].value <= value:
            break
        moved = normalized(weights + points[place].gamma * directions[place], free)
        reached = pool.value(pool.chosen(moved))
        if reached > value:
            return Tuned(moved, reached)
    return None
