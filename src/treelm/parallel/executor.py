"""Executors: the same work, shard by shard, in this process, in many processes or on a cluster.

A result never depends on the executor: shards are cut by size, not by number of workers, and
results come back in shard order.
"""

from __future__ import annotations

import os
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, get_args, runtime_checkable

from treelm.errors import UsageError, option
from treelm.parallel.holders import Holders, HoldersHere, Maker

if TYPE_CHECKING:
    from treelm.parallel.metrics import Metrics

S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")

#: What can do the work.
Engine = Literal["serial", "processes", "ray"]

#: More workers than any cluster that was ever asked.
MAX_WORKERS = 100_000

#: How often a shard is given to another worker after the death of the one that had it.
RETRIES = 3


@runtime_checkable
class Executor(Protocol):
    """Something that applies a pure function to shards; used in a ``with`` statement.

    Workers other than this process get function, shards and results by pickle. The function is sent
    to each of them once and stays there while it is mapped, so it may hold what is large, such as a
    model.
    """

    name: str

    @property
    def threads(self) -> int | None:
        """Threads that each worker uses; None where this process does the work, with its own."""
        ...

    observer: Metrics | None
    """Is told what the work of others takes."""

    def map(self, function: Callable[[S], R], shards: Iterable[S]) -> Iterator[R]:
        """Yield ``function(shard)`` in shard order; the first failing shard's error is raised."""
        ...

    def hold(self, makers: Sequence[Maker]) -> AbstractContextManager[Holders[Any, Any]]:
        """Give holders that functions which are mapped may ask, until the end of the context."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class SerialExecutor:
    """Does everything in this process, one shard after the other.

    Examples:
        >>> list(SERIAL.map(len, ["one", "three"]))
        [3, 5]
    """

    name = "serial"
    threads = None
    observer: Metrics | None = None

    def map(self, function: Callable[[S], R], shards: Iterable[S]) -> Iterator[R]:
        """Yield ``function(shard)`` in shard order."""
        for shard in shards:
            yield function(shard)

    def hold(self, makers: Sequence[Maker]) -> AbstractContextManager[Holders[Any, Any]]:
        """Give holders that functions which are mapped may ask."""
        return held_here(makers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is left to end."""

    def __repr__(self) -> str:
        return "SerialExecutor()"


#: The executor used where none is given.
SERIAL: Executor = SerialExecutor()


def executor(
    engine: Engine = "serial",
    *,
    workers: int | None = None,
    address: str | None = None,
    threads: int = 1,
) -> Executor:
    """Return what does the work; use it in a ``with`` statement, which ends its workers.

    Args:
        engine: ``serial`` is this process, ``processes`` are others on this machine, ``ray`` is a
            Ray cluster.
        workers: Number of workers; by default the cores of this machine, or of the cluster.
        address: The Ray cluster to join: ``HOST:PORT``, or ``auto`` for the one that runs on this
            machine; by default one is started, and ended afterwards.
        threads: Number of threads that each worker uses.

    Raises:
        UsageError: for an unknown engine, or options that it does not take.

    Examples:
        >>> with executor("serial") as engine:
        ...     list(engine.map(abs, [-1, 2]))
        [1, 2]
    """
    if engine not in get_args(Engine):
        choices = ", ".join(get_args(Engine))
        raise UsageError(f"{option('engine')} {engine}: choose one of {choices}.")
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise UsageError(f"{option('workers')} {workers}: give 1 to {MAX_WORKERS}.")
    if address is not None and engine != "ray":
        raise UsageError(
            f"{option('address')} names a Ray cluster and is used with {option('engine', 'ray')} "
            "only."
        )
    if address is not None and not re.fullmatch(r"auto|[^\s/]+:\d{1,5}", address):
        raise UsageError(
            f"{option('address')} {address}: give HOST:PORT, or auto for the Ray cluster that runs "
            "on this machine."
        )
    if engine == "serial":
        if workers is not None:
            raise UsageError(
                f"{option('workers')} is used with {option('engine', 'processes')} or "
                f"{option('engine', 'ray')} only; one process uses several cores by "
                f"{option('threads')}."
            )
        return SERIAL
    if engine == "processes":
        from treelm.parallel.processes import ProcessExecutor

        count = max(1, available_cores() // threads) if workers is None else workers
        return ProcessExecutor(count, threads=threads)
    from treelm.parallel.ray_cluster import RayExecutor

    return RayExecutor(workers, address=address, threads=threads)


@contextmanager
def held_here(makers: Sequence[Maker]) -> Iterator[Holders[Any, Any]]:
    """Give holders that every process makes for itself."""
    holders = HoldersHere(secrets.token_hex(8), tuple(makers))
    try:
        yield holders
    finally:
        holders.forget()


def available_cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(
    shards: Iterable[S],
    start: Callable[[int, S], T],
    finish: Callable[[T], R],
    drop: Callable[[T], object],
    most: int,
) -> Iterator[R]:
    """Yield results in shard order while the next shards are being worked on.

    An error in reading the shards is raised after the results of those before it, as in one
    process.

    Args:
        shards: The shards.
        start: Begins the work on a shard, given its number, counted from 1.
        finish: Waits for the result.
        drop: Called with work whose result nobody will ask for.
        most: How many shards are under way at most.
    """
    coming = enumerate(shards, 1)
    pending: deque[T] = deque()
    is_read, failure = False, None
    try:
        while True:
            while not is_read and len(pending) < most:
                try:
                    number, shard = next(coming)
                except StopIteration:
                    is_read = True
                except Exception as error:  # raised below, in its turn
                    is_read, failure = True, error
                else:
                    pending.append(start(number, shard))
            if not pending:
                break
            yield finish(pending.popleft())
    finally:
        for task in pending:
            drop(task)
    if failure is not None:
        raise failure
