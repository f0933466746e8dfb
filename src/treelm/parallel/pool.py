"""Processes on this machine that do work for this one.

This process has no thread and no lock for them, so it can be interrupted anywhere and still end
them. Every worker has a connection of its own: one that dies, be it in the middle of an answer, is
known by the end of its connection, and takes nothing with it but the work it had.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue

#: Pieces that a worker has at a time: one that it does, and one that waits there for it.
_DEPTH = 2

#: Seconds within which a worker that has nothing to do ends by itself.
_END_SECONDS = 10.0


class _Process(SpawnProcess):
    """A process that never hears Ctrl-C: the one that started it does, and ends it."""

    def start(self) -> None:
        """Start it with SIGINT blocked, which is handed down."""
        resource_tracker.ensure_running()  # starting it would unblock the signal
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(eq=False)
class Piece:
    """A piece of work."""

    question: bytes
    answer: bytes | None = None
    deaths: int = 0
    """How many workers died while they had it."""
    is_wanted: bool = True


@dataclass(eq=False)
class _Worker:
    """A process, and what it has to do, in this order."""

    process: _Process
    link: Connection
    pieces: deque[Piece] = field(default_factory=deque)

    def end(self, *, at_once: bool) -> None:
        """End the process, and wait until it is gone."""
        if at_once:
            self.process.kill()
        self.link.close()  # at which one that has nothing to do ends
        self.process.join(_END_SECONDS)
        self.process.kill()
        self.process.join()
        self.process.close()


class Pool:
    """Gives work to processes, which are started with the first of it.

    Args:
        size: Number of processes.
        answer: What they do, a function that they can import.
        on_death: Called when a worker has died that had something to do; that is done again.
    """

    def __init__(
        self, size: int, answer: Callable[[bytes], bytes], on_death: Callable[[], object]
    ) -> None:
        self._size = size
        self._answer = answer
        self._on_death = on_death
        self._workers: list[_Worker] = []
        self._waiting: deque[Piece] = deque()

    def give(self, question: bytes) -> Piece:
        """Have a question answered, without waiting for it."""
        piece = Piece(question)
        self._waiting.append(piece)
        with self._all_or_nothing():
            self._take_answers(0)
            self._hand_out()
        return piece

    def wait(self, piece: Piece, most_deaths: int) -> bytes | None:
        """Wait for an answer, and return it.

        Args:
            piece: What is waited for.
            most_deaths: How many workers may die while they have it.

        Returns:
            The answer, or None if more workers died.
        """
        with self._all_or_nothing():
            while piece.answer is None and piece.deaths <= most_deaths:
                self._hand_out()
                self._take_answers(None)
        if piece.answer is None:
            self.drop(piece)
        return piece.answer

    def drop(self, piece: Piece) -> None:
        """Forget work that nobody will ask for; a worker that has it goes on with it."""
        piece.is_wanted = False
        if piece in self._waiting:
            self._waiting.remove(piece)

    def end(self, *, at_once: bool) -> None:
        """End all workers: at once, or when they have done what they are doing."""
        if not at_once:
            while any(worker.pieces for worker in self._workers):
                self._take_answers(None)
        workers, self._workers = self._workers, []
        for worker in workers:
            if at_once:  # all of them, before one is waited for
                worker.process.kill()
        for worker in workers:
            self._take_back(worker)
            worker.end(at_once=at_once)

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """End all workers if something interrupts what is said to them: the rest would not come."""
        try:
            yield
        except BaseException:
            self.end(at_once=True)
            raise

    def _hand_out(self) -> None:
        while self._waiting:
            # All start together, since the first may have to wait for what it is given.
            while len(self._workers) < self._size:
                self._workers.append(self._started())
            worker = min(self._workers, key=lambda each: len(each.pieces))
            if len(worker.pieces) >= _DEPTH:
                return
            piece = self._waiting.popleft()
            worker.pieces.append(piece)
            try:
                worker.link.send_bytes(piece.question)
            except OSError:
                self._bury(worker)

    def _take_answers(self, seconds: float | None) -> None:
        """Take the answers that are there; wait so long for the first one, or for ever."""
        if not any(worker.pieces for worker in self._workers):
            seconds = 0  # only to see who is still there
        links = {worker.link: worker for worker in self._workers}
        for link in connection.wait(links, seconds):
            assert isinstance(link, Connection)
            worker = links[link]
            try:
                answer = link.recv_bytes()
            except (EOFError, OSError):
                self._bury(worker)
            else:
                worker.pieces.popleft().answer = answer

    def _started(self) -> _Worker:
        here, there = connection.Pipe()
        with there:
            # A daemon ends with this program, even if nobody has ended the pool.
            process = _Process(target=_work, args=(there, self._answer), daemon=True)
            process.start()
        return _Worker(process, here)

    def _bury(self, worker: _Worker) -> None:
        """Let a worker go that answers no more."""
        self._workers.remove(worker)
        worker.end(at_once=True)
        lost = self._take_back(worker)
        for piece in lost:
            piece.deaths += 1
        if lost:
            self._on_death()

    def _take_back(self, worker: _Worker) -> list[Piece]:
        """Let others do what a worker had to do."""
        lost = [piece for piece in worker.pieces if piece.is_wanted]
        worker.pieces.clear()
        self._waiting.extendleft(reversed(lost))
        return lost


def _work(link: Connection, answer: Callable[[bytes], bytes]) -> None:
    """Answer what comes, until the other end of the connection is closed.

    Both directions have a thread, so that nobody there waits for what is done here.
    """
    questions: SimpleQueue[bytes] = SimpleQueue()
    answers: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(link, questions), daemon=True).start()
    threading.Thread(target=_write, args=(link, answers), daemon=True).start()
    while True:
        answers.put(answer(questions.get()))


def _read(link: Connection, questions: SimpleQueue[bytes]) -> None:
    try:
        while True:
            questions.put(link.recv_bytes())
    finally:  # nobody wants anything any more, be it that the pool was ended or its process killed
        os._exit(0)


def _write(link: Connection, answers: SimpleQueue[bytes]) -> None:
    with contextlib.suppress(OSError):  # there is nobody any more, which the other thread sees
        while True:
            link.send_bytes(answers.get())
