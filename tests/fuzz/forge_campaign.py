"""Forges model folders of every system, counts and checkpoints by the thousand, and uses them.

    python tests/fuzz/forge_campaign.py --mutants 100000 --processes 16 --seed 1 --minutes 9 \
        --output findings.jsonl
    python tests/fuzz/forge_campaign.py --system hhmm --seed 1 --only 4711

Needs nothing but treelm itself. A mutant must be refused with a code, or give sane numbers. Anything
else is a finding: a signal, an exception that is none of treelm's, ten seconds of processor time, a
gigabyte of memory, an insane number. Findings are written as lines of JSON, and the exit code is 77.
The second form shows one mutant: what was changed, and what came of it.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection as pipes
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run as a script, whose folder is all that Python looks into
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.campaign import FINDING
from tests.fuzz.forged_folder import Folder
from tests.fuzz.forged_use import Answers, Insane, use, use_checkpoint, use_counts
from tests.fuzz.forger import Forger
from tests.fuzz.small_models import MAKERS, make_models
from tests.fuzz.small_trainings import TRAININGS, make_checkpoints, make_counts

#: What is forged besides the models of every system.
COUNTS, CHECKPOINTS = "counts", "checkpoints"
SUBJECTS = (*MAKERS, COUNTS, CHECKPOINTS)
SANITIZED = bool(os.environ.get("TREELM_SANITIZED"))
#: Processor time of one mutant.
MAX_SECONDS = 100.0 if SANITIZED else 10.0
#: What one mutant may need beyond what the process has when it starts.
MAX_BYTES = 1 << 30
#: A process that shows nothing new for so long waits for something that never comes.
DEADLOCK_SECONDS = 30 * MAX_SECONDS
#: Mutants of one process: so that nothing adds up, and a dead one costs little.
JOB = 200
#: One in so many is looked at more thoroughly.
THOROUGH = 4
#: Results are reported at least so often, in seconds.
REPORT_SECONDS = 0.5


@dataclass(frozen=True)
class Finding:
    """A mutant that was neither refused nor sane.

    Args:
        system: Its system.
        seed: The seed.
        number: Its number.
        kind: ``signal``, ``hang``, ``memory``, ``exception`` or ``insane``.
        detail: What happened, and where.
        changes: What was changed in the folder.
    """

    system: str
    seed: int
    number: int
    kind: str
    detail: str
    changes: Sequence[str]

    def __str__(self) -> str:
        return (
            f"--system {self.system} --seed {self.seed} --only {self.number}: {self.kind}: "
            f"{self.detail} [{'; '.join(self.changes)}]"
        )


@dataclass
class Tally:
    """What came of the mutants of a system.

    Args:
        tried: How many there were.
        sane: How many were loaded and gave sane numbers.
        refused: How many were refused when they were loaded, by code.
        in_use: Questions to loaded models that were refused, by code.
        findings: All others.
    """

    tried: int = 0
    sane: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    in_use: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.tried += other.tried
        self.sane += other.sane
        self.refused += other.refused
        self.in_use += other.in_use
        self.findings += other.findings


@dataclass(frozen=True)
class Job:
    """Mutants of one system and seed that one process tries."""

    system: str
    seed: int
    start: int
    stop: int


# -- one mutant ----------------------------------------------------------------------------------


def make_forgers(subjects: Iterable[str]) -> dict[str, Forger]:
    """Return a forger for each of some subjects; pieces come from the models of all systems."""
    found: dict[str, Sequence[Folder]] = {}
    with scratch_folder() as folder:
        for system in MAKERS:
            saved = [folder / f"{system}{number}" for number in range(len(MAKERS[system]))]
            for path, model in zip(saved, make_models(system), strict=True):
                model.save(path)
            found[system] = [Folder.read(path) for path in saved]
    others = [folders[0] for folders in found.values()]
    wanted = list(subjects)
    if COUNTS in wanted:
        with scratch_folder() as folder:
            found[COUNTS] = make_counts(folder)
    if CHECKPOINTS in wanted:
        with scratch_folder() as folder:
            found[CHECKPOINTS] = [
                each for training in TRAININGS for each in make_checkpoints(training, folder)
            ]
    return {subject: Forger(subject, found[subject], others) for subject in wanted}


def _use(subject: str, folder: Path, work: Path, *, thorough: bool) -> Answers:
    """Use what was forged as what it is."""
    if subject == COUNTS:
        return use_counts(folder, work, thorough=thorough)
    if subject == CHECKPOINTS:
        return use_checkpoint(folder, work, thorough=thorough)
    return use(folder, work, thorough=thorough)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder, in memory where the system has such a place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="treelm-forged-", dir=place) as name:
        yield Path(name)


def try_mutant(forger: Forger, seed: int, number: int, work: Path) -> tuple[Answers, list[str]]:
    """Forge a model, load and use it; raises whatever is a finding."""
    folder, changes = forger.mutant(seed, number)
    target = work / str(number)
    folder.write(target)
    try:
        return _use(forger.system, target, work, thorough=number % THOROUGH == 0), changes
    except Exception as error:
        error.add_note("; ".join(changes))
        raise
    finally:
        shutil.rmtree(target)


def _kind(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "memory"
    return "insane" if isinstance(error, Insane) else "exception"


def _detail(error: Exception) -> str:
    """Return an error and the last places in treelm that it came through."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "treelm" in Path(frame.filename).parts or "numpy" in Path(frame.filename).parts
    ]
    text = str(error).encode("utf-8", "backslashreplace").decode()
    return f"{type(error).__name__}: {text}"[:300] + f" at {' < '.join(reversed(places[-3:]))}"


