"""Many processes on one machine."""

from __future__ import annotations

import pickle  # nosec B403 (what is unpacked comes from processes that this one started)
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from treelm.errors import EngineError, TreelmWarning, option
from treelm.parallel.executor import RETRIES, held_here, in_order
from treelm.parallel.holders import Holders, Maker
from treelm.parallel.metrics import Metrics
from treelm.parallel.pool import Piece, Pool
from treelm.parallel.worker import Outcome, packed, perform, sendable, settled

S = TypeVar("S")
R = TypeVar("R")


class _Task(NamedTuple):
    """A shard under way."""

    number: int
    piece: Piece


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
        self._pool = Pool(workers, _answer, self._tell_death)

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

            def start(number: int, shard: S) -> _Task:
                question = pickle.dumps((key, str(place), shard), protocol=5)
                return _Task(number, self._pool.give(question))

            def finish(task: _Task) -> R:
                answer = self._pool.wait(task.piece, RETRIES)
                if answer is None:
                    raise EngineError(
                        f"workers died {task.piece.deaths} times around shard {task.number}. Did "
                        f"the machine run out of memory? Fewer {option('workers')} need less.",
                        code="E_WORKER_DIED",
                    )
                outcome: Outcome[R] = pickle.loads(answer)  # nosec B301
                if observer is not None:
                    observer.done(outcome.use)
                return settled(outcome)

            def drop(task: _Task) -> None:
                self._pool.drop(task.piece)

            yield from in_order(shards, start, finish, drop, 2 * self.workers)
            if observer is not None:
                observer.end()

    def hold(self, makers: Sequence[Maker]) -> AbstractContextManager[Holders[Any, Any]]:
        """Give holders that functions which are mapped may ask; each process makes its own."""
        return held_here(makers)

    def _tell_death(self) -> None:
        if self.observer is not None:
            self.observer.died()
        warnings.warn("a worker died; its work is done again.", TreelmWarning, stacklevel=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers; after an error at once, whatever they do."""
        self._pool.end(at_once=kind is not None)

    def __repr__(self) -> str:
        return f"ProcessExecutor({self.workers})"


def _answer(question: bytes) -> bytes:
    """Apply a function that is in a file to a shard, in a worker."""

    def performed() -> Outcome[Any]:
        key, place, shard = pickle.loads(question)  # nosec B301
        return perform(key, Path(place).read_bytes, shard)

    return sendable(performed)
