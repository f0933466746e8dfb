"""Folders of tables that many machines see, here or where a URL says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, treelm

from treelm.corpus.sample_treebank import sample_path
from treelm.errors import ModelFileError, OutputFileError
from treelm.store.shared_folder import SharedFolder, local_copy
from treelm.testing.model_folders import different_files, folder_contents


@pytest.fixture(params=["path", "file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedFolder]:
    if request.param == "path":
        yield SharedFolder(str(tmp_path / "shared"))
        return
    fsspec = pytest.importorskip("fsspec")
    place = f"file://{tmp_path}/shared" if request.param == "file" else "memory://shared"
    yield SharedFolder(place)
    if request.param == "memory":
        fsspec.filesystem("memory").store.clear()


def test_shared_folder_keeps_tables_until_it_is_removed(folder: SharedFolder) -> None:
    tensors = {"a": np.arange(5), "b": np.ones((2, 2))}
    folder.make()
    assert folder.is_there
    folder.write("one.safetensors", tensors, {"said": "yes"})
    folder.write("one.safetensors", {**tensors, "a": np.arange(7)}, {"said": "again"})
    tables = folder.open("one.safetensors")
    assert tables.metadata["said"] == "again"
    folder.remove()
    assert tables["a"].tolist() == list(range(7))  # what was opened stays
    with pytest.raises(ModelFileError):
        folder.open("one.safetensors")
    folder.remove()


def test_shared_folder_sends_what_has_changed(folder: SharedFolder, tmp_path: Path) -> None:
    if not folder.is_remote:
        pytest.skip("nothing is sent to a folder that is here")
    here = tmp_path / "here"
    here.mkdir()
    (here / "a").write_text("1")
    (here / "b").write_text("2")
    (here / ".hidden").write_text("3")
    sent = folder.send(here, {})
    assert set(sent) == {"a", "b"}
    (here / "a").write_text("longer")
    (here / "b").unlink()
    folder.send(here, sent)
    with local_copy(str(folder)) as copy:
        assert {path.name: path.read_text() for path in copy.iterdir()} == {"a": "longer"}


def test_shared_folder_says_what_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutputFileError, match="cannot be written"):
        SharedFolder(f"file://{tmp_path}/file/sub").write("a", {"a": np.ones(1)})


@pytest.mark.slow
def test_trainings_keep_their_work_where_a_url_says(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    lines = sample_path().read_text().splitlines()
    (tmp_path / "train.mrg").write_text("\n".join(lines[:200]))
    (tmp_path / "held-out.mrg").write_text("\n".join(lines[200:]))
    files = ("--trees", tmp_path / "train.mrg", "--held-out", tmp_path / "held-out.mrg")
    command = ("train", "slm", *files, "--iterations", "1", "--follow-up", "1", "-q", "-o")
    assert_fine(treelm(*command, tmp_path / "one"))
    work = f"file://{tmp_path}/work"
    engine = ("--engine", "processes", "--workers", "2", "--shards", "2", "--shard-parameters")
    assert_fine(treelm(*command, tmp_path / "two", *engine, "--work", work))
    contents = [folder_contents(tmp_path / name) for name in ("one", "two")]
    assert not different_files(*contents)
    kept = {path.name for path in (tmp_path / "work").iterdir()}
    assert {"round.safetensors", "before.safetensors", "metrics.jsonl"} <= kept
    assert b"correct" in assert_fine(treelm("em", "verify", work))
    assert b"follow-up" in assert_fine(treelm("em", "status", work))
    # A training that is resumed finds what is there, and has nothing left to do.
    resumed = (*command, tmp_path / "three", *engine, "--work", work, "--resume")
    assert_fine(treelm(*resumed))
    assert not different_files(contents[0], folder_contents(tmp_path / "three"))
