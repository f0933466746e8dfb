"""Saves that are killed, interrupted or out of space: the old model or the new one, never a half."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import HANGS, environment, preparation

from treelm.errors import ModelFileError, OutputFileError
from treelm.store import staging
from treelm.store.folder import FolderWriter, open_folder, save_folder
from treelm.store.manifest import Description

as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")

#: Saves model 2 over model 1 again and again, and says when it begins; may wait inside a save.
SAVER = """
import os, sys, time
from pathlib import Path
import numpy as np
from treelm.errors import OutputFileError
from treelm.store import staging
from treelm.store.folder import save_folder
from treelm.store.manifest import Description

target, mode = Path(sys.argv[1]), sys.argv[2]
if mode == "two steps":
    staging.exchange = lambda first, second: False
if mode == "between":
    staging.exchange = lambda first, second: False
    rename = Path.rename
    def stop(self, to):
        if self.name == "new" and (self.parent / "old").exists():
            print("waiting", flush=True)
            time.sleep(60)
        return rename(self, to)
    Path.rename = stop

def write(writer):
    print("saving", flush=True)
    writer.tables("tables.safetensors", {"x": np.full(300_000, 2)})
    if mode == "wait":
        print("waiting", flush=True)
        time.sleep(60)
    save_folder(writer.part("parser"), Description("pcfg"), lambda inner: inner.text("a", "b"))

try:
    for _ in range(1 if mode == "once" else 1000):
        save_folder(target, Description("ngram"), write)
except OutputFileError as error:
    sys.exit(f"{error.code} {error}")
