"""`treelm convert --dictionary`, and the same in training."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

from treelm.models.registry import load

PARSED = "(ROOT (S (NP (DT the) (NN zorb)) (VP (VBD glimped)) (. .)))\n" * 2
TRAINING = ("--cycles", "1", "--split-iterations", "3", "--seed", "1", "--tokenizer", "penn", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    path = tmp_path_factory.mktemp("models")
    (path / "parsed.mrg").write_text(PARSED, encoding="utf-8")
    training = ("train", "pcfg-la", "--trees", sample_file, *TRAINING)
    assert_fine(treelm(*training, "-o", path / "model"))
    assert_fine(treelm(*training, "--dictionary", path / "parsed.mrg", "-o", path / "whole"))
    return path


def test_a_dictionary_that_is_added_is_that_of_training(folder: Path) -> None:
    dictionary = ("--dictionary", folder / "parsed.mrg")
    done = treelm("convert", folder / "model", folder / "more", *dictionary)
    assert_fine(done, None)
    assert b"new words" in done.stderr
    names = ("tables.safetensors", "words.txt")
    for name in names:
        assert (folder / "more" / name).read_bytes() == (folder / "whole" / name).read_bytes()
    model = load(folder / "more")
    assert "glimped" in model.vocabulary
    assert model.tokenizer == "penn"
    assert_fine(treelm("convert", folder / "more", folder / "small", "--bits", "8", "-q"))
    assert "glimped" in load(folder / "small").vocabulary


def test_what_takes_no_dictionary_is_refused(folder: Path, sample_file: Path) -> None:
    dictionary = ("--dictionary", folder / "parsed.mrg")
    done = treelm("convert", folder / "model", folder / "x", *dictionary, "--bits", "8")
    assert_refused(done, 2, "--dictionary comes first")
    assert_fine(treelm("train", "pcfg", "--trees", sample_file, "-q", "-o", folder / "pcfg"))
    done = treelm("convert", folder / "pcfg", folder / "x", *dictionary)
    assert_refused(done, 2, "for grammars with latent annotations")
    for wrong in (("--dictionary", folder / "parsed.mrg"), ("--share-parts",)):
        done = treelm("convert", folder / "model", folder / "x", *wrong, "--allow-deletion")
        assert_refused(done, 2, "are about phrase tables")
    assert not (folder / "x").exists()


def test_other_tags_are_said(folder: Path) -> None:
    for name, tags in {
        "other": ("ART", "N", "V", "PUNCT"),
        "some": ("DT", "N", "VBD", "."),
    }.items():
        words = zip(tags, ("the", "zorb", "glimped", "."), strict=True)
        leaves = " ".join(f"({tag} {word})" for tag, word in words)
        (folder / f"{name}.mrg").write_text(f"(ROOT (S {leaves}))\n" * 2, encoding="utf-8")
    done = treelm("convert", folder / "model", folder / "y", "--dictionary", folder / "other.mrg")
    assert_refused(done, 2, "other.mrg: no word has a tag of this grammar")
    assert not (folder / "y").exists()
    done = treelm("convert", folder / "model", folder / "y", "--dictionary", folder / "some.mrg")
    assert_fine(done, None)
    assert b"2 of 8 words have tags that the grammar does not have" in done.stderr
