"""Random choices of one sentence, each from the next number of its stream."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeVar

from treelm.seeds import random_uniform

T = TypeVar("T")


class Draws:
    """Random choices that depend on (seed, stream) and on those made before.

    Args:
        seed: Seed of the run.
        stream: Number of the sentence.

    Examples:
        >>> first, second = Draws(1, 7), Draws(1, 7)
        >>> [first.below(10) for _ in range(5)] == [second.below(10) for _ in range(5)]
        True
    """

    __slots__ = ("_counter", "_seed", "_stream")

    def __init__(self, seed: int, stream: int) -> None:
        self._seed = seed
        self._stream = stream
        self._counter = 0

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to `bound` - 1."""
        value = random_uniform(self._seed, self._stream, self._counter)
        self._counter += 1
        return int(value * bound)

    def one_of(self, items: Sequence[T]) -> T:
        """Return one of the items, all with the same probability."""
        return items[self.below(len(items))]

    def weighted(self, cumulative: Sequence[int]) -> int:
        """Return the index of an item; `cumulative` are the running sums of the weights."""
        return bisect_right(cumulative, self.below(cumulative[-1]))
