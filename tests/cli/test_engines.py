"""`--engine`, `--workers` and `--address`: many workers write what one process writes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.command_line import (
    HANGS,
    Argument,
    assert_fine,
    assert_refused,
    finish,
    start_treelm,
    treelm,
)

from treelm.corpus.brackets import read_trees
from treelm.testing.model_folders import different_files, folder_contents

#: Every kind of output, and options that change what is parsed.
OUTPUTS: list[tuple[str, list[str]]] = [
    ("a.mrg", []),
    ("a.mrg", ["-k", "3", "--fast", "--max-words", "12", "--long", "flat"]),
    ("a.mrg.gz", ["--max-words", "12", "--limit", "700", "--verbose"]),
    ("a.forest", ["-k", "2", "--max-words", "12"]),
    ("a.forest", ["--forests", "--limit", "400"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    path = tmp_path_factory.mktemp("models") / "pcfg"
    assert_fine(treelm("train", "pcfg", "--trees", sample_file, "--lexicon", "closed", "-o", path))
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    """More lines than a shard has, some of which have no tree, no words, or too many."""
    path = tmp_path_factory.mktemp("texts") / "text"
    lines = [" ".join(tree.words) for tree in read_trees(sample_file)]
    path.write_text("\n".join([*lines, "", ". . the the", *lines, "unheard of words", *lines]))
    return path


def with_engine(*options: Argument) -> list[Argument]:
    return ["--engine", "processes", "--workers", "2", *options]


@pytest.mark.parametrize(("name", "options"), OUTPUTS)
def test_parse_writes_the_same_with_many_workers(
    name: str, options: list[str], folder: Path, text: Path, tmp_path: Path
) -> None:
    command = ("parse", "-m", folder, *options, text, text, "-o")
    one, two = tmp_path / f"one-{name}", tmp_path / f"two-{name}"
    serial = treelm(*command, one)
    assert serial.returncode == 0, serial.stderr
    many = treelm(*command, two, *with_engine())
    assert two.read_bytes() == one.read_bytes()
    assert many.stderr.replace(b"two-", b"one-") == serial.stderr
    assert many.returncode == 0


@pytest.mark.parametrize("workers", ["1", "7"])
def test_parse_writes_the_same_with_any_number_of_workers(
    workers: str, folder: Path, text: Path, tmp_path: Path
) -> None:
    command = ("parse", "-q", "-m", folder, "-k", "2", text, "-o")
    assert_fine(treelm(*command, tmp_path / "one.forest"))
    path = tmp_path / "two.forest"
    assert_fine(treelm(*command, path, "--engine", "processes", "--workers", workers))
    assert path.read_bytes() == (tmp_path / "one.forest").read_bytes()


def test_parse_with_many_workers_reads_and_writes_streams(folder: Path, text: Path) -> None:
    command = ("parse", "-q", "-m", folder)
    given = text.read_bytes()
    expected = assert_fine(treelm(*command, stdin=given))
    assert assert_fine(treelm(*command, *with_engine("--threads", "2"), stdin=given)) == expected


def test_parse_with_many_workers_fails_as_one_process_does(
    folder: Path, text: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.txt"
    for line in (b"</s>", b"\xff", b"a " * 300):
        bad.write_bytes(text.read_bytes() + b"\n" + line + b"\n" + text.read_bytes())
        command = ("parse", "-m", folder, "--long", "refuse", bad, "-o")
        serial = treelm(*command, tmp_path / "one.mrg")
        many = treelm(*command, tmp_path / "two.mrg", *with_engine())
        assert (many.returncode, many.stderr) == (serial.returncode, serial.stderr)
        assert serial.returncode != 0
        assert not (tmp_path / "two.mrg").exists()


def test_counts_with_many_workers_are_the_same(text: Path, tmp_path: Path) -> None:
    command = ("counts", "build", "--order", "3", "--text", text, text, "-o")
    one = assert_fine(treelm(*command, tmp_path / "one"))
    assert assert_fine(treelm(*command, tmp_path / "two", *with_engine())) == one
    contents = [folder_contents(tmp_path / name) for name in ("one", "two")]
    assert not different_files(*contents)
    memory = ["--memory", "64M", "--temporary", tmp_path]
    assert_fine(treelm(*command, tmp_path / "three", *with_engine(*memory)))
    assert not different_files(contents[0], folder_contents(tmp_path / "three"))
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "three"}


# -- faults ---------------------------------------------------------------------------------------


def test_treelet_counts_with_many_workers_are_the_same(sample_file: Path, tmp_path: Path) -> None:
    command = ("counts", "build", "--treelets", "full", "--trees", sample_file, "-o")
    alone = assert_fine(treelm(*command, tmp_path / "one"))
    engine = ("--engine", "processes", "--workers", "2")
    assert assert_fine(treelm(*command, tmp_path / "two", *engine)) == alone
    contents = [folder_contents(tmp_path / name) for name in ("one", "two")]
    assert not different_files(*contents)


def children_of(process: int) -> set[int]:
    """Return the processes that a process has started and that are still there."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = place.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                found.add(int(place.parent.name))
    return found


def workers_of(process: int) -> set[int]:
    """Return the workers among the children of a process."""
    found = set()
    for child in children_of(process):
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.add(child)
    return found


def wait_for_end(processes: Iterable[int]) -> None:
    given_up = time.monotonic() + HANGS
    for process in processes:
        while Path(f"/proc/{process}").exists():
            state = ""
            with contextlib.suppress(OSError):
                state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":  # nobody has asked for its status, in a container without an init
                break
            assert time.monotonic() < given_up, "a worker does not end"
            time.sleep(0.02)


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
RUN = ("-k", "100")


