"""Options of commands whose work can be done by many workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from treelm.cli.options import ThreadOptions
from treelm.cli.ranges import between
from treelm.parallel.executor import MAX_WORKERS, Engine, Executor, executor


@Parameter(name="*", group=Group("Options for many workers", sort_key=75))
@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Who does the work."""

    engine: Engine = "serial"
    """Who does the work: this process, several processes on this machine, or a Ray cluster
    (`pip install "treelm[cluster]"`). Results do not depend on it. With many workers, --threads is
    the number of threads of each, 1 by default."""
    workers: Annotated[
        int | None,
        between(1, MAX_WORKERS),
        Parameter(show_default="the cores of this machine, or of the cluster"),
    ] = None
    """Number of workers."""
    address: Annotated[
        str | None, Parameter(metavar="ADDRESS", show_default="start one on this machine")
    ] = None
    """Ray cluster to join: HOST:PORT, or auto for the one that runs on this machine."""

    @property
    def is_given(self) -> bool:
        """Whether somebody asked for anything but this process."""
        return self != EngineOptions()

    def threads(self, asked: ThreadOptions) -> int:
        """Return the number of threads of each worker."""
        return asked.thread_count if self.engine == "serial" else asked.threads or 1

    def executor(self, asked: ThreadOptions) -> Executor:
        """Return who does the work, for a ``with`` statement.

        Raises:
            UsageError: for options that do not go together.
        """
        return executor(
            self.engine,
            workers=self.workers,
            address=self.address,
            threads=self.threads(asked),
        )
