"""Options that mean the same in every command, and how a command ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treelm.characters import printable
from treelm.cli.terminal import terminal_progress
from treelm.corpus.brackets import OnError, Problem, ReadOptions, ReadReport
from treelm.errors import CorpusFormatError, UsageError
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress

#: Malformed trees are left out and reported; above this share the command fails.
TOLERATED_FAILURES = 0.01

_SHOWN_PROBLEMS = 5


def _refuse_options(_: object, value: object) -> None:
    """Refuse what looks like an option but is none; a lone ``-`` is standard input."""
    for name in value if isinstance(value, list) else [value]:
        if isinstance(name, str) and name.startswith("-") and name != "-":
            raise ValueError(f'there is no option "{name}"; for a file of that name write ./{name}')


_FILE = Parameter(allow_leading_hyphen=True, validator=_refuse_options)
#: An input file, or ``-`` for standard input.
InputFile = Annotated[str, _FILE]
#: Input files; none means standard input.
InputFiles = Annotated[list[str] | None, _FILE]
#: The folder of the model that is made.
NewModel = Annotated[str, Parameter(name=["--output", "-o"])]
_OUTPUT = Parameter(name=["--output", "-o"], allow_leading_hyphen=True, validator=_refuse_options)
#: A file to write, or ``-`` for standard output.
OutputFile = Annotated[str, _OUTPUT]
#: The same where nothing need be written.
OptionalOutputFile = Annotated[str | None, _OUTPUT]


def available_threads() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return the threads asked for, or the cores available."""
    if threads is None:
        return available_threads()
    if threads < 1:
        raise UsageError("--threads must be 1 or more.")
    return threads


def memory_limit(memory: str | None, temporary: str | None, output: str) -> MemoryLimit | None:
    """Return the limit asked for, with temporary files beside the output unless told otherwise."""
    if memory is None:
        if temporary is not None:
            raise UsageError("--temporary is used with --memory only.")
        return None
    folder = Path(output).absolute().parent if temporary is None else Path(temporary)
    return MemoryLimit.parse(memory, folder)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options every command takes."""

    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False
    """Say nothing on standard error but errors."""
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"])] = False
    """Say more on standard error."""
    traceback: bool = False
    """Show where in the program an error arose."""

    @property
    def progress(self) -> Progress:
        """A bar on standard error, if that is a terminal and nobody asked for quiet."""
        return SILENT if self.quiet else terminal_progress()

    def note(self, message: str) -> None:
        """Say something on standard error unless asked to be quiet."""
        if not self.quiet:
            sys.stderr.write(f"treelm: {printable(message)}\n")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TreeOptions:
    """Options of every command that reads trees."""

    profile: str = "english"
    """Language profile: english, neutral, or the path of a .toml file."""
    on_error: OnError = "skip"
    """Malformed trees: leave them out and report them, or stop at the first."""
    max_depth: int = 1000
    """Deepest nesting of brackets accepted."""
    threads: int | None = None
    """Threads; default: the cores available. Results do not depend on it."""

    @property
    def thread_count(self) -> int:
        """Threads asked for, or the cores available."""
        return thread_count(self.threads)

    def read_options(self, *, strip: bool = True, normalize_root: bool = True) -> ReadOptions:
        """Return how brackets are read; without `strip` everything stays as written."""
        return ReadOptions(
            profile=self.profile,
            strip=strip,
            unescape=strip,
            normalize_root=normalize_root,
            max_depth=self.max_depth,
        )


def note_problems(problems: Sequence[Problem], what: str, common: CommonOptions) -> None:
    """Say what is wrong with some trees: a few of them, or with --verbose all."""
    shown = len(problems) if common.verbose else _SHOWN_PROBLEMS
    for problem in problems[:shown]:
        common.note(f"{what}: {problem.message}" if what else problem.message)
    if len(problems) > shown:
        common.note(f"... and {len(problems) - shown} more; --verbose shows them.")


def settle_reading(report: ReadReport, common: CommonOptions, source: str) -> None:
    """Report malformed trees at the end of a reading.

    Raises:
        CorpusFormatError: if there were no trees, or more than one in a hundred was malformed.
    """
    note_problems(report.problems, "", common)
    if report.failed:
        malformed = report.failed - report.stray
        summary = f"{source}: {malformed} of {report.seen} trees were malformed and left out."
        if report.stray:
            summary += f" Text outside trees was skipped in {report.stray} places."
        if report.failure_rate > TOLERATED_FAILURES:
            raise CorpusFormatError(
                f"{summary} That is more than {TOLERATED_FAILURES:.0%}: is this the right file? "
                f"`treelm inspect` lists every place.",
                code=report.problems[0].code,
            )
        common.note(summary)
    elif not report.trees:
        what = "nothing but empty elements" if report.dropped else "no trees"
        raise CorpusFormatError(
            f"{source}: holds {what}. A file of trees has lines such as (S (NP (PRP I)) ...).",
            code="E_NO_TREES",
        )
    if report.dropped:
        common.note(f"{source}: {report.dropped} trees held nothing but empty elements; left out.")