"""


def save(folder: Path, number: int = 1) -> None:
    def write(writer: FolderWriter) -> None:
        writer.tables("tables.safetensors", {"x": np.full(300_000, number)})

    save_folder(folder, Description("ngram"), write)


def number_in(folder: Path) -> int:
    return int(open_folder(folder, verify=True).tables()["x"][-1])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def start(target: Path, mode: str, limits: dict[int, int] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SAVER, target, mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(None),
        preexec_fn=preparation(limits),  # noqa: PLW1509 (tests start no threads)
    )


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"the saver never said {word!r}: {process.communicate()[1]}")


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=HANGS)
    return process.returncode, errors


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_hostile_saving_interrupted(tmp_path: Path, exists: bool, sent: signal.Signals) -> None:
    if exists:
        save(tmp_path / "model")
    process = start(tmp_path / "model", "wait")
    wait_for(process, "waiting")
    assert len(names(tmp_path)) == 1 + exists
    process.send_signal(sent)
    code, _ = finish(process)
    assert code == -sent
    assert names(tmp_path) == (["model"] if exists else [])
    assert not exists or number_in(tmp_path / "model") == 1


@pytest.mark.parametrize("exists", [True, False])
def test_hostile_saving_killed_inside_a_save(tmp_path: Path, exists: bool) -> None:
    if exists:
        save(tmp_path / "model")
    process = start(tmp_path / "model", "wait")
    wait_for(process, "waiting")
    process.kill()
    finish(process)
    for path in tmp_path.rglob("*"):
        if path.is_dir() and tmp_path / "model" not in (path, *path.parents):
            with pytest.raises(ModelFileError):
                open_folder(path)
    assert (tmp_path / "model").exists() is exists
    assert not exists or number_in(tmp_path / "model") == 1
    assert len(names(tmp_path)) == 1 + exists  # what the dead process could not remove
    save(tmp_path / "model", 3)
    assert number_in(tmp_path / "model") == 3
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("mode", ["one step", "two steps"])
def test_hostile_saving_killed_at_any_moment(tmp_path: Path, mode: str) -> None:
    target = tmp_path / "model"
    chance = random.Random(mode)
    for _ in range(12):
        save(target)
        process = start(target, mode)
        wait_for(process, "saving")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.random() * 0.05)
        process.kill()
        finish(process)
        if mode == "two steps":
            staging.remove_leftovers(target)
        assert number_in(target) in (1, 2)
    save(target)
    assert names(tmp_path) == ["model"]


def test_hostile_saving_killed_between_the_two_renames(tmp_path: Path) -> None:
    save(tmp_path / "model")
    process = start(tmp_path / "model", "between")
    wait_for(process, "waiting")
    with pytest.raises(ModelFileError, match="it was being replaced and stands in") as caught:
        open_folder(tmp_path / "model")
    assert caught.value.code == "E_NO_MODEL"
    staging.remove_leftovers(tmp_path / "model")  # a save that is running is left alone
    assert not (tmp_path / "model").exists()
    process.kill()
    finish(process)
    (old,) = tmp_path.glob(".model.*/old")
    assert number_in(old) == 1
    staging.remove_leftovers(tmp_path / "model")
    assert number_in(tmp_path / "model") == 1
    assert names(tmp_path) == ["model"]


def test_hostile_saving_terminated_between_the_two_renames(tmp_path: Path) -> None:
    save(tmp_path / "model")
    process = start(tmp_path / "model", "between")
    wait_for(process, "waiting")
    process.terminate()
    assert finish(process)[0] == -signal.SIGTERM
    assert number_in(tmp_path / "model") == 1
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("limit", [0, 100, 10_000, 2_000_000])
@pytest.mark.parametrize("exists", [True, False])
def test_hostile_saving_disk_is_full(tmp_path: Path, limit: int, exists: bool) -> None:
    """A limit on the size of files acts as a full disk does."""
    if exists:
        save(tmp_path / "model")
    process = start(tmp_path / "model", "once", {resource.RLIMIT_FSIZE: limit})
    code, errors = finish(process)
    assert code == 1
    assert errors.startswith("E_OUTPUT ")
    assert "nothing was changed" in errors
    assert f"{tmp_path}/model" in errors
    assert ".treelm-save-" not in errors
    assert names(tmp_path) == (["model"] if exists else [])
    assert not exists or number_in(tmp_path / "model") == 1


def test_hostile_saving_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "model")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OutputFileError, match="Input/output error"):
            save(tmp_path / "model", 2)
    assert number_in(tmp_path / "model") == 1
    assert names(tmp_path) == ["model"]


@as_root
def test_hostile_saving_folder_around_is_read_only(tmp_path: Path) -> None:
    around = tmp_path / "around"
    around.mkdir()
    save(around / "model")
    around.chmod(0o555)
    for name in ("model", "other"):
        with pytest.raises(OutputFileError, match="Permission denied"):
            save(around / name, 2)
    around.chmod(0o755)
    assert number_in(around / "model") == 1
    assert names(around) == ["model"]


@as_root
def test_hostile_saving_over_a_read_only_model(tmp_path: Path) -> None:
    save(tmp_path / "model")
    (tmp_path / "model").chmod(0o555)
    with contextlib.suppress(OutputFileError):
        save(tmp_path / "model", 2)
    (tmp_path / "model").chmod(0o755)
    assert number_in(tmp_path / "model") in (1, 2)


@pytest.mark.parametrize("name", ["x" * 300, "x" * 250, "file/model"])
def test_hostile_saving_under_impossible_names(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputFileError):
        save(tmp_path / name)
    assert names(tmp_path) == ["file"]


def test_hostile_saving_under_odd_names(tmp_path: Path) -> None:
    for name in ("-", "a*b[c]", ".hidden", "model.treelm-save-abcdefgh", "\x1b[31m\n", "x" * 230):
        for number in (1, 2):
            save(tmp_path / name, number)
            assert number_in(tmp_path / name) == number
    assert len(names(tmp_path)) == 6


def test_hostile_saving_leftovers_of_other_models_are_left_alone(tmp_path: Path) -> None:
    others = [".other.treelm-save-abcdefgh", ".model.treelm-save-abc", "model.treelm-save-abcdefgh"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / ".model.treelm-save-abcdefgh").symlink_to(others[0])
    (tmp_path / ".model.treelm-save-aaaaaaaa").touch()
    save(tmp_path / "model")
    assert set(others) < set(names(tmp_path))
    assert number_in(tmp_path / "model") == 1
