"""The recipe of the rows with parses runs on a few sentences; what it finds there means nothing."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, run_script
from tests.command_line import treelm as run_treelm
from tests.experiments.small_data import write_data

import treelm
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.encoder import encode_sentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.composite.config import CompositeConfig
from treelm.models.registry import train

RECIPE = Path(__file__).resolve().parents[2] / "experiments/composite"


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
    told = run_script(RECIPE / "sentences_to_parse.py", "--text", text, "--output", plain)
    parsed = plain.read_text().splitlines()
    # Those of the test, documents 25 and 75, need no parse.
    wanted = [each for place, each in enumerate(sentences) if place % 50 != 25]
    assert parsed == [each for each in wanted if len(each.split()) <= 40]
    assert told.startswith(f"{len(parsed)} sentences, ")
    assert_fine(run_treelm("parse", "-m", tmp_path / "parser", plain, "-q", "-o", forest))
    parts = tmp_path / "parts"
    run_script(RECIPE / "parsed_corpus.py", "--text", text, "--forest", forest, "--output", parts)
    held_out = (parts / "held-out.mrg").read_text().splitlines()
    assert len(held_out) == len((parts / "held-out.docs").read_text().splitlines()) == 3
    assert (parts / "test.txt").read_text().split("\n\n")[0].strip() == sentences[25]
    work = tmp_path / "work"
    models = ("3-gram", "3-gram Kneser-Ney", "2-SLM")
    run_script(RECIPE / "syntax.py", "--trees", parts, "--work", work, "--models", *models)
    found = {
        record["model"]: record
        for record in map(json.loads, (path.read_text() for path in work.rglob("*.json")))
    }
    assert {*models, "3-gram + 2-SLM"} <= found.keys()
    assert found["3-gram + 2-SLM"]["held_out"] <= found["3-gram"]["held_out"] + 1e-6
    for name in models:
        assert found[name]["test_new_sentences"] > 1
    report = tmp_path / "report"
    run_script(
        *(RECIPE / "syntax_report.py", "--trees", parts, "--work", work, "--output", report),
        *("--folder", "size-1"),
    )
    rows = json.loads((report / "results.json").read_text())["results"]
    measured = {
        (row["model"], row["metric"]): row
        for row in rows
        if row["data"] in ("reuters, all sentences", "reuters")
    }
    for name in (*models, "3-gram + 2-SLM"):
        row = measured[name, "perplexity"]
        assert row["value"] == pytest.approx(found[name]["test"])
        assert row["interval"][0] <= row["value"] <= row["interval"][1]
    change = measured["2-SLM", "per cent against the n-gram"]
    ratio = found["2-SLM"]["test"] / found["3-gram"]["test"]
    assert change["value"] == pytest.approx(100 * (ratio - 1))
    assert measured["2-SLM", "training seconds"]["value"] > 0
    options = ("--punctuation", "remove", "--cutoff", "0.5")
    run_script(
        RECIPE / "syntax.py",
        "--trees",
        parts,
        "--work",
        work,
        "--models",
        "3-gram",
        "2-SLM",
        *options,
    )
    without = (work / "test-remove.txt").read_text().split()
    assert len(without) < len((work / "test-keep.txt").read_text().split())
    assert not {",", ".", "``", "-LRB-"} & set(without)
    folder = work / "size-1-cutoff0.5-without-punctuation"
    kept = (folder / "3-gram.npz", folder / "2-SLM.npz")
    told = run_script(
        RECIPE / "intervals.py",
        "--work",
        work,
        "--trees",
        parts,
        "--punctuation",
        "remove",
        *kept,
    ).splitlines()
    record = json.loads((folder / "2-SLM.json").read_text())
    assert told[1].split("\t")[:2] == ["2-SLM", f"{record['test']:.2f}"]


def test_sentences_of_the_training_text_are_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))
    corpus = importlib.import_module("syntax_corpus")
    texts = (
        [("a", "b", "a", "b", "c"), ("c", "a"), ("b",) * 6],
        [("a", "b", "a", "b", "c"), ("c", "a"), ("b",) * 7, ("c", "b", "a", "b", "a")],
    )
    vocabulary = Vocabulary.from_counts({"a": 3, "b": 2, "c": 1})
    train, other = (encode_sentences(text, vocabulary) for text in texts)
    assert corpus.new_sentences(train, other).tolist() == [False, True, True, True]
    assert list(corpus.without(frozenset(".,"), ["a , b .", "", ". ,", "c"])) == [
        "a b\n",
        "\n",
        "c\n",
    ]


def test_columns_of_the_table_name_models_that_can_be_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))
    syntax = importlib.import_module("syntax")
    for order in (3, 4, 5):
        models = syntax.models_of(order)
        for name in models:
            if not name.endswith(syntax.KNESER_NEY):
                made = CompositeConfig(**syntax.options_of(name))
                assert made.name == name.removesuffix(syntax.WORDS)
        for parts in syntax.mixtures_of(order):
            assert set(parts) <= set(models)
    with pytest.raises(SystemExit, match="no model is called 3-grams"):
        syntax.options_of("3-grams")


def test_topics_kept_are_reported_with_perplexity_hours_and_types(tmp_path: Path) -> None:
    data, work, report = tmp_path / "data", tmp_path / "work", tmp_path / "report"
    data.mkdir()
    write_data(data)
    folders = ("--data", data, "--work", work)
    models = ("ngram-4", "composite-5-4", "composite4-5-4")
    options = ("--plsa-iterations", "2", "--iterations", "0", "--models", *models)
    run_script(RECIPE / "topics.py", *folders, *options)
    run_script(RECIPE / "topics.py", *folders, *options[:-3], "composite-10-4", "--no-scores")
    run_script(RECIPE / "topics_report.py", *folders, "--output", report, "--size", "4")
    found = {
        (row["model"], row["metric"]): row
        for row in json.loads((report / "results.json").read_text())["results"]
    }
    stored = json.loads((work / "start-composite-5-4.json").read_text())
    row = found["3-gram/PLSA, 5 topics kept", "perplexity"]
    assert row["value"] == stored["test_perplexity"]
    assert row["interval"][0] <= row["value"] <= row["interval"][1]
    assert ("3-gram/PLSA, 5 topics kept", "per cent against the n-gram") in found
    for model in ("3-gram/PLSA, 5 topics kept", "4-gram/PLSA, 5 topics kept"):
        assert found[model, "processor hours"]["value"] > 0
        assert found[model, "types"]["value"] > 0
    assert ("3-gram/PLSA, 10 topics kept", "perplexity") not in found
    more = found["3-gram/PLSA, 10 topics kept", "types"]["value"]
    assert more >= found["3-gram/PLSA, 5 topics kept", "types"]["value"]
