"""What campaigns of processes share: the program in a forked process, small data, and findings."""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.every_system import TRAININGS, write_data
from tests.fuzz.campaign import FINDING
from tests.program_server import load_everything

from treelm.__main__ import main

#: Seconds after which a process hangs: far more than any needs, on a busy machine too.
HANGS = 300.0


@dataclass(frozen=True)
class Ended:
    """What a process left behind.

    Args:
        code: Exit code, or the negative number of a signal.
        stdout: Standard output.
        stderr: Standard error.
        seconds: How long it ran.
    """

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def fault(self) -> str | None:
        """What no run may do: die, hang, show a traceback, write what a terminal obeys."""
        text = self.stderr.decode(errors="backslashreplace")
        if self.code not in (0, 1, 2, 3):
            return f"exit code {self.code}: {text[-300:]}"
        if "Traceback" in text:
            return f"a traceback: {text[-300:]}"
        if not all(character == "\n" or character.isprintable() for character in text):
            return f"a message unfit for a terminal: {text[-300:]!r}"
        if self.code and not text.startswith("treelm: "):
            return f"exit code {self.code} without a message"
        return None


def run_program(
    arguments: Sequence[str],
    folder: Path,
    *,
    variables: Mapping[str, str | None] | None = None,
    prepare: Callable[[], object] = lambda: None,
    kill_after: float | None = None,
) -> Ended:
    """Run ``treelm`` in a process forked from this one, which has loaded it.

    Args:
        arguments: Command and options.
        folder: Working folder.
        variables: Changes of the environment; None removes a variable.
        prepare: Done in the process before the program begins.
        kill_after: Seconds after which it is killed by SIGKILL.
    """
    started = time.monotonic()
    out, err = os.pipe(), os.pipe()
    with warnings.catch_warnings():
        # Python warns of forks beside threads; the threads of tests are not ours.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if not process:
        _become_program(arguments, folder, variables or {}, prepare, (out[1], err[1]))
    for _, writing in (out, err):
        os.close(writing)
    code, *texts = _wait(process, (out[0], err[0]), kill_after)
    return Ended(code, texts[0], texts[1], time.monotonic() - started)


def _become_program(
    arguments: Sequence[str],
    folder: Path,
    variables: Mapping[str, str | None],
    prepare: Callable[[], object],
    streams: tuple[int, int],
) -> None:
    """Be the program, and never return."""
    code: object = 70
    try:
        nowhere = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((nowhere, *streams)):
            os.dup2(descriptor, number)
        os.closerange(3, 64)
        # Those of the parent may lead elsewhere, as in tests.
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            for number, mode in enumerate("rww")
        )
        os.chdir(folder)
        for name, value in variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None
        sys.argv = ["treelm", *arguments]
        warnings.resetwarnings()
        prepare()
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                try:
                    stream.flush()
                except (OSError, ValueError):
                    code = code or 120
        os._exit(code if isinstance(code, int) else 70)


def _wait(
    process: int, streams: tuple[int, int], kill_after: float | None
) -> tuple[int, bytes, bytes]:
    """Read two streams until the process ends; return its exit code and what was read."""
    ends = time.monotonic() + (HANGS if kill_after is None else kill_after)
    found: dict[int, list[bytes]] = {stream: [] for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(ends - time.monotonic(), 0))
            if not ready:
                os.kill(process, signal.SIGKILL)
                ends = time.monotonic() + HANGS
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                found[key.fd].append(data)
                if not data:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    while not (ended := os.waitpid(process, os.WNOHANG))[0]:  # its streams may be closed before
        if time.monotonic() >= ends:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.001)
    code = os.waitstatus_to_exitcode(ended[1])
    return code, b"".join(found[streams[0]]), b"".join(found[streams[1]])


def prepare_models(folder: Path) -> None:
    """Write small data and a small model of every system into a folder."""
    write_data(folder)
    lines = ["vocabulary --text train.txt --min-count=1 -o words"]
    lines += [f"train {line} -q" for line in TRAININGS.values()]
    for line in lines:
        done = run_program(line.split(), folder)
        if done.code:
            raise RuntimeError(f"{line}: {done.stderr.decode()}")


@contextmanager
def campaign_folder() -> Iterator[Path]:
    """Yield an empty folder that is removed, whatever its permissions are by then."""
    name = tempfile.mkdtemp(prefix="treelm-campaign-")
    try:
        yield Path(name)
    finally:
        for path in Path(name).rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(name, ignore_errors=True)


@dataclass
class Campaign:
    """Tries, what came of them, and what should not have.

    Args:
        tried: Number of tries, by kind.
        ends: How they ended, by kind and end.
        findings: What was wrong.
    """

    tried: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def note(self, kind: str, end: str, fault: str | None, **facts: Any) -> None:
        """Count a try, and keep it if it has a fault."""
        self.tried[kind] += 1
        self.ends[f"{kind}: {end}"] += 1
        if fault is not None:
            self.findings.append({"kind": kind, "fault": fault, **facts})

    def finish(self, output: Path | None, seconds: float) -> int:
        """Write findings and a summary; return the exit code."""
        if output is not None:
            lines = (json.dumps(finding, default=str) + "\n" for finding in self.findings)
            output.write_text("".join(lines))
        for name, count in sorted(self.ends.items()):
            sys.stdout.write(f"{count:6d}  {name}\n")
        for finding in self.findings[:20]:
            sys.stdout.write(f"finding: {json.dumps(finding, default=str)}\n")
        sys.stdout.write(
            f"{self.tried.total()} tries in {seconds:.0f} s, {len(self.findings)} findings\n"
        )
        return FINDING if self.findings else 0


def run_campaign(
    description: str,
    attempt: Callable[[random.Random, Path, Campaign], object],
    arguments: Sequence[str] | None,
    *,
    tries: int,
) -> int:
    """Parse the arguments of a campaign, run it and return the exit code.

    Args:
        description: What it does.
        attempt: Makes one try in a folder of models, with random choices of its own.
        arguments: Those of the program; None for those of the process.
        tries: How many there are by default.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tries", type=int, default=tries)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after that")
    parser.add_argument("--only", type=int, help="make this try alone")
    parser.add_argument("--output", type=Path, help="file of findings, one line of JSON each")
    options = parser.parse_args(arguments)
    campaign, started = Campaign(), time.monotonic()
    numbers = range(options.tries) if options.only is None else [options.only]
    load_everything()
    with campaign_folder() as folder:
        prepare_models(folder)
        for number in numbers:
            if time.monotonic() > started + 60 * options.minutes:
                break
            before = len(campaign.findings)
            attempt(random.Random(f"{options.seed} {number}"), folder, campaign)
            for finding in campaign.findings[before:]:
                finding.update(seed=options.seed, number=number)
    return campaign.finish(options.output, time.monotonic() - started)
