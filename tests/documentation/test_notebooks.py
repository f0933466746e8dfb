"""The notebooks run from top to bottom, and print what they say they print."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts import load_script

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((REPOSITORY / "docs/notebooks").glob("*.ipynb"))
#: Bytes of a notebook with its outputs.
LARGEST = 20_000


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    return load_script(REPOSITORY / "docs/run_notebooks.py")


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_prints_what_it_keeps(path: Path, runner: ModuleType) -> None:
    made = runner.run_notebook(path)
    kept = json.loads(path.read_text("utf-8"))
    for now, before in zip(made["cells"], kept["cells"], strict=True):
        assert now.get("outputs") == before.get("outputs"), "".join(before["source"])
    assert runner.as_text(made) == path.read_text("utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_is_small_and_well_formed(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    notebook = json.loads(path.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert notebook["cells"][0]["cell_type"] == "markdown"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))


def test_runner_names_the_cell_that_fails(tmp_path: Path, runner: ModuleType) -> None:
    cell = {"cell_type": "code", "source": ["1 / 0"], "outputs": [], "execution_count": None}
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(ZeroDivisionError) as found:
        runner.run_notebook(path)
    assert any("x.ipynb, cell 0" in str(entry.path) for entry in found.traceback)
