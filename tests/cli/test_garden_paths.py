"""`treelm parse --incremental`, and `--explain` of `score`, `surprisal` and `classify`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

import treelm as package
from treelm.corpus.sample_treebank import sample_path

TEXT = b"The old ferry left the harbour .\n\nThere were storms .\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    package.train("hhmm", str(sample_path())).save(made / "hhmm")
    package.train("pcfg", str(sample_path())).save(made / "pcfg")
    return made


def test_partial_trees_are_written_in_every_format(folder: Path, tmp_path: Path) -> None:
    made = {}
    for name in ("out", "out.svg", "out.html", "out.json"):
        call = ("parse", "-m", folder / "hhmm", "--incremental", "-k", "2")
        done = treelm(*call, "-o", tmp_path / name, stdin=TEXT)
        assert assert_fine(done, None) == b""
        made[name] = (tmp_path / name).read_text("utf-8")
    model = package.load(folder / "hhmm")
    sentences = [line for line in TEXT.decode().splitlines() if line]
    expected = [package.partial_parses(model, sentence, k=2) for sentence in sentences]
    assert json.loads(made["out.json"]) == [each.to_dict() for each in expected]
    for parses in expected:
        for step in parses.steps:
            for tree in step.trees:
                assert str(tree.tree) in made["out"]
    ET.fromstring(made["out.svg"])
    assert made["out.html"].count('type="range"') == 2
    printed = treelm("parse", "-m", folder / "hhmm", "--incremental", "-k", "2", stdin=TEXT)
    assert assert_fine(printed, None).decode() == made["out"]


def test_partial_trees_refuse_what_they_must(folder: Path, tmp_path: Path) -> None:
    def refused(code: int, said: str, *arguments: str | Path) -> None:
        assert_refused(treelm("parse", "--incremental", *arguments, stdin=TEXT), code, said)

    own = ("-m", folder / "hhmm")
    refused(2, "--incremental", *own, "--fast")
    refused(2, "--incremental", *own, "-o", tmp_path / "x.forest", "--forests")
    refused(2, "png", *own, "-o", tmp_path / "x.png")
    refused(2, "between 1 and 50", *own, "-k", "51")
    done = treelm("parse", "--incremental", "-m", folder / "pcfg", stdin=TEXT)
    assert done.returncode != 0
    assert b"hhmm" in done.stderr
    (tmp_path / "long.txt").write_bytes(b"the\n" + b"the " * 201)
    long = treelm("parse", "--incremental", *own, tmp_path / "long.txt")
    assert long.returncode == 3
    assert b":2:" in long.stderr


def numbers(block: str) -> list[float]:
    """Return what the steps of an explanation add, and their sum at the end."""
    return [float(line[:11]) for line in block.splitlines() if _is_number(line[:11])]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("system", ["hhmm", "pcfg"])
def test_explanations_add_up(folder: Path, system: str) -> None:
    own = ("-m", folder / system, "-q")
    scores = assert_fine(treelm("score", *own, stdin=TEXT), None).decode().split()
    blocks = assert_fine(treelm("score", *own, "--explain", stdin=TEXT), None).decode()
    explained = [block for block in blocks.split("\n\n") if block.strip()]
    for score, block in zip(scores, explained, strict=True):
        *steps, total = numbers(block)
        assert total == pytest.approx(float(score), abs=1e-5)
        assert sum(steps) == pytest.approx(total, abs=1e-4)
    table = assert_fine(treelm("surprisal", *own, "--eos", stdin=TEXT), None).decode()
    bits = [float(line.split("\t")[4]) for line in table.splitlines()[1:]]
    in_bits = assert_fine(treelm("surprisal", *own, "--explain", stdin=TEXT), None).decode()
    found = [
        value for block in in_bits.split("\n\n") if block.strip() for value in numbers(block)[:-1]
    ]
    assert found == pytest.approx(bits, abs=1e-5)


def test_explanations_refuse_what_they_must(folder: Path) -> None:
    own = ("-m", folder / "hhmm")
    for command, option in (("score", "--slr"), ("score", "--no-eos"), ("surprisal", "--eos")):
        done = treelm(command, *own, "--explain", option, stdin=TEXT)
        assert_refused(done, 2, "--explain")
