"""Executors: the same work, shard by shard, on one thread, in many processes or on a cluster.

A result never depends on the executor: shards are cut by size, not by number of workers, and
results come back in shard order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

S = TypeVar("S")
R = TypeVar("R")


@runtime_checkable
class Executor(Protocol):
    """Something that applies a pure function to shards."""

    name: str

    def map(self, function: Callable[[S], R], shards: Iterable[S]) -> Iterator[R]:
        """Yield ``function(shard)`` in shard order; the first failing shard's error is raised."""
        ...


class SerialExecutor:
    """Does everything in this process, one shard after the other.

    Examples:
        >>> list(SERIAL.map(len, ["one", "three"]))
        [3, 5]
    """

    name = "serial"

    def map(self, function: Callable[[S], R], shards: Iterable[S]) -> Iterator[R]:
        """Yield ``function(shard)`` in shard order."""
        for shard in shards:
            yield function(shard)

    def __repr__(self) -> str:
        return "SerialExecutor()"


#: The executor used where none is given.
SERIAL: Executor = SerialExecutor()
