"""`treelm train treelet`, `treelm train headlex` and counts of treelets on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.command_line import treelm_inside
from tests.models.treelet_models import sample_trees

from treelm.models.headlex.model import HeadlexModel
from treelm.models.registry import load
from treelm.models.treelet.model import TreeletModel
from treelm.tasks.evaluate.measured_text import read_measured_text
from treelm.tasks.evaluate.slr import score_text
from treelm.trees.tree import Tree


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    trees = sample_trees()
    write("train.mrg", trees[:250])
    write("a.mrg", trees[:100])
    write("b.mrg", trees[100:250])
    write("test.mrg", trees[250:270])
    Path("test.txt").write_text("".join(" ".join(tree.words) + "\n" for tree in trees[250:255]))
    return tmp_path


def write(name: str, trees: Sequence[Tree]) -> None:
    Path(name).write_text("".join(f"{tree}\n" for tree in trees))


class Run(NamedTuple):
    """What a finished command left behind."""

    code: int
    out: str
    err: str


Runner = Callable[..., Run]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Runner:
    def runner(*arguments: str) -> Run:
        done = treelm_inside(capfdbinary, *arguments)
        return Run(done.returncode, done.stdout.decode(), done.stderr.decode())

    return runner


def record(run: Runner, *arguments: str) -> dict[str, object]:
    done = run(*arguments, "--json", "-q")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def test_train_score_and_sample(run: Runner) -> None:
    made = record(
        run, "train", "treelet", "--trees", "train.mrg", "-o", "model", "--variant", "rule"
    )
    assert made["variant"] == "rule"
    assert made["sentences"] == 250
    scored = run("score", "-m", "model", "--trees", "test.mrg")
    assert scored.code == 0
    values = [float(line) for line in scored.out.splitlines()]
    assert len(values) == 20
    assert all(value < 0 for value in values)
    drawn = run(
        *("sample", "-m", "model", "-n", "3", "--with-trees"),
        *("--min-words", "5", "--max-words", "9", "--seed", "1"),
    )
    assert drawn.code == 0, drawn.err
    assert "were left out" in drawn.err
    for line in drawn.out.splitlines():
        words, tree = line.split("\t")
        assert 5 <= len(words.split()) <= 9
        assert list(Tree.from_string(tree).words) == words.split()


def test_scores_are_taken_apart(run: Runner) -> None:
    record(run, "train", "treelet", "--trees", "train.mrg", "-o", "model")
    scores = [
        float(line) for line in run("score", "-m", "model", "--trees", "test.mrg").out.split()
    ]
    lines = run("score", "-m", "model", "--trees", "test.mrg", "--explain").out.splitlines()
    header, *rows = (line.split("\t") for line in lines)
    assert header[:5] == ["tree", "kind", "label", "outcome", "log_prob"]
    sums = [0.0] * len(scores)
    for row in rows:
        sums[int(row[0]) - 1] += float(row[4])
    assert sums == pytest.approx(scores, abs=1e-3)
    refused = run("score", "-m", "model", "test.txt", "--explain", "--slr")
    assert refused.code == 2
    assert "--explain takes whole sentences" in refused.err
    record(run, "train", "headlex", "--trees", "train.mrg", "-o", "heads")
    refused = run("score", "-m", "heads", "--trees", "test.mrg", "--explain")
    assert refused.code != 0
    assert "treelet" in refused.err


def test_sentences_are_scored_with_a_parser(run: Runner) -> None:
    assert run("train", "pcfg", "--trees", "train.mrg", "-o", "grammar").code == 0
    for system in ("treelet", "headlex"):
        record(
            run,
            "train",
            system,
            "--trees",
            "train.mrg",
            "--parser",
            "grammar",
            "-k",
            "20",
            "-o",
            system,
        )
        scored = run("score", "-m", system, "test.txt")
        assert scored.code == 0, scored.err
        assert len(scored.out.splitlines()) == 5
        one = run("score", "-m", system, "-k", "1", "test.txt")
        pairs = zip(scored.out.splitlines(), one.out.splitlines(), strict=True)
        assert all(float(many) >= float(best) for many, best in pairs)
        odds = [float(line) for line in run("score", "-m", system, "--slr", "test.txt").out.split()]
        loaded = load(system)
        table = score_text(loaded, read_measured_text("test.txt"), with_unigram=True)
        assert table.unigram is not None
        assert table.lengths is not None
        expected = ((table.scores - table.unigram) / table.lengths).tolist()
        assert odds == pytest.approx(expected, abs=1e-9)
    assert isinstance(load("headlex"), HeadlexModel)


def test_score_tables_say_how_many_trees_and_which_have_none(run: Runner) -> None:
    assert run("train", "pcfg", "--trees", "train.mrg", "-o", "grammar", "-q").code == 0
    options = ("train", "treelet", "--trees", "train.mrg", "--parser", "grammar", "-o", "model")
    assert run(*options, "-q").code == 0
    short = Path("test.txt").read_text().splitlines()[0]
    Path("long.txt").write_text(" ".join(["the"] * 500) + f"\n{short}\n")
    table = run("score", "-m", "model", "-k", "10", "--format", "tsv", "long.txt")
    rows = [line.split("\t") for line in table.out.splitlines()]
    assert rows[0][-2:] == ["n_trees", "fallback"]
    assert rows[1][-2:] == ["1", "1"]
    assert rows[2][-1] == "0"
    assert int(rows[2][-2]) > 1
    # No double holds the probability of a phrase of 500 words; its logarithm is a number all the same.
    assert -1e5 < float(rows[1][2]) < -500
    assert "1 of 2 sentences have no tree" in table.err
    lines = run("score", "-m", "model", "-k", "10", "long.txt")
    assert [float(line) for line in lines.out.splitlines()] == [float(row[2]) for row in rows[1:]]
    assert "1 of 2 sentences have no tree" in lines.err


def test_text_is_parsed_and_added(run: Runner) -> None:
    assert run("train", "pcfg", "--trees", "train.mrg", "-o", "grammar").code == 0
    both = record(
        run,
        *("train", "treelet", "--trees", "train.mrg", "--text", "test.txt"),
        *("--parser", "grammar", "-o", "model"),
    )
    assert both["sentences"] == 255
    assert not [path for path in Path().iterdir() if path.name.startswith("tmp")]
    refused = run("train", "treelet", "--text", "test.txt", "-o", "other")
    assert refused.code == 2
    assert "--parser" in refused.err


def test_merged_counts_give_the_same_model(run: Runner) -> None:
    common = ("--temporal", "train.mrg", "-o")
    for part in ("a", "b"):
        record(
            run, "counts", "build", "--treelets", "full", "--trees", f"{part}.mrg", *common, part
        )
    merged = record(run, "counts", "merge", "a", "b", "-o", "all")
    assert merged["sentences"] == 250
    inspected = record(run, "counts", "inspect", "all")
    assert inspected["variant"] == "full"
    record(run, "train", "treelet", "--counts", "all", "-o", "from_counts")
    record(run, "train", "treelet", "--counts", "a", "b", "-o", "from_parts")
    record(run, "train", "treelet", "--trees", "train.mrg", "-o", "model")
    table = Path("model/tables.safetensors").read_bytes()
    assert Path("from_counts/tables.safetensors").read_bytes() == table
    assert Path("from_parts/tables.safetensors").read_bytes() == table


def test_options_reach_the_model(run: Runner) -> None:
    made = record(
        run,
        *("train", "treelet", "--trees", "train.mrg", "-o", "model", "--without", "vp_flattening"),
        *("--smoothing", "jm", "--held-out", "test.mrg", "--bits", "8", "--memory", "128M"),
        *("--base-counts", "types"),
    )
    assert made["bits"] == 8
    loaded = load("model")
    assert isinstance(loaded, TreeletModel)
    assert "vp_flattening" not in loaded.config.applied
    assert loaded.config.smoothing == "jm"
    assert loaded.config.base_counts == "types"
    plain = record(
        run, "train", "treelet", "--trees", "train.mrg", "-o", "plain", "--untransformed"
    )
    assert plain["transforms"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "treelet", "-o", "m"), "give trees"),
        (("train", "treelet", "--trees", "train.mrg", "--without", "t10", "-o", "m"), "t10"),
        (("train", "treelet", "--trees", "a.mrg", "--counts", "c", "-o", "m"), "--counts"),
        (("train", "treelet", "--trees", "a.mrg", "--smoothing", "jm", "-o", "m"), "--held-out"),
        (("counts", "build", "--treelets", "full", "--text", "test.txt", "-o", "c"), "--treelets"),
        (("counts", "build", "--untransformed", "--text", "test.txt", "-o", "c"), "--treelets"),
    ],
)
def test_wrong_options_are_explained(run: Runner, arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert said in done.err
