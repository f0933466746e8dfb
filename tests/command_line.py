"""Runs the program `treelm` as its users do: a process of its own, bytes in and bytes out.

The tests in tests/hostile also run against a build with sanitizers. The environment variable
``TREELM_SANITIZED`` says so; time limits are then longer, and whatever a sanitizer prints fails the
test.

A busy machine makes everything late, so nothing here depends on a clock: what must be quick is
limited in processor time, and waiting ends only when a process surely hangs.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from tests.program_server import ProgramServer

SANITIZED = bool(os.environ.get("TREELM_SANITIZED"))
#: Factor on every time limit.
PATIENCE = 10 if SANITIZED else 1
#: Seconds after which a process hangs: far more than any needs, on a busy machine too.
HANGS = 300 * PATIENCE

Argument = str | bytes | os.PathLike[str]
#: What a finished command left behind: exit code, standard output, standard error.
Done = subprocess.CompletedProcess[bytes]

_UNKNOWN_WORDS = re.compile(rb"treelm: (?:warning: )?[\d.]+ % of the words .*\n")

_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(code, peak // (1 << 20 if sys.platform == "darwin" else 1 << 10))
"""


def treelm(
    *arguments: Argument,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    processor_seconds: int | None = None,
    closed: Sequence[int] = (),
) -> Done:
    """Run the program to its end, in a process forked from one that has loaded the packages.

    With variables of its own it is started from nothing, since some of them matter only then.

    Args:
        arguments: Command and options.
        stdin: Bytes on standard input.
        env: Variables added to the environment.
        cwd: Folder to run in.
        processor_seconds: Processor time after which the system kills it.
        closed: Streams that are closed before the program starts, as ``<&-`` does.
    """
    seconds = {} if processor_seconds is None else {resource.RLIMIT_CPU: processor_seconds}
    limits = {kind: value * PATIENCE for kind, value in seconds.items()}
    variables = environment(env)
    if _without_test_name(variables) == _first_variables():
        code, out, err = _server().call(
            [os.fspath(argument) for argument in arguments],
            stdin,
            folder=os.fspath(cwd or Path.cwd()),
            limits=limits,
            closed=closed,
            timeout=HANGS,
        )
        done = Done(arguments, code, out, err)
    else:
        done = subprocess.run(
            _command(arguments),
            input=stdin,
            capture_output=True,
            env=variables,
            cwd=cwd,
            timeout=HANGS,
            # Most need no limit and start faster without.
            preexec_fn=preparation(limits, closed) if limits or closed else None,
        )
    _check_sanitizers(done.stderr)
    return done


@cache
def _first_variables() -> dict[str, str]:
    """Return the environment when the first program was run, which is that of the server."""
    return _without_test_name(environment(None))


@cache
def _server() -> ProgramServer:
    return ProgramServer(_first_variables())


def _without_test_name(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name != "PYTEST_CURRENT_TEST"}


def start_treelm(
    *arguments: Argument,
    stdin: int | None = subprocess.PIPE,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    closed: Iterable[int] = (),
    passed: Sequence[int] = (),
    limits: Mapping[int, int] | None = None,
) -> subprocess.Popen[bytes]:
    """Start the program, for pipes and signals; finish it with `finish`.

    Args:
        arguments: Command and options.
        stdin: Standard input, as for `subprocess.Popen`.
        stdout: Standard output.
        stderr: Standard error.
        env: Variables added to the environment.
        cwd: Folder to run in.
        closed: File descriptors closed before the program starts, as ``<&-`` does.
        passed: File descriptors handed on, to be named as ``/dev/fd/N``.
        limits: Resource limits by their number in the module `resource`.
    """
    return subprocess.Popen(
        _command(arguments),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment(env),
        cwd=cwd,
        pass_fds=passed,
        preexec_fn=preparation(limits, closed),  # noqa: PLW1509 (tests start no threads)
    )


def preparation(
    limits: Mapping[int, int] | None = None, closed: Iterable[int] = ()
) -> Callable[[], None]:
    """Return what a child process does before it becomes a program of its own.

    Args:
        limits: Resource limits by their number in the module `resource`.
        closed: File descriptors to close.
    """

    def prepare() -> None:
        # A shell that runs tests in the background hands down an ignored SIGINT.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for kind, value in (limits or {}).items():
            resource.setrlimit(kind, (value, value))
        for descriptor in closed:
            os.close(descriptor)

    return prepare


