"""`treelm classify` and the trainings of classifiers on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.command_line import assert_refused, treelm

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path, sample_treebank
from treelm.models.registry import train

GOOD = [" ".join(tree.words) for tree in sample_treebank() if 4 < len(tree.words) < 13][:40]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad sentences, a parser, and a latent machine."""
    made = tmp_path_factory.mktemp("classify")
    bad = [" ".join(line.split()[::-1]) for line in GOOD]
    for name, lines in (("good", GOOD), ("bad", bad)):
        for part, chosen in (("train", lines[:30]), ("dev", lines[30:])):
            text = "".join(f"{line}\n" for line in chosen)
            (made / f"{name}_{part}").write_text(text)
    train("pcfg", TreeCorpus((sample_path(),))).save(made / "parser")
    done = treelm(
        *("train", "lsvm", *files(made, "train"), *files(made, "dev", "dev-")),
        *("--trees", sample_path(), "--rounds", "2", "--regularization", "1"),
        *("--vertical-order", "1", "-o", made / "lsvm", "--json", "-q"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"] == 2
    return made


def files(folder: Path, part: str, prefix: str = "") -> tuple[object, ...]:
    """Return the options that name the sentences of a part."""
    good, bad = (folder / f"{name}_{part}" for name in ("good", "bad"))
    return (f"--{prefix}good", good, f"--{prefix}bad", bad)


def test_labels_margins_and_probabilities(folder: Path) -> None:
    done = treelm("classify", "-m", folder / "lsvm", folder / "good_dev", "-q")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert len(rows) == 10
    for label, margin, probability in rows:
        assert label == ("good" if float(margin) > 0 else "bad")
        assert (float(probability) > 0.5) == (label == "good")


def test_decisions_are_drawn(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "why.svg"
    done = treelm(
        "classify", "-m", folder / "lsvm", folder / "good_dev", "--explain", picture, "-q"
    )
    assert done.returncode == 0, done.stderr
    root = ET.fromstring(picture.read_text())
    titles = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("margin" in title for title in titles) == 10
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert any("fill:#" in node.get("style", "") for node in texts)


def test_margins_are_explained(folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "why.txt"
    done = treelm("classify", "-m", folder / "lsvm", folder / "good_dev", "--explain", text, "-q")
    assert done.returncode == 0, done.stderr
    margins = [float(line.split("\t")[1]) for line in done.stdout.decode().splitlines()]
    blocks = [block for block in text.read_text("utf-8").split("\n\n") if block.strip()]
    for margin, block in zip(margins, blocks, strict=True):
        last = next(line for line in block.splitlines() if line.endswith("  margin"))
        assert float(last.split()[0]) == pytest.approx(margin, abs=1e-5)


@pytest.mark.parametrize("features", ["cfg", "tsg", "rerank"])
def test_tree_features(folder: Path, tmp_path: Path, features: str) -> None:
    done = treelm(
        *("train", "tree-features", *files(folder, "train"), *files(folder, "dev", "dev-")),
        *("--parser", folder / "parser", "--features", features, "--min-sentences", "2"),
        *("-o", tmp_path / "model", "--json", "-q"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == features
    judged = treelm("classify", "-m", tmp_path / "model", folder / "good_dev", "--json", "-q")
    assert judged.returncode == 0, judged.stderr
    assert len(judged.stdout.splitlines()) == 10


def test_what_cannot_be_done_is_refused(folder: Path, tmp_path: Path) -> None:
    parser = ("--parser", folder / "parser")
    model = ("classify", "-m", folder / "lsvm", folder / "good_dev")
    assert_refused(treelm(*model, *parser), 2, "--parser")
    assert_refused(treelm("classify", "-m", folder / "parser", folder / "good_dev"), 2, "classify")
    alone = ("--dev-good", folder / "good_dev", "-o", tmp_path / "model")
    command = ("train", "tree-features", *files(folder, "train"), *parser, *alone)
    assert_refused(treelm(*command), 2, "--dev-bad")
