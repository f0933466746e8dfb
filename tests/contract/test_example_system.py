"""A system of another package: one module and an entry point, and everything else follows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, run_script, treelm
from tests.contract import example_system

pytestmark = pytest.mark.slow

TEXT = "the boat left\nthe old boat came back\n"

SCRIPT = """
import sys
import treelm
from treelm.models.registry import find_system, systems
from treelm.testing.contracts import check_contract
from treelm.testing.models import Trial

def main(text, target):
    assert "example" in systems()
    model = treelm.train("example", text, added=0.5)
    model.save(target)
    again = treelm.load(target)
    assert type(again).__name__ == "ExampleModel"
    sentences = [("the", "boat", "left"), ("a", "boat"), ("left",)]
    check_contract("model", again, [sentences])
    check_contract("system", find_system("example"), [Trial(text, {"added": 0.5})])
    print(again.score("the boat").log_prob)

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def install(folder: Path, entry: str = "example_system:SYSTEM") -> None:
    """Write a package with one system, as an installer would."""
    folder.mkdir()
    shutil.copy(Path(example_system.__file__), folder / "example_system.py")
    about = folder / "example_system-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: example-system\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[treelm.systems]\nexample = {entry}\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages, on the path of every Python that is started."""
    paths = [str(tmp_path / "packages"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    return tmp_path / "packages"


def test_a_module_and_an_entry_point_are_a_system(tmp_path: Path, packages: Path) -> None:
    install(packages)
    text = tmp_path / "train.txt"
    text.write_text(TEXT)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    score = float(run_script(script, text, tmp_path / "python"))

    helped = treelm("train", "example", "--help", env={"COLUMNS": "200"})
    shown = " ".join(assert_fine(helped).decode().split())
    assert "Count words, whatever their order." in shown
    assert "treelm train example --text train.txt --added 0.5 -o model" in shown
    assert "Added to the count of every word." in shown
    for option in ("--text", "--added", "--threads", "--json"):
        assert option in shown

    model = tmp_path / "model"
    options = ("--text", text, "--added", "0.5", "--json", "-o", model)
    said = json.loads(assert_fine(treelm("train", "example", *options)))
    assert (said["system"], said["sentences"], said["tokens"]) == ("example", 2, 8)
    for name in ("tables.safetensors", "words.txt"):
        assert (model / name).read_bytes() == (tmp_path / "python" / name).read_bytes()

    scored = assert_fine(treelm("score", "-m", model, "-", stdin=b"the boat\n"))
    assert float(scored) == pytest.approx(score)
    refused = treelm("surprisal", "-m", model, "-", stdin=b"the boat\n")
    assert "example models do not give the surprisal of words" in assert_refused(refused, 2)


def test_an_example_module_stays_small() -> None:
    assert len(Path(example_system.__file__).read_text().splitlines()) < 100


def test_an_entry_point_that_is_no_system_is_named(tmp_path: Path, packages: Path) -> None:
    install(packages, "example_system:ExampleModel")
    text = tmp_path / "train.txt"
    text.write_text(TEXT)
    refused = treelm("train", "example", "--text", text, "-o", tmp_path / "model")
    message = assert_refused(refused, 2)
    assert 'the entry point "example" of treelm.systems (example_system:ExampleModel)' in message
    assert "is no `treelm.models.registry.System`" in message


def test_an_entry_point_that_cannot_be_loaded_is_named(tmp_path: Path, packages: Path) -> None:
    install(packages, "no_such_module:SYSTEM")
    refused = treelm("train", "ngram", "--text", tmp_path / "x", "-o", tmp_path / "model")
    message = assert_refused(refused, 2, "no_such_module:SYSTEM", "cannot be loaded")
    assert "remove the package" in message


def test_a_model_whose_package_is_gone_is_refused(tmp_path: Path, packages: Path) -> None:
    install(packages)
    text = tmp_path / "train.txt"
    text.write_text(TEXT)
    assert_fine(treelm("train", "example", "--text", text, "-o", tmp_path / "model"))
    shutil.rmtree(packages)
    refused = treelm("score", "-m", tmp_path / "model", "-", stdin=b"the boat\n")
    assert_refused(refused, 3, "unknown system, 'example'", "a package that is not installed")
