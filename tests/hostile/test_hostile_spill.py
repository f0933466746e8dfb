"""Training within a memory limit: full disks, signals and kill leave nothing behind."""

from __future__ import annotations

import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, finish, start_treelm, treelm


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words that repeat so little that the smallest limit is too small for their counts."""
    path = tmp_path_factory.mktemp("spill") / "text.txt"
    words = np.random.default_rng(7).integers(0, 20_000, (60_000, 12))
    path.write_text("".join(" ".join(f"w{word}" for word in line) + "\n" for line in words))
    return path


def command(text: Path, target: Path) -> list[str | Path]:
    options = ["--order", "5", "--memory", "64M", "--threads", "1", "--quiet"]
    return ["train", "ngram", "--text", text, "-o", target, *options]


def in_folder(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_hostile_spill_gives_the_same_model(text: Path, tmp_path: Path) -> None:
    assert_fine(treelm(*command(text, tmp_path / "small"), timeout=240))
    whole = ["train", "ngram", "--text", text, "-o", tmp_path / "whole", "--quiet"]
    assert_fine(treelm(*whole, "--threads", "2", timeout=240))
    for name in ("tables.safetensors", "words.txt"):
        assert (tmp_path / "small" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert in_folder(tmp_path) == ["small", "whole"]


@pytest.mark.parametrize("megabytes", [1, 5, 20])
def test_hostile_spill_disk_is_full(text: Path, tmp_path: Path, megabytes: int) -> None:
    limits = {resource.RLIMIT_FSIZE: megabytes << 20}
    done = finish(start_treelm(*command(text, tmp_path / "model"), limits=limits), timeout=240)
    assert_refused(done, 1, "temporary file cannot be written")
    assert in_folder(tmp_path) == []


@pytest.mark.parametrize("which", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("seconds", [1.5, 3.0])
def test_hostile_spill_killed(
    text: Path, tmp_path: Path, which: signal.Signals, seconds: float
) -> None:
    process = start_treelm(*command(text, tmp_path / "model"))
    time.sleep(seconds)
    process.send_signal(which)
    done = finish(process, timeout=240)
    if done.returncode == 0:  # it was faster
        assert in_folder(tmp_path) == ["model"]
    else:
        assert in_folder(tmp_path) == []
