"""Progress of long work: one small protocol, silent unless a caller shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from treelm.parallel.executor import Executor


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


class _PartOfStep:
    """Hands the progress of small steps on to the one they are part of."""

    def __init__(self, whole: Step) -> None:
        self._whole = whole

    @contextmanager
    def step(
        self, description: str, *, total: float | None = None, unit: str = ""
    ) -> Iterator[Step]:
        """Open a piece of the work that is shown already."""
        del description, total, unit
        yield self._whole


@contextmanager
def shared_step(
    executor: Executor,
    progress: Progress,
    description: str,
    *,
    total: float | None = None,
    unit: str = "",
) -> Iterator[tuple[Progress, Callable[[float], None]]]:
    """Show work that an executor does in shards as one step, whoever does it.

    Yields:
        What the shards report to, where this process does them; and what is told how much a
        finished shard had, where others do, whose reports nobody hears.

    Examples:
        >>> from treelm.parallel.executor import SERIAL
        >>> with shared_step(SERIAL, SILENT, "sorting", total=9) as (within, finished):
        ...     finished(9)
    """
    with progress.step(description, total=total, unit=unit) as step:
        if executor.threads is None:
            yield _PartOfStep(step), _ignore
            return
        observer = executor.observer
        if observer is not None:
            observer.phase(description, unit)

        def finished(amount: float) -> None:
            step.advance(amount)
            if observer is not None:
                observer.advance(amount)

        yield SILENT, finished


def _ignore(_: float) -> None:
    """Know already."""


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
