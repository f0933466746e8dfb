"""`treelm inspect` on model folders, and `treelm convert`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

from treelm.models.interpolated import interpolate
from treelm.models.registry import load
from treelm.tasks.convert import convert


def test_inspect_describes_a_model(ngram_folder: Path) -> None:
    found = json.loads(assert_fine(treelm("inspect", ngram_folder, "--json")))
    assert found["system"] == "ngram"
    assert found["config"]["order"] == found["order"] == 3
    assert found["corpora"][0]["tokens"] == 3860
    assert found["trained_tokens"] == 3860 + 325
    assert set(found["files"]) == {"tables.safetensors", "words.txt"}
    assert "checksums" not in found["checked"]
    lines = assert_fine(treelm("inspect", ngram_folder, "--verify")).decode()
    assert lines.startswith("system ")
    assert "checksums" in lines


def test_inspect_describes_a_mixture(tmp_path: Path, ngram_folder: Path) -> None:
    model = load(ngram_folder)
    interpolate([model, model], [0.25, 0.75]).save(tmp_path / "mixture")
    found = json.loads(assert_fine(treelm("inspect", tmp_path / "mixture", "--json", "--verify")))
    assert found["config"]["weights"] == [0.25, 0.75]
    assert found["parts"] == {"0": "ngram", "1": "ngram"}


def test_inspect_finds_what_is_wrong(tmp_path: Path, ngram_folder: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(ngram_folder, folder)
    words = folder / "words.txt"
    words.write_bytes(words.read_bytes().replace(b"\tword\t", b"\tWord\t", 1))
    assert_refused(treelm("inspect", folder, "--verify"), 3, "words.txt", "SHA-256")
    assert_refused(treelm("inspect", folder), 3, "words.txt")
    words.unlink()
    assert_refused(treelm("inspect", folder), 3, "words.txt")
    assert_refused(treelm("score", "-m", folder, stdin=b"a\n"), 3, "words.txt")
    assert_refused(treelm("inspect", tmp_path), 3, "folder")


def test_convert_there_and_back(tmp_path: Path, ngram_folder: Path) -> None:
    arpa = tmp_path / "model.arpa.gz"
    assert_fine(treelm("convert", ngram_folder, arpa))
    assert_fine(treelm("convert", arpa, tmp_path / "again"))
    one, two = load(ngram_folder), load(tmp_path / "again")
    for sentence in ("The old ferry left .", "the frumious boat", ""):
        assert two.score(sentence).log_prob == pytest.approx(one.score(sentence).log_prob, abs=1e-4)


def test_convert_wants_one_folder_and_one_file(tmp_path: Path, ngram_folder: Path) -> None:
    target = tmp_path / "out"
    assert_refused(treelm("convert", ngram_folder, target), 2, ".arpa")
    assert_refused(treelm("convert", tmp_path / "a.arpa", tmp_path / "b.arpa"), 2, "model folder")
    assert_refused(treelm("convert", tmp_path / "missing.arpa", target), 3, "no such file")
    broken = tmp_path / "broken.arpa"
    broken.write_text("no arpa\n")
    assert_refused(treelm("convert", broken, target), 3)
    model = load(ngram_folder)
    interpolate([model], [1.0]).save(tmp_path / "mixture")
    assert_refused(
        treelm("convert", tmp_path / "mixture", tmp_path / "m.arpa"), 2, "n-gram models only"
    )
    assert not target.exists()


def test_convert_returns_the_model(tmp_path: Path, ngram_folder: Path) -> None:
    assert convert(ngram_folder, tmp_path / "m.arpa").info.order == 3
