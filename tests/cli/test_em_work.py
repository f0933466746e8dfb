"""`treelm em status` and `treelm em verify`: the folder that a training leaves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from tests.command_line import Argument, assert_fine, assert_refused, finish, start_treelm, treelm

from treelm.parallel.metrics import METRICS
from treelm.testing.model_folders import different_files, folder_contents

OPTIONS = "--order 2 --heads 1 --iterations 2 --follow-up 1 --n-best 2 --tolerance 0 -q"
TRAINING = OPTIONS.split()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> list[Argument]:
    folder = tmp_path_factory.mktemp("trees")
    lines = sample_file.read_text().splitlines()
    (folder / "train.mrg").write_text("\n".join(lines[:240]))
    (folder / "held-out.mrg").write_text("\n".join(lines[240:]))
    return ["--trees", folder / "train.mrg", "--held-out", folder / "held-out.mrg"]


@pytest.fixture(scope="module")
def trained(files: list[Argument], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, and the work folder of two workers that trained it."""
    folder = tmp_path_factory.mktemp("trained")
    engine = ("--engine", "processes", "--workers", "2", "--work", folder / "work")
    assert_fine(treelm("train", "composite", *files, *TRAINING, *engine, "-o", folder / "model"))
    return folder


def test_em_status_says_how_far_a_training_is(trained: Path) -> None:
    found = json.loads(assert_fine(treelm("em", "status", trained / "work", "--json")))
    files = {file["file"]: file for file in found["files"]}
    assert set(files) == {"before.safetensors", "round.safetensors"}
    assert files["round.safetensors"]["stage"] == "follow-up"
    likelihoods = files["round.safetensors"]["log_likelihoods"]
    assert len(likelihoods) == 3
    assert likelihoods == sorted(likelihoods)
    assert found["last_event"].startswith("follow-up 1: log likelihood")
    assert found["deaths"] == 0
    last = found["last_phase"]
    assert (last["engine"], last["workers"], last["unit"]) == ("processes", 2, "sentences")
    assert last["phase"] == "searching partial parses"
    assert last["amount"] == 240
    assert last["shards"] == 8
    assert 0 < last["shard_seconds"]["min"] <= last["shard_seconds"]["max"] <= last["seconds"]
    assert last["worker_peak_bytes"] > 1 << 20
    text = assert_fine(treelm("em", "status", trained / "work")).decode()
    assert f"log likelihood before 3\t{likelihoods[2]:.1f}\n" in text
    assert "searching partial parses: processes, 2 workers, 8 shards" in text


def test_em_status_takes_metrics_that_were_cut_off(trained: Path) -> None:
    path = trained / "work" / METRICS
    before = path.read_bytes()
    path.write_bytes(before + b'{"phase": "search')
    try:
        assert_fine(treelm("em", "status", trained / "work"))
    finally:
        path.write_bytes(before)


def test_em_verify_finds_a_file_that_was_changed(trained: Path) -> None:
    work = trained / "work"
    found = assert_fine(treelm("em", "verify", work)).decode()
    assert [line.split("\t")[0::2] for line in found.splitlines()] == [
        ["before.safetensors", "correct"],
        ["round.safetensors", "correct"],
    ]
    path = work / "round.safetensors"
    before = path.read_bytes()
    place = len(before) - 9  # in the last table
    path.write_bytes(before[:place] + bytes([before[place] ^ 1]) + before[place + 1 :])
    try:
        done = treelm("em", "verify", work)
        assert_refused(done, 3, "round.safetensors: its tables are not those that were written")
    finally:
        path.write_bytes(before)


def test_em_refuses_folders_without_a_training(tmp_path: Path) -> None:
    for command in ("status", "verify"):
        for folder in (tmp_path, tmp_path / "none"):
            done = treelm("em", command, folder)
            assert_refused(done, 3, "no training has left anything here")


def test_a_training_without_a_work_folder_leaves_nothing(
    trained: Path, files: list[Argument], tmp_path: Path
) -> None:
    engine = ("--engine", "processes", "--workers", "1")
    assert_fine(treelm("train", "composite", *files, *TRAINING, *engine, "-o", tmp_path / "model"))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    contents = [folder_contents(place / "model") for place in (trained, tmp_path)]
    assert not different_files(*contents)


