"""A disk that fails at any call: every writer leaves the old or the new, and says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command_line import SANITIZED
from tests.hostile.fault_writers import WRITERS

HERE = Path(__file__).resolve().parent

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a preloaded layer"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
    pytest.mark.skipif(SANITIZED, reason="sanitizers are preloaded themselves"),
]


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer, compiled."""
    made = tmp_path_factory.mktemp("layer") / "layer.so"
    source = HERE / "fault_layer.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", "-o", str(made), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return made


@pytest.mark.parametrize("writer", [*WRITERS, "forest"])
def test_whichever_call_fails_the_old_or_the_new_is_there(
    writer: str, layer: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.fault_writers", writer, str(tmp_path)],
        cwd=HERE.parents[1],
        env={**os.environ, "LD_PRELOAD": str(layer)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 8
