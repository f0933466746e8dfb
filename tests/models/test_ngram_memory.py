"""How much memory the training of n-gram models takes, as the system counts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import environment

#: Trains, then prints the most memory that the process ever had, in bytes.
PROGRAM = """
import sys
from pathlib import Path
from treelm.cli.main import run
assert run(sys.argv[1:]) == 0
status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
print("peak", int(status["VmHWM"].split()[0]) * 1024)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text whose n-grams take a few times the memory of the program itself."""
    words = np.minimum(np.random.default_rng(2).zipf(1.25, (120_000, 20)), 20_000)
    file = tmp_path_factory.mktemp("text") / "text.txt"
    lines = (" ".join(f"w{word}" for word in line) for line in words.tolist())
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return file


@pytest.fixture(scope="module")
def free(text: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, bytes]:
    """The peak of a training without limits, and its tables."""
    return trained(text, tmp_path_factory.mktemp("free") / "model", "--threads", "1")


def trained(text: Path, model: Path, *options: str) -> tuple[int, bytes]:
    """Return the peak of a training, and the tables of the model."""
    command = ["train", "ngram", "--text", str(text), "--order", "5", "-o", str(model), *options]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command],
        capture_output=True,
        text=True,
        env=environment(None),
    )
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout.split("peak")[-1])
    return peak, (model / "tables.safetensors").read_bytes()


def test_training_stays_within_its_memory(
    text: Path, free: tuple[int, bytes], tmp_path: Path
) -> None:
    peak, tables = free
    limit = 128 << 20
    assert peak > 1.2 * limit
    for threads in ("1", "2"):
        options = ("--memory", "128M", "--temporary", str(tmp_path), "--threads", threads)
        bounded, same = trained(text, tmp_path / f"limited{threads}", *options)
        assert bounded <= limit
        assert same == tables


def test_training_holds_little_more_than_the_model(
    text: Path, free: tuple[int, bytes], tmp_path: Path
) -> None:
    """A table, and what its last level is made of: the counts and sorted rows are gone by then."""
    least, _ = trained(small_part(text, tmp_path), tmp_path / "small", "--threads", "1")
    peak, tables = free
    assert peak - least < 3 * len(tables)


def small_part(text: Path, folder: Path) -> Path:
    """Return a file with the first lines of a text."""
    file = folder / "part.txt"
    file.write_text("".join(text.read_text().splitlines(keepends=True)[:100]))
    return file
