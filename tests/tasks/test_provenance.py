"""What a model says it was trained on, and that it is not measured on that."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from tests.models.ngram_models import small_ngram

import treelm
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import UsageError
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.train import train_pcfg
from treelm.models.registry import SYSTEMS, load
from treelm.models.run import Run
from treelm.store.manifest import MANIFEST
from treelm.tasks.evaluate.measured_text import (
    check_files_not_trained_on,
    check_not_trained_on,
    read_measured_text,
)
from treelm.tasks.train import train_and_save

LINES = 12


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trees, the words of others, and a grammar that parses them."""
    folder = tmp_path_factory.mktemp("files")
    lines = sample_path().read_bytes().splitlines(keepends=True)
    (folder / "trees.mrg").write_bytes(b"".join(lines[:40]))
    (folder / "more.mrg").write_bytes(b"".join(lines[40 : 40 + LINES]))
    sentences = [" ".join(tree.words) for tree in TreeCorpus((folder / "more.mrg",))]
    (folder / "text.txt").write_text("".join(f"{sentence}\n" for sentence in sentences))
    train_pcfg(TreeCorpus((folder / "trees.mrg",)), PcfgConfig()).save(folder / "grammar")
    return folder


@pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")
@pytest.mark.parametrize("system", ["treelet", "headlex"])
@pytest.mark.parametrize("with_trees", [False, True])
def test_a_model_of_parsed_text_names_the_text(
    system: str, with_trees: bool, files: Path, tmp_path: Path
) -> None:
    inputs: dict[str, Any] = {
        "corpus": TreeCorpus((files / "trees.mrg",)) if with_trees else None,
        "text": TextCorpus((files / "text.txt",)),
        "parser": load(files / "grammar"),
    }
    manifests = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        target = tmp_path / place / "model"
        train_and_save(SYSTEMS[system], inputs, target, {}, run=Run())
        manifests.append(re.sub(r'"date": ".*"', "", (target / MANIFEST).read_text()))
        assert [path.name for path in (tmp_path / place).iterdir()] == ["model"]
    assert manifests[0] == manifests[1]
    model = load(target)
    records = {record.name: record for record in model.corpora}
    expected = [str(files / "trees.mrg")] * with_trees + [str(files / "text.txt")]
    assert list(records) == expected
    own = records[str(files / "text.txt")]
    data = (files / "text.txt").read_bytes()
    assert own.sha256 == hashlib.sha256(data + f"\n{len(data)}\n".encode()).hexdigest()
    assert own.sentences == LINES
    with pytest.raises(UsageError) as caught:
        check_not_trained_on(model, [read_measured_text(files / "text.txt")])
    assert caught.value.code == "E_TEST_IN_TRAINING"


def test_perplexity_of_the_training_text_is_refused(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text("the boat left\n")
    other.write_text("a boat left\n")
    model = small_ngram(["the boat left"], order=1)
    with pytest.raises(UsageError, match="allow_overlap=True") as caught:
        treelm.evaluate.perplexity(model, text)
    assert caught.value.code == "E_TEST_IN_TRAINING"
    allowed = treelm.evaluate.perplexity(model, text, allow_overlap=True)
    assert allowed == model.perplexity(TextCorpus((text,)))
    assert treelm.evaluate.perplexity(model, other).sentences == 1
    assert treelm.evaluate.perplexity(model, ["the boat left"]).sentences == 1


@pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")
def test_one_of_several_files_or_all_of_them_are_recognized(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("the boat left\n")
    two.write_text("a boat left\n")
    for trained, measured in (((one, two), (one, two)), ((two,), (one, two)), ((one,), (one,))):
        model = train_ngram(TextCorpus(trained), NgramConfig(order=1))
        with pytest.raises(UsageError) as caught:
            check_files_not_trained_on(model, measured)
        assert caught.value.code == "E_TEST_IN_TRAINING"
    check_files_not_trained_on(model, [two])
    check_files_not_trained_on(model, ["-"])  # can be read only once
