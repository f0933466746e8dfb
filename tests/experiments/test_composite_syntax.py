"""The recipe of the rows with parses runs on a few sentences; what it finds there means nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import treelm
from treelm.corpus.corpus import TreeCorpus
from treelm.models.registry import train

RECIPE = Path(__file__).resolve().parents[2] / "experiments/composite"


def run(*arguments: object) -> str:
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parsed_text_becomes_parts_and_models(tmp_path: Path) -> None:
    trees = list(treelm.sample_treebank())[:120]
    text = tmp_path / "text.txt"
    sentences = [" ".join(tree.words) for tree in trees]
    text.write_text("\n\n".join(sentences) + "\n")
    treebank = tmp_path / "trees.mrg"
    treebank.write_text("".join(f"{tree}\n" for tree in trees))
    train("pcfg", TreeCorpus((treebank,))).save(tmp_path / "parser")
    forest = tmp_path / "text.forest"
    plain = tmp_path / "plain.txt"
    plain.write_text("\n".join(sentences) + "\n")
    run("-m", "treelm", "parse", "-m", tmp_path / "parser", plain, "-q", "-o", forest)
    parts = tmp_path / "parts"
    run(RECIPE / "parsed_corpus.py", "--text", text, "--forest", forest, "--output", parts)
    held_out = (parts / "held-out.mrg").read_text().splitlines()
    assert len(held_out) == len((parts / "held-out.docs").read_text().splitlines()) == 3
    assert (parts / "test.txt").read_text().split("\n\n")[0].strip() == sentences[25]
    work = tmp_path / "work"
    models = ("3-gram", "3-gram Kneser-Ney", "2-SLM")
    run(RECIPE / "syntax.py", "--trees", parts, "--work", work, "--models", *models)
    found = {
        record["model"]: record
        for record in map(json.loads, (path.read_text() for path in work.rglob("*.json")))
    }
    assert {*models, "3-gram + 2-SLM"} <= found.keys()
    assert found["3-gram + 2-SLM"]["held_out"] <= found["3-gram"]["held_out"] + 1e-6
