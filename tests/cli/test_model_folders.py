"""`treelm inspect` on model folders, and `treelm convert`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

from treelm.corpus.corpus import TextCorpus
from treelm.models.mixture.model import interpolate
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


def test_convert_to_a_compact_model(tmp_path: Path, ngram_folder: Path) -> None:
    compact = tmp_path / "compact"
    assert_fine(treelm("convert", ngram_folder, compact, "--layout", "compact"))
    model, again = load(ngram_folder), load(compact)
    assert again.layout == "compact"
    assert again.score("the dog").log_prob == model.score("the dog").log_prob
    refused = ("convert", ngram_folder, tmp_path / "other")
    assert_refused(treelm(*refused, "--bits", "6"), 2, "layout compact")
    assert_refused(treelm(*refused, "--layout", "hashed"), 2, "nothing")
    assert_refused(treelm(*refused, "--layout", "tiny"), 2, "tiny")
    measured = (*refused, "--layout", "compact", "--measure", "text.txt")
    assert_refused(treelm(*measured), 2, "--bits")


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
        treelm("convert", tmp_path / "mixture", tmp_path / "m.arpa"),
        2,
        "do not fit into an ARPA file",
    )
    assert not target.exists()


def test_convert_returns_the_model(tmp_path: Path, ngram_folder: Path) -> None:
    assert convert(ngram_folder, tmp_path / "m.arpa").info.order == 3


def test_convert_quantises(tmp_path: Path, ngram_folder: Path, text_file: Path) -> None:
    small = tmp_path / "small"
    done = treelm("convert", ngram_folder, "-o", small, "--bits", "8")
    assert assert_fine(done, None) == b""
    model = load(small)
    assert model.info.bits == 8
    assert f"treelm: {model.config.rounding}.\n" == done.stderr.decode()
    done = treelm("convert", ngram_folder, small, "--bits", "16", "--measure", text_file)
    assert assert_fine(done, None) == b""
    model = load(small)
    assert model.info.bits == 16
    loss = model.config.loss
    assert f"treelm: {loss}.\n" == done.stderr.decode()
    full, own = (each.perplexity(TextCorpus((text_file,))) for each in (load(ngram_folder), model))
    assert loss.full_bits_per_word == pytest.approx(full.bits_per_word, rel=1e-12)
    assert loss.bits_per_word == pytest.approx(own.bits_per_word, rel=1e-12)
    assert "bits:16" in own.signature
    assert "bits:" not in full.signature
    assert b"bits 16" in assert_fine(treelm("inspect", small))


def test_convert_quantises_what_an_arpa_file_holds(tmp_path: Path, ngram_folder: Path) -> None:
    arpa, small, back = tmp_path / "m.arpa", tmp_path / "small", tmp_path / "back.arpa"
    assert_fine(treelm("convert", ngram_folder, arpa))
    assert_fine(treelm("convert", arpa, small, "--bits", "8", "--quiet"))
    assert_fine(treelm("convert", small, back))
    assert back.read_bytes().startswith(arpa.read_bytes()[:50])


def test_convert_refuses_what_cannot_be_quantised(tmp_path: Path, ngram_folder: Path) -> None:
    small, target = tmp_path / "small", tmp_path / "out"
    load(ngram_folder).quantized(8).save(small)
    assert_refused(treelm("convert", small, target, "--bits", "8"), 2, "already quantised")
    assert_refused(treelm("convert", ngram_folder, target, "--bits", "12"), 2, "--bits")
    assert_refused(treelm("convert", ngram_folder, target, "--measure", "x"), 2, "--bits")
    assert_refused(
        treelm("convert", ngram_folder, tmp_path / "m.arpa", "--bits", "8"), 2, "model folder"
    )
    measure = ("--bits", "8", "--measure")
    missing = tmp_path / "missing"
    assert_refused(treelm("convert", ngram_folder, target, *measure, missing), 3, "no such file")
    empty = tmp_path / "empty"
    empty.write_text("\n")
    assert_refused(treelm("convert", ngram_folder, target, *measure, empty), 3, "no sentence")
    assert not target.exists()
