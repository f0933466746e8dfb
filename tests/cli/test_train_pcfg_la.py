"""`treelm train pcfg-la` and `treelm inspect --subcategories`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm
from tests.models.latent_models import sample_corpus

from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.registry import load

QUICK = [
    "--cycles",
    "2",
    "--split-iterations",
    "6",
    "--merge-iterations",
    "2",
    "--smooth-iterations",
    "2",
    "--seed",
    "1",
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("latent") / "model"
    done = treelm("train", "pcfg-la", "--trees", *sample_corpus().paths, *QUICK, "-o", folder)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    for phase in ("split 6", "merge 2", "smooth 2"):
        assert f"cycle 2, {phase}: log likelihood -" in said
    return folder


def test_train_saves_a_model_and_removes_its_checkpoint(trained: Path) -> None:
    model = load(trained)
    assert isinstance(model, PcfgLaModel)
    assert model.config.cycles == 2
    assert sorted(path.name for path in trained.parent.iterdir()) == ["model"]


def test_threads_and_resume_change_nothing(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    arguments = (
        "train",
        "pcfg-la",
        "--trees",
        *sample_corpus().paths,
        "-o",
        folder,
        "-q",
        "--json",
    )
    done = treelm(*arguments, *QUICK, "--threads", "2", "--resume")
    record = json.loads(assert_fine(done, None))
    assert record["system"] == "pcfg_la"
    assert record["subcategories"] > record["symbols"]
    for name in ("tables.safetensors", "words.txt", "labels.txt"):
        assert (folder / name).read_bytes() == (trained / name).read_bytes()


def test_train_needs_a_seed(tmp_path: Path) -> None:
    done = treelm("train", "pcfg-la", "--trees", *sample_corpus().paths, "-o", tmp_path / "m")
    assert_refused(done, 2)
    assert b"seed" in done.stderr


def test_inspect_says_what_subcategories_have_learned(trained: Path) -> None:
    text = assert_fine(treelm("inspect", trained, "--subcategories", "NP"), None)
    assert "NP-0" in str(text)
    assert "begins with: " in str(text)
    assert " -> " in str(text)
    done = treelm("inspect", trained, "--subcategories", "DT", "--json")
    found = json.loads(assert_fine(done, None))["subcategories"]
    assert sum(item["share"] for item in found) == pytest.approx(1.0)
    assert [item["share"] for item in found] == sorted(
        (item["share"] for item in found), reverse=True
    )
    assert all(item["words"] and not item["rules"] for item in found)


def test_inspect_refuses_labels_and_models_without_subcategories(
    trained: Path, ngram_folder: Path
) -> None:
    assert_refused(treelm("inspect", trained, "--subcategories", "XYZ"), 2)
    assert_refused(treelm("inspect", ngram_folder, "--subcategories", "NP"), 2)
