"""Many processes on one machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import secrets
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from treelm.errors import EngineError, TreelmWarning, option
from treelm.parallel.executor import RETRIES, held_here, in_order
from treelm.parallel.holders import Holders, Maker
from treelm.parallel.metrics import Metrics
from treelm.parallel.worker import Outcome, packed, perform, settled

S = TypeVar("S")
R = TypeVar("R")


class _Worker(SpawnProcess):
    """A process that never hears Ctrl-C: the one that started it does, and ends it."""

    def start(self) -> None:
        """Start it with SIGINT blocked, which is handed down."""
        resource_tracker.ensure_running()  # starting it would unblock the signal
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Workers(SpawnContext):
    """Starts workers from nothing, and remembers them, so that they can be ended at once."""

    def __init__(self) -> None:
        self.started: list[_Worker] = []

    def Process(self, *arguments: Any, **options: Any) -> _Worker:  # type: ignore[override]  # noqa: N802
        """Return a new worker."""
        worker = _Worker(*arguments, **options)
        self.started.append(worker)
        return worker

    def kill(self) -> None:
        """End all workers, whatever they do."""
        for worker in self.started:
            # One that was never started is not to be ended.
            if worker.pid is not None and worker.is_alive():
                worker.kill()


@dataclass(eq=False)
class _Task:
    """A shard under way."""

    number: int
    shard: object
    pool: ProcessPoolExecutor
    future: Future[Outcome[Any]]
    deaths: int = 0


class ProcessExecutor:
    """Does the work in other processes on this machine.

    A shard whose worker dies is given to another one, a few times at most.

    Args:
        workers: Number of processes.
        threads: Number of threads that each uses.

    Examples:
        >>> with ProcessExecutor(2) as engine:
        ...     list(engine.map(len, ["one", "three"]))
        [3, 5]
    """

    name = "processes"

    def __init__(self, workers: int, *, threads: int = 1) -> None:
        self.workers = workers
        self.threads = threads
        self.observer: Metrics | None = None
        self._context: _Workers | None = None
        self._pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[[S], R], shards: Iterable[S]) -> Iterator[R]:
        """Yield ``function(shard)`` in shard order; the first failing shard's error is raised."""
        from treelm.corpus.temporary import temporary_folder

        key = secrets.token_hex(8)
        with temporary_folder() as folder:
            place = folder / "function"
            sent = packed(function)
            place.write_bytes(sent)
            observer = self.observer
            if observer is not None:
                observer.begin(len(sent))

            def submit(shard: object) -> tuple[ProcessPoolExecutor, Future[Outcome[Any]]]:
                pool = self._working_pool()
                try:
                    return pool, pool.submit(_perform, key, str(place), shard)
                except BrokenProcessPool:  # a worker died while nobody was looking
                    self._give_up(pool)
                    return submit(shard)

            def start(number: int, shard: S) -> _Task:
                return _Task(number, shard, *submit(shard))

            def finish(task: _Task, others: Iterable[_Task]) -> R:
                while True:
                    try:
                        outcome: Outcome[R] = task.future.result()
                        if observer is not None:
                            observer.done(outcome.use)
                        return settled(outcome)
                    except BrokenProcessPool as error:
                        broken = task.pool
                        self._give_up(broken)
                        if observer is not None:
                            observer.died()
                        warnings.warn("a worker died; its work is done again.", TreelmWarning, 2)
                        for each in (task, *others):
                            if each.pool is broken and _is_lost(each.future):
                                _count_death(each, error)
                                each.pool, each.future = submit(each.shard)

            yield from in_order(shards, start, finish, _drop, 2 * self.workers)
            if observer is not None:
                observer.end()

    def hold(self, makers: Sequence[Maker]) -> AbstractContextManager[Holders[Any, Any]]:
        """Give holders that functions which are mapped may ask; each process makes its own."""
        return held_here(makers)

    def _working_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._context = _Workers()
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=self._context, initializer=_end_with_parent
            )
            # All workers start with the first shard. Started one by one, with later shards, one may
            # come while the thread of a pool that has just lost another counts them, and end it.
            vars(self._pool)["_safe_to_dynamically_spawn_children"] = False
        return self._pool

    def _give_up(self, pool: ProcessPoolExecutor) -> None:
        """Let a broken pool go; the next shard starts another."""
        if self._pool is pool:
            self._end(at_once=True)

    def _end(self, *, at_once: bool) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if at_once and self._context is not None:
            self._context.kill()
        pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers; after an error at once, whatever they do."""
        self._end(at_once=kind is not None)

    def __repr__(self) -> str:
        return f"ProcessExecutor({self.workers})"


def _drop(task: _Task) -> None:
    """Forget a shard that no worker has begun."""
    task.future.cancel()


def _is_lost(future: Future[Outcome[Any]]) -> bool:
    """Return whether the pool broke before a result was there."""
    return future.cancelled() or isinstance(future.exception(), BrokenProcessPool)


def _count_death(task: _Task, error: BrokenProcessPool) -> None:
    """Refuse a shard that outlived too many workers, of which one may have been its own."""
    task.deaths += 1
    if task.deaths > RETRIES:
        raise EngineError(
            f"workers died {task.deaths} times around shard {task.number}. Did the machine run out "
            f"of memory? Fewer {option('workers')} need less.",
            code="E_WORKER_DIED",
        ) from error


def _perform(key: str, place: str, shard: object) -> Outcome[Any]:
    """Apply a function that is in a file."""
    return perform(key, Path(place).read_bytes, shard)


def _end_with_parent() -> None:
    """Make a worker end when the process that started it was killed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        with contextlib.suppress(Exception):
            if parent is not None:
                parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
