"""An executor in which something goes wrong once in every phase of the work."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from treelm.parallel.executor import Executor

Fault = Literal["worker killed", "slow worker", "full disk", "actor killed"]


@dataclass(frozen=True)
class Faulty:
    """Does the work of another function; one shard of it meets a fault, once.

    Args:
        function: The work.
        fault: What happens.
        marker: File that says that it has happened.
        place: Number of the shard, counted from 0.
        actors: Actors that may be killed.
    """

    function: Callable[[Any], Any]
    fault: Fault
    marker: Path
    place: int
    actors: tuple[Any, ...] = ()

    def __call__(self, shard: tuple[int, Any]) -> Any:
        number, own = shard
        if number != self.place or self.marker.exists():
            return self.function(own)
        self.marker.touch()
        if self.fault == "worker killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.fault == "slow worker":
            time.sleep(0.5)
        elif self.fault == "full disk":
            return self._without_room(own)
        elif self.actors:
            import ray

            ray.kill(self.actors[0], no_restart=False)
        return self.function(own)

    def _without_room(self, shard: Any) -> Any:
        """Let files grow to some hundred bytes and no further."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
        try:
            return self.function(shard)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)


class FaultyExecutor:
    """Gives work to another executor, and lets something go wrong in every map.

    Args:
        inner: Does the work.
        fault: What goes wrong.
        folder: Where it is noted, so that it happens once.
        place: The shard of every map in which it happens.
    """

    def __init__(self, inner: Executor, fault: Fault, folder: Path, place: int = 1) -> None:
        self.inner = inner
        self.name = inner.name
        self.threads = inner.threads
        self.observer = inner.observer
        self.maps: list[str] = []
        self._fault: Fault = fault
        self._folder = folder
        self._place = place
        self._actors: tuple[Any, ...] = ()
        folder.mkdir(exist_ok=True)

    @property
    def met(self) -> set[str]:
        """Names of the functions that have met the fault."""
        return {path.name.rpartition("-")[0] for path in self._folder.iterdir()}

    def map(self, function: Callable[[Any], Any], shards: Iterable[Any]) -> Iterator[Any]:
        name = type(function).__qualname__
        self.maps.append(name)
        marker = self._folder / f"{name}-{len(self.maps)}"
        faulty = Faulty(function, self._fault, marker, self._place, self._actors)
        return self.inner.map(faulty, enumerate(shards))

    @contextmanager
    def hold(self, makers: Sequence[Any]) -> Iterator[Any]:
        with self.inner.hold(makers) as holders:
            before, self._actors = self._actors, getattr(holders, "actors", ())
            yield holders
            self._actors = before

    def __enter__(self) -> FaultyExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        """The other executor ends itself."""