@pytest.mark.parametrize("phase", [1, 4, 7])
def test_a_training_whose_driver_is_killed_is_resumed(
    trained: Path, files: list[Argument], tmp_path: Path, phase: int
) -> None:
    """After so many phases, which a folder of its own counts."""
    command = ("train", "composite", *files, *TRAINING, "-o", tmp_path / "model")
    work = ("--work", tmp_path / "work", "--engine", "processes", "--workers", "2")
    running = start_treelm(*command, *work)
    metrics = tmp_path / "work" / METRICS
    while not (metrics.exists() and metrics.read_text().count('"phase"') >= phase):
        if running.poll() is not None:  # it was quicker
            break
        time.sleep(0.002)
    if running.poll() is None:
        os.kill(running.pid, signal.SIGKILL)
    finish(running)
    resumed = treelm(*command, "--work", tmp_path / "work", "--resume")
    assert_fine(resumed)
    contents = [folder_contents(place / "model") for place in (trained, tmp_path)]
    assert not different_files(*contents)
    assert_fine(treelm("em", "verify", tmp_path / "work"))


def test_em_plan_knows_workers_and_shards(files: list[Argument], tmp_path: Path) -> None:
    lines = Path(files[1]).read_text().splitlines()[:60]
    (tmp_path / "train.mrg").write_text("\n".join(lines))
    plan = 'system = "composite"\n[corpus]\ntrees = ["train.mrg"]\n[model]\norder = 2\nheads = 1\n'

    def planned(resources: str) -> dict[str, float]:
        (tmp_path / "em.toml").write_text(f"{plan}[resources]\n{resources}")
        found = assert_fine(treelm("em", "plan", "--config", tmp_path / "em.toml", "--json"))
        made: dict[str, float] = json.loads(found)
        return made

    one, many = planned("threads = 1"), planned("workers = 4\nshards = 3")
    assert "worker_bytes" not in one
    assert (many["workers"], many["shards"]) == (4, 3)
    assert many["all_workers_bytes"] == 4 * many["worker_bytes"]
    assert many["worker_bytes"] > one["table_bytes"]
    assert 0 <= 3 * many["shard_bytes"] - planned("shards = 1")["shard_bytes"] <= 3
    held = planned("workers = 4\nshards = 3\nshard_parameters = true")
    assert 0 <= 3 * held["parameter_shard_bytes"] - held["table_bytes"] < 3
    assert held["worker_bytes"] <= many["worker_bytes"]
    for bad in ("workers = 0", "shards = 0"):
        (tmp_path / "em.toml").write_text(f"{plan}[resources]\n{bad}")
        assert treelm("em", "plan", "--config", tmp_path / "em.toml").returncode == 2


def test_a_training_whose_worker_is_killed_is_the_same(
    trained: Path, files: list[Argument], tmp_path: Path
) -> None:
    """In every phase: whichever worker is at hand when the phase before has been written."""
    command = ("train", "composite", *files, *TRAINING, "-o", tmp_path / "model")
    work = tmp_path / "work"
    engine = ("--work", work, "--shards", "3", "--engine", "processes", "--workers", "2")
    running = start_treelm(*command, *engine)
    killed, seen = 0, -1
    while running.poll() is None:
        metrics = work / METRICS
        phases = metrics.read_text().count('"phase"') if metrics.exists() else 0
        workers = workers_of(running.pid)
        if phases > seen and workers and killed < 3:
            seen = phases
            with contextlib.suppress(ProcessLookupError):
                os.kill(workers[-1], signal.SIGKILL)
                killed += 1
        time.sleep(0.01)
    done = finish(running)
    assert done.returncode == 0, done.stderr
    assert killed
    contents = [folder_contents(place / "model") for place in (trained, tmp_path)]
    assert not different_files(*contents)


def workers_of(process: int) -> list[int]:
    """Return the processes that a process has started and that do its work."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process and b"spawn_main" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return sorted(found)


def test_a_work_folder_can_be_used_again(
    trained: Path, files: list[Argument], tmp_path: Path
) -> None:
    shutil.copytree(trained / "work", tmp_path / "work")
    other = ("train", "composite", *files, "--heads", "0", "--order", "2", "-q")
    again = treelm(*other, "-o", tmp_path / "model", "--work", tmp_path / "work", "--resume")
    assert_refused(again, 2, "this is the checkpoint of another training")
    assert_fine(treelm(*other, "-o", tmp_path / "model", "--work", tmp_path / "work"))
    found = assert_fine(treelm("em", "verify", tmp_path / "work")).decode()
    assert [line.split("\t")[0] for line in found.splitlines()] == ["round.safetensors"]
