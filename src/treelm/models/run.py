"""How a training is run: threads, memory, checkpoints, and what is told meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress

if TYPE_CHECKING:
    from treelm.store.shared_folder import SharedFolder


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a training has finished: an iteration, a round, a cycle.

    Args:
        value: What was found, as the system describes it.
        text: The same in one sentence, for people.
        is_minor: Whether only those who want to see everything are told.
        is_recorded: Whether the value, a dataclass, belongs to the record of the training.
    """

    value: object
    text: str
    is_minor: bool = False
    is_recorded: bool = False


def _ignore(_: object) -> None:
    """Hear and forget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a training is run. Nothing in here changes what the model says, to the last bit.

    Args:
        threads: Number of threads of this process.
        memory: Limit of the memory used; what does not fit is sorted in temporary files.
        progress: Progress callback.
        executor: Does work that is cut into shards.
        temporary: Folder for temporary files, such as parsed text; None for the system's own.
        checkpoint: Folder for what the last complete step of a long training left; None for none.
        work_url: Where workers keep the pieces of a round, if not in the folder of the checkpoint.
        shards: Number of shards in which workers add up the counts of EM; the pieces of a round are
            then kept in the folder of the checkpoint. None to add up here.
        shard_parameters: Whether the tables of a model are held in as many shards too, of which
            workers ask for what their sentences need; otherwise every worker has the whole model.
        resume: Whether to continue from the checkpoint, if there is one.
        sentence_hashes: Whether the model keeps hashes of its training sentences, two bytes each
            and 2 MiB at most, by which evaluation finds test sentences among them. Whoever has the
            model can then tell whether it was trained on a given sentence.
        note: Called with what people should know, such as trees that were left out.
        event: Called after every step of a long training.

    Examples:
        >>> Run(threads=2).resume
        False
    """

    threads: int = 1
    memory: MemoryLimit | None = None
    progress: Progress = SILENT
    executor: Executor = SERIAL
    temporary: Path | None = None
    checkpoint: Path | None = None
    work_url: str | None = None
    shards: int | None = None
    shard_parameters: bool = False
    resume: bool = False
    sentence_hashes: bool = True
    note: Callable[[str], None] = _ignore
    event: Callable[[Event], None] = _ignore

    @property
    def round_folder(self) -> SharedFolder | None:
        """Where the pieces of a round are kept; None without a checkpoint."""
        from treelm.store.checkpoint import ROUND_FOLDER
        from treelm.store.shared_folder import SharedFolder

        if self.checkpoint is None:
            return None
        return SharedFolder(self.work_url or str(self.checkpoint.absolute())) / ROUND_FOLDER

    @property
    def worker_threads(self) -> int:
        """Number of threads of whoever does shards."""
        return self.executor.threads or self.threads


#: One thread, nothing kept, nobody told.
QUIET = Run()
