"""A recipe that is killed and started again finds what one that ran at once has found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.command_line import run_script

_STOPPED = Path(__file__).with_name("stopped_recipe.py")


def assert_resumes(
    recipe: Path, options: Sequence[str], *, once: Path, often: Path, files: int
) -> None:
    """Run a recipe that is killed after every few files, and compare all it keeps.

    Args:
        recipe: The recipe.
        options: Its options, which name the folder of the second run.
        once: Folder in which it has run without a stop.
        often: Folder of the second run.
        files: Files after which it is killed.
    """
    kills = int(run_script(_STOPPED, str(files), recipe, *options))
    assert kills > 1
    reports = [path.relative_to(once) for path in once.rglob("results.json")]
    kept = [path.relative_to(once) for path in once.rglob("*.npz")]
    models = [path.relative_to(once) for path in once.rglob("*.safetensors")]
    assert reports
    for path in (*reports, *models):
        assert (often / path).read_bytes() == (once / path).read_bytes(), path
    for path in kept:
        first, second = np.load(once / path), np.load(often / path)
        assert first.keys() == second.keys()
        for name in first.keys() - {"seconds"}:
            assert np.array_equal(first[name], second[name]), (path, name)