@contextlib.contextmanager
def pipe_holding(content: bytes) -> Iterator[int]:
    """Yield the reading end of a pipe that holds a little: what the shell's ``<(...)`` gives."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    try:
        yield reading
    finally:
        os.close(reading)


def finish(process: subprocess.Popen[bytes]) -> Done:
    """Close standard input, read the rest and wait for the end."""
    with process:  # closes the pipes in any case
        try:
            out, err = process.communicate(timeout=HANGS)
        finally:
            process.kill()
    _check_sanitizers(err or b"")
    return Done(process.args, process.returncode, out or b"", err or b"")


def read_answer(process: subprocess.Popen[bytes]) -> bytes:
    """Return what a process that goes on has written, as soon as there is something."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], HANGS)
    assert ready, "nothing came out"
    return os.read(process.stdout.fileno(), 1000)


def interrupt(
    process: subprocess.Popen[bytes], which: signal.Signals = signal.SIGINT, *, pause: float = 1
) -> None:
    """Send a signal again and again until the process ends, as an impatient person does.

    Python misses a signal that arrives just before it begins to read.

    Args:
        process: Gets the signals.
        which: The signal.
        pause: Seconds between two of them.
    """
    given_up = time.monotonic() + HANGS
    while process.poll() is None:
        assert time.monotonic() < given_up, "the process does not end"
        process.send_signal(which)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(pause)


@contextlib.contextmanager
def processor_time_below(seconds: float) -> Iterator[None]:
    """Assert that what is done inside, here and in processes that end, takes little work."""
    started = _processor_time()
    yield
    assert _processor_time() - started < seconds * PATIENCE


def _processor_time() -> float:
    """Return the processor time of this process and of its children that ended."""
    return sum(os.times()[:4])


def treelm_peak_memory(*arguments: Argument) -> tuple[Done, int]:
    """Run the program without input or output; return its end, and its peak memory in MB."""
    done = subprocess.run(
        # A small process in between: after a fork, the peak counts what the parent holds.
        [sys.executable, "-S", "-c", _MEASURE, *_command(arguments)],
        capture_output=True,
        env=environment(None),
        timeout=HANGS,
    )
    _check_sanitizers(done.stderr)
    code, peak = map(int, done.stdout.split())
    return Done(done.args, code, b"", done.stderr), peak


def treelm_inside(capture: pytest.CaptureFixture[bytes], *arguments: Argument) -> Done:
    """Run a command in this process, which is quicker; for files only, with ``capfdbinary``.

    Warnings are not shown.
    """
    from treelm.cli.main import run
    from treelm.errors import TreelmWarning

    capture.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        code = run([os.fsdecode(argument) for argument in arguments])
    sys.stdout.flush()
    out, err = capture.readouterr()
    _check_sanitizers(err)
    return Done(arguments, code, out, err)


def treelm_line(folder: Path, capture: pytest.CaptureFixture[bytes], line: str) -> Done:
    """Run a command in this process, as one line in which ``@NAME`` is a name in a folder."""
    words = (folder / word[1:] if word[0] == "@" else word for word in line.split())
    return treelm_inside(capture, *words)


def assert_refused(done: Done, code: int, *parts: str) -> str:
    """Assert exit code and a message that helps; return the message.

    Args:
        done: The finished command.
        code: Exit code it must have.
        parts: What the message must hold.
    """
    message = done.stderr.decode()
    assert "Traceback" not in message, message
    assert done.returncode == code, message
    assert message.startswith("treelm: "), message
    assert message.endswith("\n")
    assert "\n\n" not in message
    assert len(message) < 6000
    # Nothing that a terminal would obey.
    assert all(character == "\n" or character.isprintable() for character in message), message
    for part in parts:
        assert part in message, message
    return message


def assert_fine(done: Done, stderr: bytes | None = b"") -> bytes:
    """Assert success with this on standard error (None: anything but a traceback); return output.

    What is said there about the share of unknown words does not count: few tests are about that.
    """
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode == 0, done.stderr.decode(errors="backslashreplace")
    if stderr is not None:
        assert _UNKNOWN_WORDS.sub(b"", done.stderr) == stderr
    return done.stdout


def run_script(script: Path, *arguments: object) -> str:
    """Run a Python script to its end, which must be a good one; return what it printed."""
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(None),
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _command(arguments: Iterable[Argument]) -> list[str | bytes]:
    return [sys.executable, "-m", "treelm", *(os.fspath(argument) for argument in arguments)]


def environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """Return the parent's environment, with paths that also hold in another folder."""
    found = dict(os.environ)
    if found.get("PYTHONPATH"):
        entries = found["PYTHONPATH"].split(os.pathsep)
        found["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in entries)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        found.pop(name, None)
    return found | dict(extra or {})


def _check_sanitizers(stderr: bytes) -> None:
    text = stderr.decode(errors="backslashreplace")
    assert "AddressSanitizer" not in text, text
    assert "runtime error:" not in text, text
