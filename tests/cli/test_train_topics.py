"""`treelm train plsa`, `treelm inspect --topics`, `treelm em plan`, and documents in commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.command_line import Argument, treelm
from tests.models.plsa_models import ANIMALS, two_topics

from treelm.corpus.corpus import TextCorpus
from treelm.models.plsa.checkpoint import PlsaCheckpoint
from treelm.models.plsa.trainer import PlsaTrainer
from treelm.models.registry import SYSTEMS
from treelm.models.run import QUIET
from treelm.tasks.train import train_and_save


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def run(*arguments: Argument) -> Ran:
    done = treelm(*arguments)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text(two_topics(60), encoding="utf-8")
    return path


def train(documents: Path, output: Path, *options: str) -> dict[str, object]:
    done = run(
        "train", "plsa", "--text", str(documents), "--topics", "2", "--seed", "1",
        "-o", str(output), "--json", *options,
    )  # fmt: skip
    assert done.code == 0, done.err
    found: dict[str, object] = json.loads(done.out)
    return found


def test_train_plsa_says_what_it_made(documents: Path, tmp_path: Path) -> None:
    record = train(documents, tmp_path / "model")
    assert (record["system"], record["order"], record["keep_topics"]) == ("plsa", 1, 2)
    assert record["kept_mass"] == pytest.approx(1)
    assert not (tmp_path / "model.training").exists()
    shown = run("inspect", str(tmp_path / "model"), "--topics", "--plot", str(tmp_path / "t.svg"))
    assert shown.code == 0, shown.err
    first, second = shown.out.splitlines()
    assert set(first.split()[2:7]) <= set(ANIMALS)  # two documents in three
    assert (tmp_path / "t.svg").read_text(encoding="utf-8").startswith("<svg")
    as_json = run("inspect", str(tmp_path / "model"), "--topics", "--json")
    assert len(json.loads(as_json.out)["topics"]) == 2
    assert second
    wrong = run("inspect", str(tmp_path / "model"), "--plot", "x.svg")
    assert wrong.code == 2


def test_a_blank_line_ends_a_document(documents: Path, tmp_path: Path) -> None:
    train(documents, tmp_path / "model", "--order", "2", "--eta", "0.2")
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    lines = ["the sun rises .", "the moon sets .", "the cat eats ."]
    one.write_text("\n".join(lines) + "\n", encoding="utf-8")
    two.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    found = []
    for path in (one, two):
        done = run("evaluate", "perplexity", "-m", str(tmp_path / "model"), str(path), "--json")
        assert done.code == 0, done.err
        found.append(json.loads(done.out))
    assert found[0]["tokens"] == found[1]["tokens"]
    assert found[0]["perplexity"] != found[1]["perplexity"]
    table = run("surprisal", "-m", str(tmp_path / "model"), str(two), "--eos")
    rows = [line.split("\t") for line in table.out.splitlines()[1:]]
    assert [row[0] for row in rows if row[2] == "1"] == ["1", "2", "3"]
    assert sum(float(row[5]) for row in rows) == pytest.approx(found[1]["log_prob"])


def test_train_plsa_goes_on_where_it_was_interrupted(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--order", "2", "--iterations", "3", "--keep-topics", "2")
    train(documents, tmp_path / "whole", *options)

    save = PlsaCheckpoint.save

    def interrupted(self: PlsaCheckpoint, trainer: PlsaTrainer) -> None:
        save(self, trainer)
        if len(trainer.history) == 1:
            raise KeyboardInterrupt

    config = {"topics": 2, "seed": 1, "order": 2, "iterations": 3, "keep_topics": 2}
    corpus = TextCorpus((documents,))
    monkeypatch.setattr(PlsaCheckpoint, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_and_save(SYSTEMS["plsa"], {"corpus": corpus}, tmp_path / "part", config, run=QUIET)
    monkeypatch.undo()
    assert (tmp_path / "part.training").is_dir()
    other = run(
        "train", "plsa", "--text", documents, "--topics", "2", "-o", tmp_path / "part", "--resume"
    )
    assert other.code == 2
    assert "another training" in other.err
    train(documents, tmp_path / "part", *options, "--resume")
    name = "tables.safetensors"
    whole, part = (tmp_path / folder / name for folder in ("whole", "part"))
    assert whole.read_bytes() == part.read_bytes()
    assert not (tmp_path / "part.training").exists()


def test_em_plan_says_what_fits(documents: Path, tmp_path: Path) -> None:
    config = tmp_path / "em.toml"
    config.write_text(
        '[corpus]\ntext = ["train.txt"]\n[model]\norder = 2\ntopics = 2\nkeep_topics = 2\n'
        '[resources]\nmemory = "1G"\n',
        encoding="utf-8",
    )
    done = run("em", "plan", "--config", str(config), "--json")
    assert done.code == 0, done.err
    plan = json.loads(done.out)
    assert plan["fits"] is True
    assert plan["smallest_cutoff_that_fits"] == 0
    record = train(documents, tmp_path / "model", "--order", "2", "--keep-topics", "2")
    assert plan["types"]["1 words and topic"] == pytest.approx(record["types"], rel=0.5)
    lines = run("em", "plan", "--config", str(config)).out
    assert "peak_bytes\t" in lines
    config.write_text("[model]\norder = 0\n", encoding="utf-8")
    assert run("em", "plan", "--config", str(config)).code == 2
    assert run("em", "plan", "--config", str(tmp_path / "none.toml")).code == 3