@pytest.fixture(scope="module")
def whole(folder: Path, text: Path) -> bytes:
    path = text.with_name("whole.forest")
    assert_fine(treelm("parse", "-q", "-m", folder, *RUN, "-o", path, *[text] * 4))
    return path.read_bytes()


def start_parsing(folder: Path, text: Path, path: Path) -> tuple[subprocess.Popen[bytes], set[int]]:
    """Start parsing by two workers, and wait until the file has a batch."""
    command = ("parse", "-m", folder, *RUN, "-o", path, *[text] * 4)
    running = start_treelm(*command, *with_engine())
    while not (path.exists() and path.stat().st_size > 10_000 and workers_of(running.pid)):
        assert running.poll() is None, "it ended too early"
        time.sleep(0.01)
    return running, workers_of(running.pid)


@needs_proc
def test_a_killed_worker_changes_nothing(
    folder: Path, text: Path, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.forest"
    running, workers = start_parsing(folder, text, path)
    os.kill(min(workers), signal.SIGKILL)
    done = finish(running)
    assert done.returncode == 0, done.stderr
    assert b"warning: a worker died; its work is done again." in done.stderr
    assert path.read_bytes() == whole
    wait_for_end(workers)


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_leaves_no_workers_and_goes_on(
    number: signal.Signals, folder: Path, text: Path, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.forest"
    running, workers = start_parsing(folder, text, path)
    assert workers
    if number == signal.SIGINT:  # a terminal sends it to all of them
        for worker in workers:
            os.kill(worker, number)
    running.send_signal(number)
    done = finish(running)
    assert done.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    if number != signal.SIGKILL:  # Python's own tracker of semaphores tells of that
        assert done.stderr == (b"treelm: interrupted\n" if number == signal.SIGINT else b"")
    wait_for_end(workers)
    # Whoever is at hand does the rest.
    again = treelm("parse", "-m", folder, *RUN, "-o", path, *[text] * 4)
    assert b"sentences were there already" in again.stderr
    assert path.read_bytes() == whole


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "processes", "--address", "auto"], "--address names a Ray cluster"),
        (["--address", "auto"], "--address names a Ray cluster"),
        (["--workers", "2"], "--workers is used with --engine processes or --engine ray only"),
        (["--engine", "processes", "--line-buffered"], "--line-buffered cannot be combined"),
        (["--engine", "threads"], "--engine"),
        (["--engine", "processes", "--workers", "0"], "--workers is 0; it must be"),
    ],
)
def test_parse_refuses_engines_that_make_no_sense(options: list[str], message: str) -> None:
    done = treelm("parse", "-m", "no-such-model", *options)
    assert_refused(done, 2, message)


def test_engines_are_refused_where_one_process_works(text: Path, sample_file: Path) -> None:
    done = treelm("parse", "--from", text, "--engine", "processes")
    assert_refused(done, 2, "--from cannot be combined with a model, text, --engine")
    counting = ("counts", "build", "--trees", sample_file, "-o", "out", "--engine", "processes")
    assert_refused(treelm(*counting), 2, "the words of trees are counted by one process")
    assert_refused(
        treelm(*counting, "--treelets", "full", "--order", "2"),
        2,
        "cannot be combined with --text or --order",
    )


# -- surprisal ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    """Documents of different lengths, more sentences than a shard has."""
    path = tmp_path_factory.mktemp("texts") / "documents"
    lines = [" ".join(tree.words) for tree in read_trees(sample_file)]
    path.write_text("\n".join([*lines[:200], "", *lines[200:210], "", *lines[210:]]) + "\n")
    return path


@pytest.mark.parametrize(
    ("training", "options"),
    [
        ("hhmm --trees {trees} --depth 2", ["--measures", "all", "--eos"]),
        ("plsa --text {text} --topics 2 --plsa-iterations 2", []),
        ("ngram --text {text} --order 2", ["--format", "jsonl", "--limit", "250"]),
    ],
)
def test_surprisal_is_the_same_with_many_workers(
    training: str, options: list[str], documents: Path, sample_file: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.mrg"
    few.write_text("\n".join(sample_file.read_text().splitlines()[:60]))
    text = tmp_path / "train.txt"  # of short documents, some of which are held out
    lines = documents.read_text().splitlines()
    text.write_text("\n".join(f"{line}\n" for line in lines if line))
    words = [word.format(trees=few, text=text) for word in training.split()]
    assert_fine(treelm("train", *words, "-o", tmp_path / "model", "-q"))
    command = ("surprisal", "-m", tmp_path / "model", *options, documents)
    serial = treelm(*command)
    assert serial.returncode == 0, serial.stderr
    found = treelm(*command, *with_engine())
    assert (found.returncode, found.stdout, found.stderr) == (0, serial.stdout, serial.stderr)


def test_surprisal_names_the_sentence_that_is_wrong_with_many_workers(
    documents: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    assert_fine(treelm("train", "ngram", "--text", documents, "--order", "2", "-o", model, "-q"))
    bad = tmp_path / "bad"
    bad.write_text(documents.read_text() + "a <s> b\n")
    serial = treelm("surprisal", "-m", model, bad)
    assert_refused(serial, 3, "<s>")
    found = treelm("surprisal", "-m", model, bad, *with_engine())
    assert (found.returncode, found.stderr) == (serial.returncode, serial.stderr)


def test_surprisal_refuses_engines_that_make_no_sense(documents: Path) -> None:
    for option in (["--line-buffered"], ["--stimuli", documents]):
        done = treelm("surprisal", "-m", "no-such-model", *option, *with_engine())
        assert_refused(done, 2, "--engine cannot be combined with --line-buffered or --stimuli")