# -- many ----------------------------------------------------------------------------------------


def _work(job: Job, forger: Forger, work: Path, current: Any, sending: pipes.Connection) -> None:
    """Try mutants and send tallies, each with the number of the first mutant that is not in it."""
    work.mkdir()
    _limit_memory()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    tally, reported, peak = Tally(), time.monotonic(), _peak_bytes()
    for number in range(job.start, job.stop):
        current.value = number
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        _try(forger, job.seed, number, work, tally)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if _peak_bytes() > peak + MAX_BYTES:
            changes = forger.mutant(job.seed, number)[1]
            tally.findings.append(
                Finding(job.system, job.seed, number, "memory", f"{_peak_bytes()} bytes", changes)
            )
            peak = _peak_bytes()
        if time.monotonic() > reported + REPORT_SECONDS:
            sending.send((number + 1, tally))
            tally, reported = Tally(), time.monotonic()
    sending.send((job.stop, tally))
    shutil.rmtree(work, ignore_errors=True)


def _try(forger: Forger, seed: int, number: int, work: Path, tally: Tally) -> None:
    tally.tried += 1
    try:
        answers, _ = try_mutant(forger, seed, number, work)
    except Exception as error:  # any of them is a finding
        changes = forger.mutant(seed, number)[1]
        tally.findings.append(
            Finding(forger.system, seed, number, _kind(error), _detail(error), changes)
        )
        return
    if answers.refused is not None:
        tally.refused[answers.refused] += 1
        return
    tally.sane += 1
    tally.in_use.update(answers.codes)


def _limit_memory() -> None:
    """Let the address space grow by no more than a mutant may need; sanitizers need all of it."""
    sizes = Path("/proc/self/statm")
    if sizes.exists() and not SANITIZED:
        now = int(sizes.read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (now + MAX_BYTES, most))


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


@dataclass
class _Running:
    """A process at work."""

    job: Job
    process: ForkProcess
    receiving: pipes.Connection
    current: Any
    done: int
    seen: tuple[int, float]


def run_campaign(
    forgers: Mapping[str, Forger],
    mutants: int,
    seed: int,
    *,
    processes: int = 1,
    seconds: float | None = None,
    report: Callable[[Mapping[str, Tally]], object] = lambda _: None,
) -> dict[str, Tally]:
    """Try mutants of every system in processes of their own.

    Args:
        forgers: One for each system.
        mutants: How many of each.
        seed: Of all changes.
        processes: How many run at once.
        seconds: When to begin no more after the first; None for never.
        report: Is given the tallies whenever a process has ended.
    """
    # In turn, so that all systems are tried alike when time is short.
    jobs = deque(
        Job(system, seed, start, min(start + JOB, mutants))
        for start in range(0, mutants, JOB)
        for system in forgers
    )
    tallies = {system: Tally() for system in forgers}
    ends = None if seconds is None else time.monotonic() + seconds
    running: list[_Running] = []
    gc.collect()
    gc.freeze()  # what is shared with the processes stays shared
    with scratch_folder() as folder:
        try:
            for turn in range(1 << 62):
                late = ends is not None and turn > 0 and time.monotonic() > ends
                while jobs and len(running) < processes and not late:
                    job = jobs.popleft()
                    work = folder / f"{turn}-{job.system}-{job.start}"
                    running.append(_start(job, forgers[job.system], work))
                if not running:
                    return tallies
                waiting = [each.process.sentinel for each in running]
                pipes.wait([*waiting, *(each.receiving for each in running)], timeout=1)
                for each in list(running):
                    if _follow(each, tallies[each.job.system]):
                        running.remove(each)
                        jobs.extendleft(
                            _after(each, forgers[each.job.system], tallies[each.job.system])
                        )
                        report(tallies)
        finally:
            for each in running:
                each.process.kill()
            gc.unfreeze()
    raise AssertionError("unreachable")


def _start(job: Job, forger: Forger, work: Path) -> _Running:
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    current = context.RawValue("q", job.start)
    process = context.Process(target=_work, args=(job, forger, work, current, sending))
    with warnings.catch_warnings():
        # Python warns of forks beside threads; the threads of those tests are not ours.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sending.close()
    return _Running(job, process, receiving, current, job.start, (job.start, time.monotonic()))


