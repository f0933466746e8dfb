"""Signals, closed streams, broken pipes, forks, and memory that runs out."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command_line import (
    HANGS,
    SANITIZED,
    assert_fine,
    assert_refused,
    environment,
    finish,
    interrupt,
    read_answer,
    start_treelm,
    treelm,
)
from tests.hostile.inputs import GOOD, READ

READERS = {
    "transform": ["transform", "--pipeline", "clean"],
    "binarize": ["transform", "--pipeline", "binarize"],
    "draw": ["draw"],
    "tokenize": ["tokenize", "--no-split"],
}


def _input(command: str) -> bytes:
    """Return a line or more of what a command reads."""
    return b"It rained in the harbour .\n" if command == "tokenize" else GOOD


@pytest.mark.parametrize("command", READERS)
def test_hostile_processes_reader_leaves(tmp_path: Path, command: str) -> None:
    """As `treelm ... | head -1` does: quiet, exit code 0."""
    file = tmp_path / "trees.mrg"
    file.write_bytes(_input(command) * 20_000)  # far more than fits into a pipe
    process = start_treelm(*READERS[command], file)
    assert process.stdout is not None
    assert len(os.read(process.stdout.fileno(), 10)) == 10
    process.stdout.close()
    process.stdout = None
    done = finish(process)
    assert done.stderr == b""
    assert done.returncode == 0


@pytest.mark.parametrize("arguments", [["demo"], ["inspect"], ["--version"]], ids=" ".join)
def test_hostile_processes_reader_has_left_before(sample_file: Path, arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    files = [sample_file] if arguments == ["inspect"] else []
    process = start_treelm(*arguments, *files, stdout=writing)
    os.close(writing)
    done = finish(process)
    assert done.stderr == b""
    assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [READERS["transform"], READERS["tokenize"], ["evaluate", "parses", "-"]],
    ids=" ".join,
)
def test_hostile_processes_closed_standard_input(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD)
    files = [file] if "evaluate" in arguments else []
    process = start_treelm(*arguments, *files, stdin=None, closed=[0])
    done = finish(process)
    assert_refused(done, 3, "standard input")
    assert done.stdout == b""


def test_hostile_processes_closed_standard_input_that_is_not_needed(tmp_path: Path) -> None:
    file, target = tmp_path / "trees.mrg", tmp_path / "out.mrg"
    file.write_bytes(GOOD)
    process = start_treelm(*READERS["transform"], file, "-o", target, stdin=None, closed=[0])
    assert assert_fine(finish(process)) == b""
    assert target.read_bytes() == READ


@pytest.mark.parametrize("arguments", [["transform", "--pipeline", "clean"], ["demo"], ["--help"]])
def test_hostile_processes_closed_standard_output(arguments: list[str]) -> None:
    process = start_treelm(*arguments, stdout=None, closed=[1])
    assert_refused(finish(process), 1, "standard output")


def test_hostile_processes_closed_standard_output_that_is_not_needed(tmp_path: Path) -> None:
    file, target = tmp_path / "trees.mrg", tmp_path / "out.mrg"
    file.write_bytes(GOOD)
    process = start_treelm(*READERS["transform"], file, "-o", target, stdout=None, closed=[1])
    assert_fine(finish(process))
    assert target.read_bytes() == READ


def test_hostile_processes_closed_standard_error(tmp_path: Path) -> None:
    process = start_treelm(*READERS["transform"], stderr=None, closed=[2])
    assert process.stdin is not None
    process.stdin.write(GOOD)
    done = finish(process)
    assert done.returncode == 0
    assert done.stdout == READ


@pytest.mark.parametrize("kind", ["full", "reader has left"])
def test_hostile_processes_work_goes_on_when_nobody_takes_its_messages(
    tmp_path: Path, kind: str
) -> None:
    """A disk filled by messages, or a reader of them that ended, must not cost the results."""
    file, model = tmp_path / "text.txt", tmp_path / "model"
    file.write_text("It rained .\nIt rained in the harbour .\n" * 5)
    assert_fine(treelm("train", "ngram", "--text", file, "--order", "2", "-q", "-o", model))
    file.write_text("Strange words everywhere , unknown ones .\n" * 3)
    expected = treelm("score", "-m", model, file)
    assert b"unknown" in expected.stderr
    if kind == "full":
        messages = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, messages = os.pipe()
        os.close(reading)
    done = finish(start_treelm("score", "-m", model, file, stderr=messages))
    os.close(messages)
    assert (done.returncode, done.stdout) == (0, expected.stdout)


@pytest.mark.parametrize("columns", ["9" * 30, "1", "x", "\u0663\u0663\u0663", ""])
def test_hostile_processes_help_in_odd_columns(columns: str) -> None:
    assert b"Usage" in assert_fine(finish(start_treelm("--help", env={"COLUMNS": columns})))


@pytest.mark.skipif(SANITIZED, reason="sanitizers need more stack")
def test_hostile_processes_little_stack(tmp_path: Path, sample_file: Path) -> None:
    """Solvers of matrices would overflow it in every thread, and the process would die."""
    limits = {resource.RLIMIT_STACK: 1 << 18}
    arguments = ("train", "hhmm", "--trees", sample_file, "-q", "-o", tmp_path / "model")
    assert_fine(finish(start_treelm(*arguments, limits=limits)))
    assert (tmp_path / "model" / "manifest.json").is_file()


def feed_some(process: subprocess.Popen[bytes], megabytes: int = 8, content: bytes = GOOD) -> None:
    """Write until the program has surely begun to read."""
    assert process.stdin is not None
    for _ in range(megabytes):
        process.stdin.write(content * (1_000_000 // len(content)))
        process.stdin.flush()


@pytest.mark.parametrize(
    ("command", "threads"), [("transform", "1"), ("transform", "2"), ("tokenize", "1")]
)
def test_hostile_processes_interrupted(tmp_path: Path, command: str, threads: str) -> None:
    target = tmp_path / "out.mrg"
    target.write_bytes(b"before")
    options = ["--threads", threads] if command == "transform" else []
    process = start_treelm(*READERS[command], *options, "-o", target)
    feed_some(process, 8 if command == "transform" else 2, _input(command))
    assert len(list(tmp_path.iterdir())) == 2  # the temporary file lies beside its target
    interrupt(process)
    assert_refused(finish(process), 130, "interrupted")
    assert target.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [target]


def test_hostile_processes_interrupted_while_it_waits() -> None:
    process = start_treelm(*READERS["transform"], "--line-buffered")
    assert process.stdin is not None
    process.stdin.write(GOOD)
    process.stdin.flush()
    assert read_answer(process) == READ
    interrupt(process)
    assert_refused(finish(process), 130, "interrupted")


#: Seconds between two signals to an impatient person's process: some come while it unwinds, some
#: while it cleans up, some while the interpreter ends.
PAUSES = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03)


@pytest.mark.parametrize("pause", PAUSES)
def test_hostile_processes_interrupted_again_and_again(tmp_path: Path, pause: float) -> None:
    """One message, one exit status, and nothing half-written, however often Ctrl-C is pressed."""
    process = start_treelm(*READERS["transform"], "-o", tmp_path / "out.mrg")
    feed_some(process)
    interrupt(process, pause=pause)
    done = finish(process)
    assert done.stderr == b"treelm: interrupted\n"
    assert done.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_hostile_processes_terminated_again_and_again(tmp_path: Path) -> None:
    process = start_treelm(*READERS["transform"], "-o", tmp_path / "out.mrg")
    feed_some(process)
    interrupt(process, signal.SIGTERM, pause=0.001)
    done = finish(process)
    assert done.stderr == b""
    assert done.returncode == 143
    assert list(tmp_path.iterdir()) == []


def test_hostile_processes_interrupted_while_it_starts(tmp_path: Path) -> None:
    """As in the middle of an import that takes long, here for ever."""
    (tmp_path / "cyclopts.py").write_text(
        "import sys, time\nsys.stdout.write('here\\n')\nsys.stdout.flush()\ntime.sleep(1000)\n"
    )
    paths = [str(tmp_path), *filter(None, [environment(None).get("PYTHONPATH")])]
    process = start_treelm("--version", env={"PYTHONPATH": os.pathsep.join(paths)})
    assert read_answer(process) == b"here\n"
    interrupt(process, pause=0.01)
    done = finish(process)
    assert done.stderr == b"treelm: interrupted\n"
    assert done.returncode == 130


def test_hostile_processes_interrupted_while_nobody_reads(tmp_path: Path) -> None:
    """What is left for a reader that has stopped reading does not keep the process."""
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD * 20_000)  # far more than fits into a pipe
    process = start_treelm(*READERS["transform"], file)
    assert read_answer(process) != b""
    interrupt(process)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    done = finish(process)
    assert done.stderr == b"treelm: interrupted\n"
    assert done.returncode == 130


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_hostile_processes_killed(tmp_path: Path, which: signal.Signals) -> None:
    if signal.getsignal(which) == signal.SIG_IGN:
        pytest.skip("programs started here ignore the signal, as under nohup")
    target = tmp_path / "out.mrg"
    target.write_bytes(b"before")
    process = start_treelm(*READERS["transform"], "-o", target)
    feed_some(process)
    process.send_signal(which)
    process.wait(HANGS)
    finish(process)
    assert process.returncode in (-which, 128 + which)
    assert target.read_bytes() == b"before"


def test_hostile_processes_terminated_leaves_no_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / "out.mrg"
    process = start_treelm(*READERS["transform"], "-o", target)
    feed_some(process)
    process.terminate()
    process.wait(HANGS)
    finish(process)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(SANITIZED, reason="a sanitizer reserves more memory than the limit")
def test_hostile_processes_out_of_memory(tmp_path: Path) -> None:
    file, target = tmp_path / "trees.mrg", tmp_path / "out.txt"
    # A picture of many gigabytes: every level is indented further than the one above.
    file.write_bytes(b"(A (X x) (B (Y y) " * 20_000 + b"(Z z)" + b"))" * 20_000)
    process = start_treelm(
        *("draw", "--layout", "indented", "--max-depth", "50000", file, "-o", target),
        limits={resource.RLIMIT_AS: 600 << 20},
    )
    assert_refused(finish(process), 1, "memory")
    assert list(tmp_path.iterdir()) == [file]


def test_hostile_processes_endless_input_in_constant_memory(tmp_path: Path) -> None:
    """Resident memory does not grow with what has been read."""
    process = start_treelm(*READERS["transform"], "--threads", "1", stdout=subprocess.DEVNULL)
    sizes = []
    for _ in range(3):
        feed_some(process, 15)
        sizes.append(resident_megabytes(process.pid))
    assert_fine(finish(process))
    if sizes[0]:
        assert max(sizes) < sizes[0] + 60
        assert max(sizes) < (2000 if SANITIZED else 250)


def resident_megabytes(process: int) -> int:
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return 0
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) >> 10


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from treelm.corpus.brackets import read_packed, read_trees
from treelm.errors import EngineError

path, when = sys.argv[1:]
count = lambda: sum(len(batch) for batch in read_packed(path, threads=2))
before = read_packed(path, threads=2)
if when == "after":
    expected = sum(len(batch) for batch in before)
else:
    first = next(before)
    expected = count()
child = os.fork()
if child == 0:
    code = 1
    try:
        assert count() == expected
        if when == "amid":
            try:
                for _ in before:
                    pass
            except EngineError as error:
                assert error.code == "E_FORKED", error.code
            else:
                raise AssertionError("a stream of the parent was used by its child")
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)
_, status = os.waitpid(child, 0)
assert status == 0, status
if when == "amid":
    assert len(first) + sum(len(batch) for batch in before) == expected
assert count() == expected
print(expected)
"""


