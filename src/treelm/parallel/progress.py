"""Progress of long work: one small protocol, silent unless a caller shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable


class Step(Protocol):
    """One piece of work under way."""

    def advance(self, amount: float, *, note: str | None = None) -> None:
        """Report that `amount` more units are done, perhaps with a note."""
        ...


@runtime_checkable
class Progress(Protocol):
    """Shows the progress of work; kernels and models report through it and never print."""

    def step(
        self, description: str, *, total: float | None = None, unit: str = ""
    ) -> AbstractContextManager[Step]:
        """Open a piece of work of `total` units (None: unknown)."""
        ...


def kernel_report(step: Step) -> Callable[[int, int], None]:
    """Return the callback of a kernel, called with the units done so far and their total.

    Examples:
        >>> with SILENT.step("sorting", total=9) as step:
        ...     kernel_report(step)(9, 9)
    """
    before = 0

    def report(done: int, _all: int) -> None:
        nonlocal before
        step.advance(done - before)
        before = done

    return report


class _SilentStep:
    def advance(self, amount: float, *, note: str | None = None) -> None:
        pass


class SilentProgress:
    """Shows nothing.

    Examples:
        >>> with SILENT.step("counting", total=10) as step:
        ...     step.advance(10)
    """

    @contextmanager
    def step(
        self, description: str, *, total: float | None = None, unit: str = ""
    ) -> Iterator[Step]:
        """Open a piece of work without showing it."""
        del description, total, unit
        yield _SilentStep()


#: The progress used where none is given.
SILENT: Progress = SilentProgress()
