"""A bounded number of threads that answer requests, and a bounded queue before them.

Kernels leave the interpreter to others while they work, so that threads are enough. A thread cannot
be stopped from outside: a request that is given up sets a flag, which is read between sentences and
models, and its thread is free again when that is noticed. Until then it counts as taken, so that
never more than the allowed number of threads work, whatever clients do.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

Result = TypeVar("Result")

#: What a client is told to wait before it asks again, in seconds.
RETRY_AFTER = 2


class Busy(Exception):
    """The queue is full, or its end was not reached in time."""


class TooSlow(Exception):
    """The work took longer than a request may."""


class Cancelled(Exception):
    """Raised in a thread whose request was given up."""


class Ticket:
    """A request that is worked on; its thread asks it now and then whether to go on."""

    def __init__(self) -> None:
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Tell the thread to stop at the next sentence."""
        self._given_up.set()

    def check(self) -> None:
        """Stop the work of a request that was given up.

        Raises:
            Cancelled: if it was.
        """
        if self._given_up.is_set():
            raise Cancelled


class WorkQueue:
    """Threads that work, and requests that wait for them.

    Args:
        threads: How many work at once.
        queue: How many requests may wait.
        seconds: How long a request may wait and work; it waits for half of that at most.
    """

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self._size, self._most, self._seconds = threads, threads + queue, seconds
        self._inside = 0
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._open: set[Ticket] = set()
        # Daemons: an answer that nobody waits for keeps no process alive.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    @property
    def inside(self) -> int:
        """Requests that wait or are worked on."""
        return self._inside

    async def do(self, work: Callable[[Ticket], Result]) -> Result:
        """Return what a function returns that one of the threads calls.

        Raises:
            Busy: if too many requests wait already, or this one has waited too long.
            TooSlow: if the work took too long.
        """
        if self._inside >= self._most:
            raise Busy
        ticket, loop = Ticket(), asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        begun = threading.Event()

        def job() -> None:
            try:
                ticket.check()
                begun.set()
                result = work(ticket)
            except BaseException as error:  # whoever waits is told
                _tell(loop, answer, None, error)
            else:
                _tell(loop, answer, result, None)
            finally:
                _call(loop, self._leave, ticket)

        self._inside += 1
        self._open.add(ticket)
        self._jobs.put(job)
        try:
            # One that has waited for half of its time would hardly be done in the rest.
            await asyncio.wait((answer,), timeout=self._seconds / 2)
            if not answer.done() and not begun.is_set():
                raise Busy
            return await asyncio.wait_for(answer, self._seconds / 2)
        except TimeoutError:
            raise TooSlow from None
        finally:
            answer.cancel()
            ticket.give_up()

    def _leave(self, ticket: Ticket) -> None:
        self._inside -= 1
        self._open.discard(ticket)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    @property
    def is_working(self) -> bool:
        """Whether a thread is still at work after `close`."""
        return any(thread.is_alive() for thread in self._threads)

    def close(self, seconds: float = 2.0) -> None:
        """Give up everything and wait a little for the threads to notice."""
        for ticket in list(self._open):
            ticket.give_up()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(seconds / len(self._threads))


def _tell(
    loop: asyncio.AbstractEventLoop,
    answer: asyncio.Future[Result],
    result: Result | None,
    error: BaseException | None,
) -> None:
    def settle() -> None:
        if answer.done():  # nobody waits any more
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # one of the two is there

    _call(loop, settle)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *given: object) -> None:
    try:
        loop.call_soon_threadsafe(function, *given)
    except RuntimeError:  # the loop was closed while the thread worked
        return
