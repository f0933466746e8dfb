"""Training within a memory limit: full disks, signals and kill leave nothing behind."""

from __future__ import annotations

import contextlib
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
    assert_fine(treelm(*command(text, tmp_path / "small")))
    whole = ["train", "ngram", "--text", text, "-o", tmp_path / "whole", "--quiet"]
    assert_fine(treelm(*whole, "--threads", "2"))
    for name in ("tables.safetensors", "words.txt"):
        assert (tmp_path / "small" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert in_folder(tmp_path) == ["small", "whole"]


@pytest.mark.parametrize("megabytes", [1, 5, 20])
def test_hostile_spill_disk_is_full(text: Path, tmp_path: Path, megabytes: int) -> None:
    limits = {resource.RLIMIT_FSIZE: megabytes << 20}
    done = finish(start_treelm(*command(text, tmp_path / "model"), limits=limits))
    assert_refused(done, 1, "temporary file cannot be written")
    assert in_folder(tmp_path) == []


def spilled_megabytes(process: int) -> float:
    """Return the size of the files without a name that a process has open."""
    sizes = []
    for descriptor in Path(f"/proc/{process}/fd").glob("*"):
        with contextlib.suppress(OSError):  # closed since
            status = descriptor.stat()
            sizes.append(status.st_size if status.st_nlink == 0 else 0)
    return sum(sizes) / 1e6


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are read from /proc")
@pytest.mark.parametrize("which", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("megabytes", [1, 40])
def test_hostile_spill_killed(
    text: Path, tmp_path: Path, which: signal.Signals, megabytes: int
) -> None:
    process = start_treelm(*command(text, tmp_path / "model"))
    while spilled_megabytes(process.pid) < megabytes:
        assert process.poll() is None, "it ended without a temporary file of that size"
        time.sleep(0.01)
    process.send_signal(which)
    done = finish(process)
    left = in_folder(tmp_path)
    # On a busy machine the signal may come late: while the model is being saved, or after that.
    if done.returncode == 0:
        assert left == ["model"]
    elif which == signal.SIGKILL:
        assert all(name.startswith(".model.treelm-save-") for name in left)
    else:
        assert left == []