@pytest.mark.parametrize(
    "when",
    [
        "after",
        "amid",
    ],
)
def test_hostile_processes_fork_after_use(tmp_path: Path, when: str) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD * 60_000)
    done = subprocess.run(
        [sys.executable, "-c", FORK, file, when],
        capture_output=True,
        env=environment(None),
        timeout=HANGS,
    )
    assert done.stderr == b""
    assert done.stdout.strip() == b"60000"


def test_hostile_processes_many_at_once_write_one_target(tmp_path: Path) -> None:
    """The last one wins, whole."""
    file, target = tmp_path / "trees.mrg", tmp_path / "out.mrg"
    file.write_bytes(GOOD * 5000)
    running = [start_treelm(*READERS["transform"], file, "-o", target) for _ in range(4)]
    for process in running:
        assert_fine(finish(process))
    assert target.read_bytes() == READ * 5000
    assert sorted(tmp_path.iterdir()) == sorted([file, target])


def test_hostile_processes_strange_surroundings(tmp_path: Path) -> None:
    """No home, no locale, no terminal, odd widths: none of it matters."""
    variables = {
        "HOME": "/nowhere",
        "LC_ALL": "nonsense",
        "TERM": "",
        "COLUMNS": "30",
        "LINES": "x",
    }
    done = treelm(*READERS["transform"], stdin=GOOD, env=variables, cwd=tmp_path)
    assert assert_fine(done) == READ
    assert_fine(treelm("--help", env=variables))
    assert_fine(treelm("demo", env=variables), None)  # it names the ready models


def test_hostile_processes_terminal_without_columns() -> None:
    assert b"Usage" in assert_fine(treelm("--help", env={"COLUMNS": "0"}))


def test_hostile_processes_folder_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    script = f"cd {folder} && rmdir {folder} && exec {sys.executable} -m treelm transform --pipeline clean"
    done = subprocess.run(
        ["sh", "-c", script], input=GOOD, capture_output=True, env=environment(None), timeout=HANGS
    )
    assert done.stdout == READ
    assert done.returncode == 0


def test_hostile_processes_late_signals_are_not_complained_about() -> None:
    """Python may learn of a signal in one thread and find it ignored in another."""
    script = """
import atexit
from treelm.cli.process import run_process

class Late:
    def __init__(self, error):
        self.error = error
    def __del__(self):
        raise self.error

def end():
    Late(OSError("Signal 2 ignored due to race condition"))
    Late(ValueError("something else"))

atexit.register(end)
run_process(lambda: 3)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(None), capture_output=True, check=False
    )
    assert done.returncode == 3
    assert b"race condition" not in done.stderr
    assert b"something else" in done.stderr
