"""Models of a package share their parts, and open only beside the very folders they share."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside
from tests.models.ngram_models import small_ngram

import treelm
from treelm.errors import ModelFileError
from treelm.store.folder import MAX_SHARING, FolderWriter, open_folder, save_folder
from treelm.store.manifest import Description
from treelm.store.share_parts import share_parts


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder of models: two n-gram models, and a mixture that stores both again."""
    place = tmp_path / "package"
    place.mkdir()
    parts = [small_ngram(order=order) for order in (1, 2)]
    for order, model in enumerate(parts, 1):
        model.save(place / f"xx-{order}")
    treelm.train("interpolated", parts, weights=(0.25, 0.75)).save(place / "xx-mixture")
    return place


def test_shared_parts_give_the_same_model_without_a_second_copy(package: Path) -> None:
    mixture = package / "xx-mixture"
    before = treelm.load(mixture).score("the ferry sank").log_prob
    assert share_parts(mixture, mixture) == ("xx-1", "xx-2")
    assert sorted(path.name for path in mixture.iterdir()) == ["README.md", "manifest.json"]
    assert treelm.load(mixture, verify=True).score("the ferry sank").log_prob == before
    assert share_parts(mixture, mixture) == ("xx-1", "xx-2")  # once more changes nothing
    assert open_folder(mixture).part("0").path == package / "xx-1"


def test_shared_parts_are_stored_where_nothing_like_them_lies(
    package: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    assert share_parts(package / "xx-mixture", alone) == ()
    assert sorted(path.name for path in (alone / "parts").iterdir()) == ["0", "1"]
    assert treelm.load(alone).score("a barge").log_prob < 0


def test_shared_parts_are_found_again_when_saved_elsewhere(package: Path, tmp_path: Path) -> None:
    share_parts(package / "xx-mixture", package / "xx-mixture")
    moved = shutil.copytree(package, tmp_path / "installed")
    model = treelm.load(moved / "xx-mixture")
    model.save(tmp_path / "whole")  # a copy of one's own has everything in it
    shutil.rmtree(moved)
    assert treelm.load(tmp_path / "whole").score("the ferry").log_prob < 0


def test_shared_parts_that_are_missing_or_replaced_are_named(package: Path) -> None:
    share_parts(package / "xx-mixture", package / "xx-mixture")
    treelm.load(package / "xx-1").save(package / "xx-2")
    with pytest.raises(ModelFileError, match="not the model that xx-mixture was saved") as error:
        treelm.load(package / "xx-mixture")
    assert error.value.code == "E_SHARED_PART"
    shutil.rmtree(package / "xx-2")
    with pytest.raises(ModelFileError, match='"xx-2" beside it, which is missing') as error:
        treelm.load(package / "xx-mixture")
    assert error.value.code == "E_SHARED_PART"


def test_shared_parts_by_the_command_line(
    package: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    mixture = package / "xx-mixture"
    done = treelm_inside(capfdbinary, "convert", mixture, mixture, "--share-parts")
    assert_fine(done, stderr=None)
    assert b"shares xx-1, xx-2." in done.stderr
    done = treelm_inside(capfdbinary, "convert", mixture, mixture, "--share-parts", "--bits", "8")
    assert_refused(done, 2, "--share-parts comes last")


def test_shared_parts_stay_in_their_place(package: Path, tmp_path: Path) -> None:
    share_parts(package / "xx-mixture", package / "xx-mixture")
    with pytest.raises(ModelFileError, match="another place"):
        share_parts(package / "xx-mixture", tmp_path / "elsewhere")


@pytest.mark.parametrize("name", ["../xx-1", ".", "..", "a/b", ""])
def test_shared_parts_lie_beside_the_model_and_nowhere_else(package: Path, name: str) -> None:
    mixture = package / "xx-mixture"
    share_parts(mixture, mixture)
    manifest = json.loads((mixture / "manifest.json").read_text())
    manifest["shared"]["0"]["folder"] = name
    (mixture / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError) as error:
        treelm.load(mixture)
    assert error.value.code == "E_MANIFEST"


def test_shared_parts_in_a_long_chain_are_refused(tmp_path: Path) -> None:
    def write(writer: FolderWriter) -> None:
        writer.tables("tables.safetensors", {"x": np.zeros(1)})

    save_folder(tmp_path / "m0", Description("ngram"), write)
    for number in range(1, MAX_SHARING + 2):
        folder = tmp_path / f"m{number}"
        save_folder(folder, Description("ngram"), write)
        manifest = json.loads((folder / "manifest.json").read_text())
        before = open_folder(tmp_path / f"m{number - 1}").fingerprint
        manifest["shared"] = {"p": {"folder": f"m{number - 1}", "fingerprint": before}}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        if number <= MAX_SHARING:
            assert open_folder(folder).part_names == ("p",)
    with pytest.raises(ModelFileError, match="share parts one after the other"):
        open_folder(tmp_path / f"m{MAX_SHARING + 1}")


def test_saved_date_can_be_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(writer: FolderWriter) -> None:
        writer.text("words.txt", "the\n")

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    save_folder(tmp_path / "model", Description("ngram"), write)
    assert open_folder(tmp_path / "model").manifest.date == "1970-01-02T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    save_folder(tmp_path / "model", Description("ngram"), write)
    assert not open_folder(tmp_path / "model").manifest.date.startswith("1970")
