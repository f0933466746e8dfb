"""The folder of a training: how far it is, what it took, and whether its files are whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from treelm.characters import visible
from treelm.corpus.files import Source, source_name
from treelm.errors import InputFileError, ModelFileError, option
from treelm.parallel.metrics import read_metrics
from treelm.store.checkpoint import DIGEST, tables_digest
from treelm.store.shared_folder import local_copy
from treelm.store.tables import Tables, open_tables

#: Tables of a checkpoint that hold the log likelihood before every iteration, by name.
_HISTORIES = ("history", "steps.log_likelihoods")
#: What metadata says for the program, not for people.
_INTERNAL = ("training", DIGEST)


@dataclass(frozen=True)
class StepFile:
    """One file of a training.

    Args:
        name: Its name.
        training: What tells the training from all others.
        bytes: Its size.
        written: When it was written.
        notes: What else it says of itself, such as the stage.
        log_likelihoods: Of the training text before each iteration, where it has them.
    """

    name: str
    training: str
    bytes: int
    written: str
    notes: dict[str, str]
    log_likelihoods: tuple[float, ...]

    def record(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {
            "file": self.name,
            "bytes": self.bytes,
            "written": self.written,
            **self.notes,
            "iterations": len(self.log_likelihoods),
            "log_likelihoods": list(self.log_likelihoods),
        }


def _tables_in(work: Source) -> Iterator[tuple[Path, Tables]]:
    """Yield the files of a training.

    Raises:
        InputFileError: if the folder has none.
        ModelFileError: if one is damaged.
    """
    folder = Path(work)
    paths = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    if not paths:
        raise InputFileError(
            f"{source_name(work)}: no training has left anything here. It is the folder that "
            "`treelm train --work` names, or MODEL.training while a model is being trained; that "
            "one goes when the model is saved.",
            code="E_NO_FILE",
        )
    for path in paths:
        yield path, open_tables(path)


def work_files(work: Source) -> list[StepFile]:
    """Return the files of a training, with how far each is.

    Args:
        work: Folder of a training.

    Raises:
        InputFileError: if there is none.
        ModelFileError: if a file is damaged.
    """
    found = []
    for path, tables in _tables_in(work):
        history: tuple[float, ...] = ()
        for name in _HISTORIES:
            if name in tables and tables[name].dtype == np.float64 and tables[name].ndim == 1:
                history = tuple(tables[name].tolist())
        status = path.stat()
        notes = {key: text for key, text in tables.metadata.items() if key not in _INTERNAL}
        written = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
        training = tables.metadata.get("training", "")
        found.append(StepFile(path.name, training, status.st_size, written, notes, history))
    return found


def work_status(work: Source) -> dict[str, object]:
    """Return how far a training is, and what its phases took.

    Args:
        work: Folder of a training.
    """
    with local_copy(work) as folder:
        files = work_files(folder)
        lines = read_metrics(folder)
    phases = [line for line in lines if "phase" in line]
    events = [line for line in lines if "event" in line]
    return {
        "training": files[0].training,
        "files": [file.record() for file in files],
        "last_event": events[-1].get("event") if events else None,
        "phases": len(phases),
        "seconds": sum(_number(line, "seconds") for line in phases),
        "processor_seconds": sum(_number(line, "processor_seconds") for line in phases),
        "deaths": int(sum(_number(line, "deaths") for line in phases)),
        "worker_peak_bytes": int(max((_number(p, "worker_peak_bytes") for p in phases), default=0)),
        "last_phase": phases[-1] if phases else None,
    }


def _number(line: dict[str, object], name: str) -> float:
    value = line.get(name, 0)
    return float(value) if isinstance(value, (int, float)) else 0.0


def status_lines(status: dict[str, object]) -> Iterator[str]:
    """Yield a status as readable lines."""
    files = status["files"]
    assert isinstance(files, list)
    yield f"training\t{str(status['training'])[:12]}"
    for file in files:
        stage = f", {file['stage']}" if "stage" in file else ""
        yield (
            f"{file['file']}\t{file['iterations']} iterations{stage}, {file['bytes']:,} bytes, "
            f"written {file['written']}"
        )
        for number, value in enumerate(file["log_likelihoods"], 1):
            yield f"log likelihood before {number}\t{value:.1f}"
    if status["last_event"] is not None:
        yield f"last\t{status['last_event']}"
    last = status["last_phase"]
    if isinstance(last, dict):
        yield f"phases\t{status['phases']}, {status['seconds']:.1f} seconds"
        yield (
            f"last phase\t{last.get('phase')}: {last.get('engine')}, "
            f"{last.get('workers')} workers, {last.get('shards')} shards, "
            f"{_number(last, 'amount_per_second'):.1f} {last.get('unit')} per second"
        )
        yield f"deaths of workers\t{status['deaths']}"


def verify_work(work: Source) -> Iterator[tuple[str, int]]:
    """Read the files of a training, and yield the name and the size of each that is whole.

    Args:
        work: Folder of a training.

    Raises:
        InputFileError: if there is none.
        ModelFileError: ``E_CHECKPOINT`` for a file whose tables are not those that were written, or
            that belongs to another training than the first.
    """
    with local_copy(work) as folder:
        yield from _verified(folder)


def _verified(work: Path) -> Iterator[tuple[str, int]]:
    training: str | None = None
    for path, tables in _tables_in(work):
        said = tables.metadata.get(DIGEST)
        if said != tables_digest({name: tables[name] for name in tables}):
            raise ModelFileError(
                f"{visible(str(path))}: its tables are not those that were written. Train without "
                f"{option('resume')}.",
                code="E_CHECKPOINT",
            )
        own = tables.metadata.get("training")
        if training is not None and own != training:
            raise ModelFileError(
                f"{visible(str(path))}: this file and others here belong to different trainings. "
                f"Train without {option('resume')}.",
                code="E_CHECKPOINT",
            )
        training = own
        yield path.name, path.stat().st_size
