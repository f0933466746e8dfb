"""A Ray cluster: one that is joined, or one of this machine that is started for the work."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from treelm.errors import EngineError, MissingExtra, option
from treelm.extras import import_extra
from treelm.parallel.executor import RETRIES, available_cores, in_order
from treelm.parallel.holders import Holders, Maker
from treelm.parallel.metrics import Metrics
from treelm.parallel.worker import Outcome, answered, packed, perform, settled

S = TypeVar("S")
R = TypeVar("R")

#: Versions of Ray that were tested: from the first one to below the second, as in pyproject.toml.
TESTED = ((2, 50), (3, 0))

#: Seconds within which a cluster takes a connection.
_ANSWER_SECONDS = 30.0


class _Task(NamedTuple):
    """A shard under way."""

    number: int
    result: Any
    """Reference to its outcome."""


class RayExecutor:
    """Does the work on a Ray cluster.

    Ray gives a shard whose worker or machine died to another one. The machines need the same build
    of treelm.

    Args:
        workers: Number of shards worked on at a time; None for as many as the cluster has room for.
        address: The cluster to join: ``HOST:PORT``, or ``auto`` for the one that runs on this
            machine; None starts one of this machine alone and ends it afterwards. A program that
            has called ``ray.init`` itself keeps its cluster.
        threads: Number of threads that a shard uses.
    """

    name = "ray"

    def __init__(
        self, workers: int | None = None, *, address: str | None = None, threads: int = 1
    ) -> None:
        self.workers = workers
        self.address = address
        self.threads = threads
        self.observer: Metrics | None = None
        self._ray: Any = None
        self._is_own = False

    def map(self, function: Callable[[S], R], shards: Iterable[S]) -> Iterator[R]:
        """Yield ``function(shard)`` in shard order; the first failing shard's error is raised."""
        ray = self._ray
        if ray is None:
            raise RuntimeError("a RayExecutor is used in a with statement.")
        key = secrets.token_hex(8)
        whole = packed(function)
        sent = [ray.put(whole)]  # in a list, so that only those fetch it who lack it
        observer = self.observer
        if observer is not None:
            observer.begin(len(whole))
        remote = ray.remote(num_cpus=self.threads, max_retries=RETRIES)(_perform)

        def start(number: int, shard: S) -> _Task:
            return _Task(number, remote.remote(key, sent, shard))

        def finish(task: _Task) -> R:
            try:
                outcome: Outcome[R] = ray.get(task.result)
            except ray.exceptions.RayTaskError as error:
                raise EngineError(
                    f"a worker of the Ray cluster could not begin: {error.cause}. Is the same "
                    "build of treelm installed on all machines?",
                    code="E_OTHER_BUILD",
                ) from error
            except ray.exceptions.RayError as error:
                raise EngineError(
                    f"the Ray cluster gave up on shard {task.number}: {_first_line(error)}",
                    code="E_WORKER_DIED",
                ) from error
            if observer is not None:
                observer.done(outcome.use)
            return settled(outcome)

        def drop(task: _Task) -> None:
            with contextlib.suppress(Exception):  # the cluster may be gone
                ray.cancel(task.result, force=True)

        yield from in_order(shards, start, finish, drop, self._most())
        if observer is not None:
            observer.end()

    @contextlib.contextmanager
    def hold(self, makers: Sequence[Maker]) -> Iterator[Holders[Any, Any]]:
        """Give holders that functions which are mapped may ask: actors, spread over the machines.

        An actor takes no core. One whose machine is lost is made again on another; whoever asked it
        asks again.
        """
        ray = self._ray
        actor = ray.remote(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
        )(_Actor)
        actors = [actor.remote(packed(make)) for make in makers]
        try:
            yield _Actors(tuple(actors))
        finally:
            for each in actors:
                with contextlib.suppress(Exception):  # the cluster may be gone
                    ray.kill(each)

    def _most(self) -> int:
        """Return how many shards are under way at most.

        What waits beside the work keeps the workers busy. On a cluster that others use as well,
        nobody but this number holds the program to the workers that were asked for.
        """
        if self.workers is not None:
            return 2 * self.workers if self._is_own else self.workers
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        return max(1, 2 * (cores // self.threads))

    def __enter__(self) -> Self:
        # Neither may say a word to anybody outside, nor warn of what treelm does not use.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        ray = import_extra("ray", f"{option('engine', 'ray')}")
        check_version(ray.__version__)
        if not ray.is_initialized():
            self._is_own = self.address is None
            self._join(ray)
        self._ray = ray
        self._check_room()
        return self

    def _join(self, ray: Any) -> None:
        quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            if self.address is not None:
                host, _, port = self.address.rpartition(":")
                if host:  # Ray would wait for minutes where nobody answers
                    socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
                ray.init(address=self.address, **quiet)
                return
            workers = self.workers or max(1, available_cores() // self.threads)
            ray.init(
                address="local", num_cpus=workers * self.threads, include_dashboard=False, **quiet
            )
        except (OSError, OverflowError, ValueError, RuntimeError) as error:
            raise EngineError(
                f"{option('address')} {self.address}: there is no Ray cluster to join "
                f"({_first_line(error)}). Start one with the program `ray`."
                if self.address is not None
                else f"Ray cannot be started here: {_first_line(error)}"
            ) from error

    def _check_room(self) -> None:
        """Refuse work that would wait for ever: no machine has so many cores."""
        largest = max(
            (node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"]),
            default=0,
        )
        if largest < self.threads:
            self._leave()
            raise EngineError(
                f"no machine of the Ray cluster has the {self.threads} cores that a worker needs; "
                f"the largest offers {largest:g}. Give fewer {option('threads')}."
            )

    def _leave(self) -> None:
        ray, self._ray = self._ray, None
        if ray is not None and (self._is_own or self.address is not None):
            ray.shutdown()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the cluster if it was started here, or leave it."""
        self._leave()

    def __repr__(self) -> str:
        return f"RayExecutor({self.workers}, address={self.address!r}, threads={self.threads})"


class _Actor:
    """Holds a shard on a machine of the cluster.

    Args:
        sent: What makes it, as `packed` gave it.
    """

    def __init__(self, sent: bytes) -> None:
        self._sent = sent
        self._key = secrets.token_hex(8)

    def answer(self, question: object) -> Outcome[Any]:
        """Answer a question, or say what went wrong."""
        return answered(self._key, self._sent, question)


@dataclass(frozen=True, eq=False)
class _Actors:
    """Shards that actors hold.

    Args:
        actors: Handles of all.
    """

    actors: tuple[Any, ...]

    def ask(self, question: object) -> Sequence[Any]:
        """Return the answers of all shards, in their order."""
        import ray

        asked = ray.put(question)  # once for all of them
        return [settled(each) for each in ray.get([a.answer.remote(asked) for a in self.actors])]


def check_version(version: str) -> None:
    """Refuse a version of Ray that was never tested.

    Raises:
        MissingExtra: naming the versions that were.

    Examples:
        >>> check_version("2.50.1")
    """
    found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    lowest, below = TESTED
    if not lowest <= found < below:
        raise MissingExtra(
            f"Ray {version} is installed, but treelm was tested with versions from "
            f"{lowest[0]}.{lowest[1]} to below {below[0]}.{below[1]}. Install one of them with: "
            'pip install "treelm[cluster]"'
        )


def _first_line(error: BaseException) -> str:
    """Return the first line of what an error says; Ray adds pages to it."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _perform(key: str, sent: list[Any], shard: object) -> Outcome[Any]:
    """Apply a function that is in the object store of the cluster."""
    import ray

    return perform(key, lambda: ray.get(sent[0]), shard)
