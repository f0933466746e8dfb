"""`treelm train slm`, `treelm train composite` and the commands that use their models."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

from treelm.corpus.sample_treebank import sample_path
from treelm.models.composite.model import CompositeModel

TEXT = b"The old ferry left the harbour .\nThere were storms .\n\nShe saw him .\n"
QUICK = ("--stack-size", "4", "--n-best", "3", "--threads", "1")


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two parts of the packaged treebank, with the documents of their trees."""
    folder = tmp_path_factory.mktemp("trees")
    lines = sample_path().read_text().splitlines(keepends=True)
    names = sample_path().with_suffix(".docs").read_text().splitlines(keepends=True)
    if len(lines) != len(names):
        pytest.fail("the packaged trees are not one a line")
    for name, part in (("train", slice(0, 260)), ("dev", slice(260, None))):
        (folder / f"{name}.mrg").write_text("".join(lines[part]))
        (folder / f"{name}.docs").write_text("".join(names[part]))
    return folder / "train.mrg", folder / "dev.mrg"


def test_train_slm_and_measure(trees: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "model"
    train, dev = trees
    done = treelm("train", "slm", "--trees", train, "--held-out", dev, "-o", out, "--json", *QUICK)
    record = json.loads(done.stdout)
    assert done.returncode == 0
    assert record["model"] == "2-SLM"
    assert [step["kind"] for step in record["rounds"]] == ["n-best", "follow-up"]
    assert b"n-best 1: log likelihood" in done.stderr
    assert not out.with_name("model.training").exists()
    model = CompositeModel.load(out, verify=True)
    found = json.loads(
        assert_fine(treelm("evaluate", "perplexity", "-m", out, "--json", stdin=TEXT), None)
    )
    expected = [model.score(line).log_prob for line in TEXT.decode().splitlines() if line]
    assert found["perplexity"] == pytest.approx(math.exp(-sum(expected) / (15 + 3)))
    assert found["exactness"] == "beam"
    again = treelm(
        "train",
        "slm",
        "--trees",
        train,
        "--held-out",
        dev,
        "-o",
        tmp_path / "two",
        "-q",
        *QUICK[:-1],
        "2",
    )
    assert again.returncode == 0
    assert (out / "tables.safetensors").read_bytes() == (
        tmp_path / "two/tables.safetensors"
    ).read_bytes()


def test_train_composite_with_topics(trees: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "model"
    train, dev = trees
    options = ("--order", "2", "--heads", "1", "--topics", "6", "--keep-topics", "2", "--seed", "3")
    done = treelm(
        "train",
        "composite",
        "--trees",
        train,
        "--held-out",
        dev,
        *options,
        *QUICK,
        "--test-topics",
        "2",
        "--follow-up",
        "0",
        "-o",
        out,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "2-gram/1-SLM/PLSA"
    model = CompositeModel.load(out)
    assert model.remembers_documents
    topics = json.loads(assert_fine(treelm("inspect", out, "--topics", "--json"), None))["topics"]
    assert len(topics) == 6
    assert sum(topic["share"] for topic in topics) == pytest.approx(1)
    found = json.loads(
        assert_fine(treelm("evaluate", "perplexity", "-m", out, "--json", stdin=TEXT), None)
    )
    lines = TEXT.decode().split("\n\n")
    total = 0.0
    for document in lines:
        context = None
        for line in document.splitlines():
            total += model.score_sentence(line, context)
            context = model.end_sentence(model.score_phrase(model.initial(context), line).state)
    assert found["perplexity"] == pytest.approx(math.exp(-total / 18))


def test_what_cannot_be_is_refused(trees: tuple[Path, Path], tmp_path: Path) -> None:
    train, dev = trees
    out = tmp_path / "model"
    base = ("train", "composite", "--trees", train, "--held-out", dev, "-o", out)
    assert_refused(treelm(*base, "--order", "0"), 2, "order")
    assert_refused(treelm(*base, "--heads", "-1"), 2, "heads")
    assert_refused(treelm(*base, "--topics", "3", "--keep-topics", "4"), 2, "--keep-topics is 4")
    assert_refused(treelm(*base, "--topics", "3", "--eta", "1"), 2, "eta")
    same = ("train", "slm", "--trees", train, "--held-out", train, "-o", out)
    assert treelm(*same, "-q").returncode != 0
    assert not out.exists()


def test_documents_can_be_asked_for(trees: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "model"
    quick = ("--topics", "4", "--keep-topics", "2", "--iterations", "0", "--heads", "0", "-q")
    train, dev = trees
    assert_fine(
        treelm("train", "composite", "--trees", train, "--held-out", dev, "-o", out, *quick), None
    )
    ask = ("evaluate", "perplexity", "-m", out, "--strict-docs", "--json")
    marked = json.loads(assert_fine(treelm(*ask, stdin=TEXT), None))
    assert marked["sentences"] == 3
    one = TEXT.replace(b"\n\n", b"\n")
    assert_refused(treelm(*ask, stdin=one), 3, "blank line", "3 sentences")
    assert_fine(treelm(*ask[:4], "--json", stdin=one), None)


def test_em_plan_of_a_model_with_heads(trees: tuple[Path, Path]) -> None:
    train, dev = trees
    config = train.with_name("em.toml")
    options = f'trees = ["{train.name}"]\nheld_out = ["{dev.name}"]\n[model]\nstack_size = 4\n'
    config.write_text(
        'system = "composite"\n[corpus]\n' + options + "topics = 4\nkeep_topics = 2\n"
        '[resources]\nmemory = "8G"\n'
    )
    found = json.loads(assert_fine(treelm("em", "plan", "--config", config, "--json"), None))
    assert (found["heads"], found["keep_topics"], found["fits"]) == (2, 2, True)
    assert found["types"]["2 words and 2 heads and topic"] > found["types"]["2 words and 2 heads"]
    assert found["peak_bytes"] == max(
        found[f"{stage}_bytes"] for stage in ("reading", "plsa", "counting", "n_best", "follow_up")
    )
    assert found["most_topics_that_fit"] == 2
    assert b"follow_up_seconds_an_iteration" in treelm("em", "plan", "--config", config).stdout
    train.with_name("x.txt").write_bytes(TEXT)
    config.write_text('system = "composite"\n[corpus]\ntext = ["x.txt"]\n')
    assert_refused(treelm("em", "plan", "--config", config), 2, "trained on trees")
