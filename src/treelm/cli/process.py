"""The process around a command: its signals, its streams, its limits and its exit status.

Left alone, Python raises `KeyboardInterrupt` again for every Ctrl-C, also while the first one is
being answered, and hands SIGINT back to the system before it has ended, so that a second Ctrl-C
cuts cleaning up short, prints a traceback, or kills the process with another exit status.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import IO, NoReturn

#: Exit statuses of a command that was stopped, as shells count them.
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM

#: New objects after which Python looks for cycles among them: loading makes many, and hardly any
#: cycle that is not needed.
_OBJECTS_BEFORE_CYCLES = 50_000

#: Bytes of stack that a process has if nobody limits it.
USUAL_STACK = 8 << 20

#: Seconds for which further signals let cleaning up go on; should it hang, later ones interrupt it.
UNDISTURBED_SECONDS = 5.0


class Terminated(BaseException):
    """Raised by SIGTERM, so that what is half-written is removed on the way out."""


def _show_all_but_late_signals(found: sys.UnraisableHookArgs) -> None:
    if not (isinstance(found.exc_value, OSError) and "race condition" in str(found.exc_value)):
        sys.__unraisablehook__(found)


class _Signals:
    """Turns SIGINT and SIGTERM into exceptions, one for all that arrive together."""

    def __init__(self) -> None:
        self._next = 0.0
        # A signal that the parent ignores, as a shell does for background jobs, stays ignored.
        self._caught = [
            number
            for number in (signal.SIGINT, signal.SIGTERM)
            if signal.getsignal(number) is not signal.SIG_IGN
        ]
        for number in self._caught:
            signal.signal(number, self._stop)

    def _stop(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + UNDISTURBED_SECONDS
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    def ignore(self) -> None:
        """Let nothing change the exit status any more: only the interpreter has still to end."""
        self._next = float("inf")
        # Python complains about a signal that it was told of by one handler and answers by none:
        # one that came to this thread, which is prevented, or to another one, which cannot be.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._caught)
        sys.unraisablehook = _show_all_but_late_signals
        for number in self._caught:
            signal.signal(number, signal.SIG_IGN)


def run_process(command: Callable[[], int]) -> NoReturn:
    """Call what returns an exit status, and exit with it or with that of the signal that came.

    However many signals arrive, the process says so once and exits with the status of the first.
    """
    gc.set_threshold(_OBJECTS_BEFORE_CYCLES)
    signals = _Signals()
    try:
        code = command()
        _flush_stdout()
        signals.ignore()
    except KeyboardInterrupt:
        sys.stderr.write("treelm: interrupted\n")
        code = INTERRUPTED
        _stop_writing(signals)
    except Terminated:
        code = TERMINATED
        _stop_writing(signals)
    # At the end Python would look through everything for cycles, and all memory is freed anyway.
    gc.freeze()
    sys.exit(code)


def _stop_writing(signals: _Signals) -> None:
    """Write what is left, unless a later signal finds that nobody takes it."""
    try:
        _flush_stdout()
    except (KeyboardInterrupt, Terminated):
        let_go(sys.stdout)
    signals.ignore()


def _flush_stdout() -> None:
    """Write what is left while signals are still answered; what cannot be written is dropped."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:  # a reader that has left, or a full disk, which the command has told already
        let_go(sys.stdout)


def let_go(stream: IO[str] | None) -> None:
    """Point a stream at nothing, so that the interpreter's last flush does not complain."""
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Messages(TextIOWrapper):
    """Standard error whose reader may leave and whose disk may fill up: the work goes on.

    Args:
        stream: Standard error as Python opened it.
    """

    def __init__(self, stream: TextIOWrapper) -> None:
        super().__init__(
            BufferedWriter(FileIO(stream.fileno(), "w", closefd=False)),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )

    def write(self, text: str, /) -> int:
        """Write a text, or lose it."""
        try:
            return super().write(text)
        except OSError:
            let_go(self)
            return len(text)

    def flush(self) -> None:
        """Write what is left of a line, or lose it."""
        try:
            super().flush()
        except OSError:
            let_go(self)


def has_whole_stack() -> bool:
    """Ask for the stack that systems usually give, and return whether it is granted.

    Numpy's solvers put tables of megabytes on the stack, one for each thread, and check nothing.
    """
    try:
        import resource
    except ImportError:  # a system without such limits
        return True
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < USUAL_STACK:
        soft = USUAL_STACK if hard == unlimited else min(USUAL_STACK, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    return soft == unlimited or soft >= USUAL_STACK
