"""Runs commands in odd environments and with impossible options, and looks at how they end.

    python tests/fuzz/environment_campaign.py --tries 4000 --seed 1 --minutes 20 --output findings.jsonl

A command ends with a result, the same as always, or with an exit code of its own and a message: no
signal, no traceback, no half-written file, no hang. Anything else is a finding, and the exit code is
77. One try in five is an odd environment, often several at once; the others are pairs of options.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

if __name__ == "__main__":  # run as a script, whose folder is all that Python looks into
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cli.every_option import Call, every_call, is_numeric, is_written
from tests.command_line import SANITIZED
from tests.fuzz.forked_program import Campaign, Ended, run_campaign, run_program
from tests.fuzz.kill_campaign import COMMANDS, contents, copy_data, undisturbed

#: Commands that write to standard output.
READERS = (
    "score -m ngram dev.txt",
    "surprisal -m hhmm dev.txt",
    "parse -m pcfg dev.txt",
    "classify -m lsvm dev.txt",
    "sample -m ngram -n 3 --seed 1",
    "evaluate perplexity -m ngram dev.txt --json",
    "evaluate parses dev.mrg dev.mrg",
    "inspect train.mrg",
    "inspect pcfg",
    "draw dev.mrg --limit 2",
    "transform --pipeline treelet dev.mrg",
    "tokenize dev.txt",
    "compare ngram hhmm dev.txt",
    "--help",
    "train --help",
    "--version",
)
_ODD_VALUES = (
    "", "-1", "0", "1", "2", "2.5", "nan", "inf", "-inf", "1e308", str(1 << 31), str(1 << 63),
    str(1 << 64), "9" * 400, "x", "none", "all", "true", "-", "--", "=", "no-such-file", "\x1b[31m",
    "\u2028", "é", ".", "/", "/dev/null", "/proc/self/mem", "a,b", "[]", "{}", "%s",
)  # fmt: skip
_CLOSED = {"closed 0": (0,), "closed 1": (1,), "closed 2": (2,), "all closed": (0, 1, 2)}
_VARIABLES: dict[str, dict[str, str | None]] = {
    "LANG": {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"},
    "LC_ALL nonsense": {"LC_ALL": "\udcff.x"},
    "no HOME": {"HOME": None},
    "HOME missing": {"HOME": "/no/such/folder"},
    "no PATH": {"PATH": None},
    "TMPDIR missing": {"TMPDIR": "/no/such/folder"},
    "TMPDIR a file": {"TMPDIR": "/dev/null"},
    "TMPDIR read-only": {"TMPDIR": "/proc"},
    "NO_COLOR": {"NO_COLOR": "1"},
    "FORCE_COLOR": {"FORCE_COLOR": "1"},
    "COLUMNS 1": {"COLUMNS": "1"},
    "COLUMNS huge": {"COLUMNS": "9" * 30},
    "COLUMNS nonsense": {"COLUMNS": "x"},
    "TERM nonsense": {"TERM": "no-such-terminal"},
    "TZ nonsense": {"TZ": "Nowhere/At All"},
    "OMP_NUM_THREADS 0": {"OMP_NUM_THREADS": "0"},
    "SOURCE_DATE_EPOCH nonsense": {"SOURCE_DATE_EPOCH": "x"},
}
_LIMITS = {
    "no space at all": (resource.RLIMIT_FSIZE, 0),
    "little space": (resource.RLIMIT_FSIZE, 3000),
    "no core files": (resource.RLIMIT_CORE, 0),
    "few open files": (resource.RLIMIT_NOFILE, 12),
    "two open files more": (resource.RLIMIT_NOFILE, 6),
    "no new processes": (resource.RLIMIT_NPROC, 1),
    "small stack": (resource.RLIMIT_STACK, 1 << 18),
}


def _close(streams: tuple[int, ...]) -> None:
    for number in streams:
        with contextlib.suppress(OSError):  # closed by another environment
            os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)


def _full_output() -> None:
    with contextlib.suppress(OSError):
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def _reader_has_left() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)


def _cwd_deleted() -> None:
    folder = Path.cwd() / "deleted"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()


def _little_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


_PREPARATIONS: dict[str, Callable[[], object]] = {
    "output full": _full_output,
    "reader has left": _reader_has_left,
    "cwd deleted": _cwd_deleted,
    "little memory": _little_memory,
    "umask 777": lambda: os.umask(0o777),
    "umask 0": lambda: os.umask(0),
    "stdin a folder": lambda: os.dup2(os.open(".", os.O_RDONLY), 0),
    "stdin endless": lambda: os.dup2(os.open("/dev/zero", os.O_RDONLY), 0),
    "stderr full": lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 2),
    **{name: lambda streams=streams: _close(streams) for name, streams in _CLOSED.items()},
    **{name: lambda limit=limit: _limit(*limit) for name, limit in _LIMITS.items()},
}
if SANITIZED:  # a sanitizer needs all of the address space
    del _PREPARATIONS["little memory"], _PREPARATIONS["small stack"]
#: What may be refused but, where it is not, changes nothing of the result.
ENVIRONMENTS = (*_VARIABLES, *_PREPARATIONS)
#: After these nothing can be said about output or messages.
_MUTE = {"output full", "reader has left", "stderr full", *_CLOSED}


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, most))


@cache
def _usual(line: str, folder: Path) -> bytes:
    """Return what a command that reads writes in an ordinary environment."""
    done = run_program(line.split(), folder)
    if done.code:
        raise RuntimeError(f"{line}: {done.stderr.decode()}")
    return done.stdout


def _fault(done: Ended, environments: set[str]) -> str | None:
    if environments & {"stderr full", "closed 2", "all closed"} and done.code in (0, 1, 2, 3):
        return None
    return done.fault


def try_environment(choose: random.Random, folder: Path, campaign: Campaign) -> None:
    """Run one command in an odd environment."""
    chosen = set(choose.sample(ENVIRONMENTS, choose.choice((1, 1, 1, 2, 3))))
    writes = choose.random() < 0.5
    name = choose.choice([*COMMANDS] if writes else READERS)
    arguments, target, _ = COMMANDS[name] if writes else (name.split(), "", False)
    expected = undisturbed(name, folder)[0] if writes else _usual(name, folder)
    variables: dict[str, str | None] = {}
    for environment in sorted(chosen & set(_VARIABLES)):
        variables |= _VARIABLES[environment]
    work = folder / "work"
    copy_data(folder, work)

    def prepare() -> None:
        for environment in sorted(chosen & set(_PREPARATIONS), key=ENVIRONMENTS.index):
            _PREPARATIONS[environment]()

    done = run_program(arguments, work, variables=variables, prepare=prepare)
    fault = _fault(done, chosen)
    if fault is None and writes and "cwd deleted" not in chosen:
        found = _readable(work / target)
        if done.code == 0 and found != expected:
            fault = "exit code 0, but another result"
        elif done.code and found is not None and not _may_stay(found, expected, target, chosen):
            fault = f"exit code {done.code}, but something was written"
    changes_help = bool(chosen & {"COLUMNS 1", "FORCE_COLOR", "LANG", "COLUMNS huge"})
    other = done.stdout != expected and not (changes_help and name.endswith("--help"))
    if fault is None and other and not writes and not done.code and not chosen & _MUTE:
        fault = f"exit code 0, but another output: {done.stdout[-200:]!r}"
    shutil.rmtree(work)
    end = "fine" if not done.code else "refused"
    for environment in sorted(chosen):
        campaign.ends[f"in environment: {environment}"] += 1
    facts = {"line": arguments, "environments": sorted(chosen), "code": done.code}
    campaign.note("environment", end, fault, **facts)


def _may_stay(
    found: dict[str, bytes], expected: object, target: str, environments: set[str]
) -> bool:
    """Return whether a command that failed may have written this: all of it, or what is resumed."""
    return target.endswith(".forest") or ("output full" in environments and found == expected)


def _readable(path: Path) -> dict[str, bytes] | None:
    """Return the contents of what was written, whatever its permissions."""
    for each in (path, *path.rglob("*")) if path.exists() else ():
        each.chmod(0o700)
    return contents(path)


_CALLS = [call for call in every_call() if call.words != ("demo",)]


def try_options(choose: random.Random, folder: Path, campaign: Campaign) -> None:
    """Call a command with two options of odd values; its input does not exist."""
    call: Call = choose.choice(_CALLS)
    # A traceback that is asked for is no finding.
    options = [each for each in call.arguments if each.index is None and each.name != "--traceback"]
    first = choose.choice(options) if options else None
    line = call.line("out", without=first)
    for argument in [each for each in (first, choose.choice(options or [None])) if each]:
        value = choose.choice(_ODD_VALUES)
        if is_written(argument) and value.startswith(("/", ".")):
            value = "missing/x"  # nothing outside is written
        if is_numeric(argument) and choose.random() < 0.3:
            value = str(choose.randint(-3, 300))
        line.append(f"{argument.name}={value}" if choose.random() < 0.9 else argument.name)
    work = folder / "work"
    work.mkdir()
    done = run_program(line, work)
    left = [path.name for path in work.iterdir()]
    fault = done.fault
    if fault is None and left and done.code:
        fault = f"exit code {done.code}, but something was written: {left}"
    shutil.rmtree(work)
    campaign.note("options", "fine" if not done.code else f"code {done.code}", fault, line=line)


def attempt(choose: random.Random, folder: Path, campaign: Campaign) -> None:
    """Make one try of either kind."""
    odd = choose.random() < 0.2
    (try_environment if odd else try_options)(choose, folder, campaign)


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign and return the exit code."""
    return run_campaign("Run commands in odd environments.", attempt, arguments, tries=4000)


if __name__ == "__main__":
    sys.exit(main())