def _follow(each: _Running, tally: Tally) -> bool:
    """Take in what a process has reported; return whether it has ended."""
    ended = not each.process.is_alive()
    while each.receiving.poll():
        try:
            each.done, found = each.receiving.recv()
        except EOFError:
            break
        tally.add(found)
    if each.current.value != each.seen[0]:
        each.seen = (each.current.value, time.monotonic())
    elif time.monotonic() > each.seen[1] + DEADLOCK_SECONDS:
        os.kill(each.process.pid or 0, signal.SIGPROF)
    if ended:
        each.process.join()
        each.receiving.close()
    return ended


def _after(each: _Running, forger: Forger, tally: Tally) -> Iterator[Job]:
    """Note what killed a process that did not finish; yield what it leaves to be done."""
    job, number, code = each.job, each.current.value, each.process.exitcode
    if each.done == job.stop and code == 0:
        return
    kind, detail = "signal", f"exit code {code}"
    if code is not None and code < 0:
        detail = signal.Signals(-code).name
    if code == -signal.SIGPROF:
        kind, detail = "hang", f"more than {MAX_SECONDS:.0f} s"
    changes = forger.mutant(job.seed, number)[1]
    tally.tried += 1
    tally.findings.append(Finding(job.system, job.seed, number, kind, detail, changes))
    # What was tried but not reported yet is tried again.
    for start, stop in ((each.done, number), (number + 1, job.stop)):
        if start < stop:
            yield Job(job.system, job.seed, start, stop)


# -- the program ---------------------------------------------------------------------------------


def table_of(tallies: Mapping[str, Tally]) -> str:
    """Return one row for each system."""
    rows = [
        ("system", "mutants", "sane", "refused", "failures", "refused by code", "refused in use")
    ]
    for system, tally in tallies.items():
        kinds = Counter(finding.kind for finding in tally.findings)
        rows.append(
            (
                system,
                f"{tally.tried}",
                f"{tally.sane}",
                f"{tally.refused.total()}",
                _by_count(kinds) or "0",
                _by_count(tally.refused),
                _by_count(tally.in_use),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _by_count(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def show_one(forger: Forger, seed: int, number: int, keep: Path | None) -> int:
    """Try one mutant in this process, with a traceback if it is a finding."""
    folder, changes = forger.mutant(seed, number)
    sys.stdout.write("".join(f"{change}\n" for change in changes))
    sys.stdout.flush()
    if keep is not None:
        folder.write(keep)
    with scratch_folder() as work, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answers, _ = try_mutant(forger, seed, number, work)
        except Exception:
            traceback.print_exc()
            return FINDING
    codes = ", ".join(answers.codes) or "nothing"
    said = f"refused, {answers.refused}" if answers.refused else f"used; refused then: {codes}"
    sys.stdout.write(f"{said}\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return the exit code."""
    parser = argparse.ArgumentParser(description="Forge model folders, load them and use them.")
    parser.add_argument("--mutants", type=int, default=1000, help="of each system")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="begin nothing new after that")
    parser.add_argument("--output", type=Path, help="file of findings, one line of JSON each")
    parser.add_argument("--system", action="append", choices=SUBJECTS, help="default: all")
    parser.add_argument("--only", type=int, help="show this mutant of one system, nothing else")
    parser.add_argument("--keep", type=Path, help="with --only: a folder to be made of it")
    options = parser.parse_args(arguments)
    forgers = make_forgers(options.system or SUBJECTS)
    if options.only is not None:
        if len(forgers) != 1:
            parser.error("--only needs --system")
        (forger,) = forgers.values()
        return show_one(forger, options.seed, options.only, options.keep)
    started, written = time.monotonic(), Counter[str]()
    with (options.output or Path(os.devnull)).open("w", encoding="utf-8") as output:

        def report(tallies: Mapping[str, Tally]) -> None:
            for system, tally in tallies.items():
                for finding in tally.findings[written[system] :]:
                    output.write(f"{json.dumps(vars(finding))}\n")
                written[system] = len(tally.findings)
            output.flush()
            if sys.stderr.isatty():
                tried = sum(tally.tried for tally in tallies.values())
                speed = tried / (time.monotonic() - started)
                line = f"\r{tried} mutants, {speed:.0f} per second, {written.total()} findings "
                sys.stderr.write(line)

        tallies = run_campaign(
            forgers,
            options.mutants,
            options.seed,
            processes=options.processes,
            seconds=None if options.minutes is None else 60 * options.minutes,
            report=report,
        )
    seconds = time.monotonic() - started
    tried = sum(tally.tried for tally in tallies.values())
    sys.stdout.write(table_of(tallies))
    sys.stdout.write(
        f"{tried} mutants in {seconds:.0f} s with {options.processes} processes, "
        f"seed {options.seed}: {written.total()} findings\n"
    )
    return FINDING if written.total() else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
