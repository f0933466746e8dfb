"""Temporary files: gone after use, and what killed processes left is gone after the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from treelm.corpus import temporary
from treelm.corpus.files import write_atomically
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.temporary import remove_leftovers, temporary_file, temporary_folder
from treelm.store.checkpoint import remove_training_files

DAYS = 24 * 60 * 60


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def left_file(folder: Path, name: str = ".treelm-file-0123abcd", *, age: float = 0) -> Path:
    path = folder / name
    path.write_text("half")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_leftovers_are_removed_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    left_file(tmp_path)
    left_folder = tmp_path / ".treelm-folder-0123abcd"
    left_folder.mkdir()
    left_file(left_folder, "parsed.mrg")
    with temporary_file(tmp_path) as (used, _), temporary_folder(tmp_path) as used_folder:
        (used_folder / "inside").write_text("in use")
        remove_leftovers(tmp_path)
        assert names(tmp_path) == {used.name, used_folder.name}
        assert (used_folder / "inside").exists()
    assert names(tmp_path) == set()


def test_what_only_looks_like_a_leftover_stays(tmp_path: Path) -> None:
    others = (".treelm-notes", ".treelm-file-0123abcd.txt", "treelm-file-0123abcd", ".treelm-file-")
    for name in others:
        left_file(tmp_path, name, age=9 * DAYS)
    (tmp_path / ".treelm-file-aaaaaaaa").symlink_to(tmp_path / ".treelm-notes")
    os.mkfifo(tmp_path / ".treelm-file-bbbbbbbb")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == {*others, ".treelm-file-aaaaaaaa", ".treelm-file-bbbbbbbb"}
    remove_leftovers(tmp_path / "nowhere")


def test_files_of_earlier_versions_are_removed_when_they_are_old(tmp_path: Path) -> None:
    young = left_file(tmp_path, ".treelm-abcd_123", age=0.9 * DAYS)
    left_file(tmp_path, ".treelm-abcd_124", age=1.1 * DAYS)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == {young.name}


def test_files_of_other_users_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_file(tmp_path, age=9 * DAYS)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == {".treelm-file-0123abcd"}


def test_without_locks_the_age_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(temporary.fcntl, "flock", no_locks)
    young = left_file(tmp_path)
    left_file(tmp_path, ".treelm-file-0123abce", age=2 * DAYS)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == {young.name}
    with temporary_file(tmp_path) as (path, _):
        assert path.exists()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
def test_permissions_are_the_usual_ones_or_those_of_the_old_file(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        for name, mode in (("new", None), ("private", 0o600), ("shared", 0o664), ("open", 0o666)):
            path = tmp_path / name
            if mode is not None:
                path.touch()
                path.chmod(mode)
            with write_atomically(path) as file:
                file.write(b"x")
            expected = 0o666 & ~mask if mode is None else mode
            assert path.stat().st_mode & 0o777 == expected
    finally:
        os.umask(before)


def test_an_old_private_file_is_never_readable_for_others(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch()
    path.chmod(0o600)
    with write_atomically(path) as file:
        file.write(b"x")
        (other,) = (found for found in tmp_path.iterdir() if found != path)
        assert other.stat().st_mode & 0o077 == 0


def test_writing_never_changes_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to the process: another thread would make files with it at that moment."""

    def refuse(_: int) -> int:
        raise AssertionError("umask was set")

    monkeypatch.setattr(os, "umask", refuse)
    with write_atomically(tmp_path / "file") as file:
        file.write(b"x")


def test_many_threads_write_in_one_folder(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for _ in range(20):
            with write_atomically(tmp_path / f"file{number % 2}") as file:
                file.write(b"%d" % number * 1000)
            remove_leftovers(tmp_path)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(tmp_path) == {"file0", "file1"}
    assert len((tmp_path / "file0").read_bytes()) == 1000


WRITE = """
from treelm.corpus.files import write_atomically
with write_atomically(folder / "file") as out:
    out.write(b"half")
    out.flush()
    {then}
"""
CHECKPOINT = """
import numpy as np
from treelm.store import tables
from treelm.store.checkpoint import CheckpointFolder
class Own(CheckpointFolder):
    file_name, told_by = "round.safetensors", "nothing"
    __slots__ = ()
write = tables._write_array
def write_and_stop(*arguments):
    write(*arguments)
    {then}
tables._write_array = write_and_stop
Own(folder / "model.training").write({{"x": np.zeros(9)}}, "key")
"""
TREELET = """
import warnings
warnings.simplefilter("ignore")
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.models.interface import parsed_text
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.train import train_pcfg
from treelm.models.registry import SYSTEMS
from treelm.models.run import Run
from treelm.tasks.train import train_and_save
trees = TreeCorpus((folder / "trees.mrg",))
parse = parsed_text._parse
def parse_and_stop(*arguments):
    parse(*arguments)
    {then}
parsed_text._parse = parse_and_stop
inputs = {{"text": TextCorpus((folder / "text",)), "parser": train_pcfg(trees, PcfgConfig())}}
for place in {places}:
    run = Run() if place else Run(temporary=None)
    if place:
        train_and_save(SYSTEMS["treelet"], {{"corpus": trees, **inputs}}, place, {{}}, run=run)
    else:
        from treelm.models.treelet.config import TreeletConfig
        from treelm.models.treelet.train import train_treelet
        train_treelet(trees, TreeletConfig(), run=run, **inputs)
"""


def run(script: str, folder: Path, *, killed: bool) -> None:
    """Run a script, which is to kill itself or to end well."""
    then = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)" if killed else "pass"
    code = f"from pathlib import Path\nfolder = Path({str(folder)!r})\n{script.format(then=then)}"
    temporary_place = folder.with_name(f"{folder.name}.tmp")
    temporary_place.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary_place)},
    )
    assert done.returncode == (-signal.SIGKILL if killed else 0), done.stderr


@pytest.mark.slow
def test_the_next_run_removes_a_file_that_a_killed_one_left(tmp_path: Path) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "file").write_text("before")
    run(WRITE, folder, killed=True)
    assert len(names(folder)) == 2
    assert (folder / "file").read_text() == "before"
    run(WRITE, folder, killed=False)
    assert names(folder) == {"file"}


@pytest.mark.slow
def test_the_next_run_removes_checkpoints_that_a_killed_one_left(tmp_path: Path) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    run(CHECKPOINT, folder, killed=True)
    run(CHECKPOINT, folder, killed=True)
    training = folder / "model.training"
    assert len(names(training)) == 1
    run(CHECKPOINT, folder, killed=False)
    assert names(training) == {"round.safetensors"}
    run(CHECKPOINT, folder, killed=True)
    remove_training_files(training)  # as at the end of a training that had nothing left to write
    assert names(folder) == set()


@pytest.mark.slow
@pytest.mark.parametrize("beside_the_model", [True, False])
def test_the_next_run_removes_parsed_text_that_a_killed_one_left(
    beside_the_model: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    lines = sample_path().read_bytes().splitlines(keepends=True)[:20]
    (folder / "trees.mrg").write_bytes(b"".join(lines))
    (folder / "text").write_text("the dog sleeps\n")
    own = names(folder)
    place = str(folder / "model") if beside_the_model else None
    script = TREELET.replace("{places}", f"[{place!r}]")
    run(script, folder, killed=True)
    run(script, folder, killed=True)
    system = tmp_path / "place.tmp"
    assert len(names(folder) - own) + len(names(system)) == 1
    run(script, folder, killed=False)
    assert names(folder) == (own | {"model"} if beside_the_model else own)
    assert names(system) == set()
