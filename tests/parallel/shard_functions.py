"""What workers are asked to do in tests; they import it from here."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partialmethod
from multiprocessing.connection import Connection
from pathlib import Path

from treelm.errors import CorpusFormatError, TreelmWarning, option
from treelm.parallel.holders import Holders


def double(number: int) -> int:
    return 2 * number


def process_of(_: object) -> int:
    return os.getpid()


def fail_with_a_place(number: int) -> int:
    if number >= 3:
        raise CorpusFormatError(
            f"a.txt:{number}: see {option('max_words')}.", code="E_TEST", line=number
        )
    time.sleep(0.05 * (3 - number))  # later shards are ready first
    return number


class Unportable(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def fail_unportably(_: object) -> None:
    raise Unportable("this", "that")


def give_what_cannot_be_sent(_: object) -> Callable[[], None]:
    return lambda: None


def warn(number: int) -> int:
    warnings.warn(f"beware of {number}", TreelmWarning, stacklevel=1)
    return number


def wait_to_be_killed_once(marker: Path | None) -> str:
    """Say who works here, and wait; whoever finds that somebody did returns."""
    if marker is None:
        return "unharmed"
    if marker.exists():
        return "done again"
    coming = marker.with_suffix(".coming")
    coming.write_text(str(os.getpid()))
    coming.rename(marker)
    while True:
        time.sleep(60)


def die_in_the_middle_of_a_result(marker: Path | None) -> str:
    """Hand over half of a result the first time."""
    if marker is None:
        return "unharmed"
    if marker.exists():
        return "done again"
    marker.touch()
    write = os.write

    def write_half(descriptor: int, content: bytes) -> int:
        write(descriptor, content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    send = partialmethod(Connection._send, write=write_half)  # type: ignore[attr-defined]
    Connection._send = send  # type: ignore[attr-defined]
    return "unseen"


def die(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@dataclass(frozen=True)
class Counting:
    """Knows how often it was called where it lives, and how often it was unpacked."""

    folder: Path

    @cached_property
    def _large(self) -> bool:
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        return True

    def __call__(self, shard: int) -> int:
        assert self._large
        return shard


#: How often holders were made in this process.
made: list[int] = []


@dataclass(frozen=True)
class Holding:
    """Makes a holder that multiplies."""

    factor: int

    def __call__(self) -> Callable[[int], int]:
        made.append(self.factor)
        return lambda number: self.factor * number


@dataclass(frozen=True)
class Asking:
    """Asks two sets of holders, or says how often this process has made any."""

    some: Holders[int, int]
    others: Holders[int, int]
    counts: bool = False

    def __call__(self, number: int) -> list[int]:
        before = len(made)
        found = [*self.some.ask(number), *self.others.ask(number)]
        return [len(made) - before] if self.counts else found
