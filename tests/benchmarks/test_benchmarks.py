"""The benchmarks run; how fast is not for a test to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "trees.py"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_tree_benchmark_runs_and_prints_every_figure(tmp_path: Path) -> None:
    folder = tmp_path / "few"
    folder.mkdir()
    (folder / "train.mrg").write_text("(S (NP-TMP (NN today)))\n(NN )\n" * 50)
    done = subprocess.run(
        [sys.executable, SCRIPT, "--treebanks", tmp_path, "--tokens", "2000"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for figure in ("read, transform, write", "2 threads over 1", "bound", "M tokens/s"):
        assert figure in done.stdout
