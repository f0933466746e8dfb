"""The recipe that parses text in parts, and measures models of growing amounts of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import run_script
from tests.experiments.small_data import RECIPES, SENTENCES, train_parser, write_data, write_zorro
from tests.scripts import load_script

from treelm.grammar.forest_file import ForestFile


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    write_zorro(folder, "irregular-verb")
    (folder / "text-open").mkdir()
    return folder


def test_models_of_growing_text(data: Path, tmp_path: Path) -> None:
    parser = train_parser(data, tmp_path)
    report = tmp_path / "report"
    options = ["--data", str(data), "--output", str(report), "--threads", "1"]
    options += ["--parser", str(parser), "--parts", "4", "-k", "3"]
    script = RECIPES / "parsed_text/run.py"
    assert run_script(script, *options, "--parsed", "1", "--only-parse").strip() == str(report)
    work = tmp_path / "report.work"
    assert [path.name for path in sorted((work / "parsed").glob("*.forest"))] == ["part-00.forest"]
    assert run_script(script, *options, "--parsed", "2").strip() == str(report)

    texts = [path.read_text("utf-8").split("\n") for path in sorted((work / "parts").iterdir())]
    dealt = [line for text in texts for line in text if line]
    expected = SENTENCES + SENTENCES[1:] + SENTENCES[2:]
    assert sorted(dealt) == sorted(line for line in expected if 2 <= len(line.split()) <= 50)
    with ForestFile(work / "parsed/part-00.forest") as forest:
        found = [best[0].tree.words for best in forest if best is not None]
        assert [" ".join(words) for words in found] == [line for line in texts[0] if line]

    rows = json.loads((report / "results.json").read_text())["results"]
    accuracy = {row["model"]: row["value"] for row in rows if row["table"] == "Accuracy"}
    assert len(accuracy) == 9  # three models, three sizes
    assert all(value > 0.9 for value in accuracy.values())
    perplexity = {
        (row["model"], row["data"]): row["value"] for row in rows if row["table"] == "Perplexity"
    }
    assert len(perplexity) == 18
    # The text is that of the treebanks, so that more of it helps a great deal.
    for model, treebank in (("TREELET", "gum dev"), ("5-gram", "masc dev")):
        sizes = ("treebanks", "1 part", "2 parts")
        falling = [perplexity[f"{model}, {size}", treebank] for size in sizes]
        assert falling == sorted(falling, reverse=True)
        assert falling[-1] > 1


def test_documents_are_dealt_in_turns(tmp_path: Path) -> None:
    texts = load_script(RECIPES / "parsed_text/texts.py")
    assert texts.part_order(8) == [0, 4, 2, 6, 1, 5, 3, 7]
    assert texts.part_order(1) == [0]
    text = tmp_path / "text"
    text.write_text("".join(f"document {number}\nsame one\n\n" for number in range(10)), "utf-8")
    parts = texts.deal([text], tmp_path / "parts", 4)
    first = [part.read_text("utf-8").split("\n")[0] for part in parts]
    assert first == ["document 0", "document 2", "document 1", "document 3"]
    assert parts[0].read_text("utf-8").count("document") == 3
    # The first half of the parts has every second document.
    half = "".join(part.read_text("utf-8") for part in parts[:2])
    assert all((f"document {number}\n" in half) == (number % 2 == 0) for number in range(10))
