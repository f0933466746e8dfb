"""Ready-made models of an installed package: found by name, used without one, fed raw text."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, run_script, treelm
from tests.models.ngram_models import small_ngram

import treelm as package
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import UsageError

TEXT = "The old ferry left.\nWe can't stay."
TOKENS = "The old ferry left .\nWe ca n't stay ."
MODELS = ("en-ngram", "en-parser", "en-hhmm")
HEAD = """---
library_name: "treelm"
license: "cc-by-4.0"
tags:
  - other
scores: {"F1": 83.5}
---
"""


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with three models, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("packages")
    models = folder / "treelm_xx"
    models.mkdir()
    (models / "__init__.py").write_text("raise SystemExit('nobody runs this')\n")
    corpus = TreeCorpus((sample_path(),))
    small_ngram(order=2).with_tokenizer("penn").save(models / "en-ngram")
    package.train("pcfg", corpus, tokenizer="penn").save(models / "en-parser")
    package.train("hhmm", corpus, depth=4, tokenizer="penn").save(models / "en-hhmm")
    (models / "en-parser" / "README.md").write_text(HEAD + "# A parser\n")
    about = folder / "treelm_xx-1.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: treelm-xx\nVersion: 1.5\n")
    entries = "".join(f"{name} = treelm_xx\n" for name in MODELS)
    (about / "entry_points.txt").write_text(f"[treelm.models]\n{entries}en-gone = treelm_yy\n")
    return folder


@pytest.fixture
def packages(installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The package on the path of every Python that is started, in an empty folder."""
    paths = [str(installed), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    monkeypatch.chdir(tmp_path)
    return installed / "treelm_xx"


def test_models_are_listed(packages: Path) -> None:
    found = json.loads(assert_fine(treelm("models", "--json"), None))["models"]
    assert [model["name"] for model in found] == sorted(MODELS)
    parser = found[-1]
    assert parser["package"] == "treelm-xx 1.5"
    assert (parser["system"], parser["tokenizer"]) == ("pcfg", "penn")
    assert (parser["license"], parser["scores"]) == ("cc-by-4.0", {"F1": 83.5})
    assert "parse" in parser["tasks"]
    size = sum(file.stat().st_size for file in (packages / "en-parser").iterdir())
    assert parser["megabytes"] == round(size / 1e6, 2)
    table = assert_fine(treelm("models")).decode()
    assert "en-parser" in table
    assert "F1 83.5" in table


def test_nothing_installed_is_said() -> None:
    done = treelm("models")
    assert assert_fine(done, None) == b""
    assert b"pip install treelm-en" in done.stderr
    assert json.loads(assert_fine(treelm("models", "--json"), None)) == {"models": []}


@pytest.mark.parametrize(
    ("command", "name"), [("parse", "en-parser"), ("surprisal", "en-hhmm"), ("score", "en-ngram")]
)
def test_commands_use_the_ready_model_and_take_raw_text(
    command: str, name: str, packages: Path
) -> None:
    raw, tokens = TEXT.encode(), TOKENS.encode()
    default = treelm(command, stdin=raw)
    assert f"the model is {name}.".encode() in default.stderr
    wanted = assert_fine(treelm(command, "-m", packages / name, "--tokenize", stdin=raw))
    assert assert_fine(default, None) == wanted
    assert assert_fine(treelm(command, "-m", name, stdin=raw)) == wanted
    as_tokens = assert_fine(treelm(command, "-m", name, "--tokenized", stdin=tokens))
    plain = Path("plain")
    shutil.rmtree(plain, ignore_errors=True)
    package.load(packages / name).with_tokenizer(None).save(plain)
    assert as_tokens == assert_fine(treelm(command, "-m", plain, stdin=tokens))
    if command != "surprisal":  # whose rows are the words between white space
        assert as_tokens == wanted


def test_a_folder_comes_before_a_ready_model(packages: Path) -> None:
    small_ngram(order=3).save("en-ngram")
    own, ready = (
        assert_fine(treelm("score", "--tokenized", "-m", name, stdin=TOKENS.encode()))
        for name in ("en-ngram", packages / "en-ngram")
    )
    assert own != ready


def test_names_that_are_not_installed_are_refused(packages: Path) -> None:
    done = treelm("score", "-m", "en-treelet", stdin=b"")
    assert_refused(done, 3, "no ready model of that name", "en-hhmm, en-ngram, en-parser")


def test_tasks_without_a_ready_model_are_refused(packages: Path) -> None:
    assert_refused(treelm("classify", stdin=b""), 2, "name a model, with --model or -m")


def test_python_loads_by_name(packages: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import treelm\n"
        "tree = treelm.load('en-parser').parse('The ferry left.')[0].tree\n"
        "print(' '.join(tree.words))\n"
    )
    assert run_script(script).split() == ["The", "ferry", "left", "."]


def test_training_on_the_command_line_keeps_the_tokenizer(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("It rained .\nRain fell .\n")
    model = tmp_path / "model"
    options = ("--order", "2", "--smoothing", "kn", "--tokenizer", "penn", "-o", model)
    assert_fine(treelm("train", "ngram", "--text", text, *options))
    done = treelm("surprisal", "-m", model, stdin=b"It rained.")
    assert [row.split("\t")[3] for row in assert_fine(done).decode().splitlines()[1:]] == [
        "It",
        "rained.",
    ]


def test_several_models_measure_a_table_of_stimuli(packages: Path, tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("item,condition,sentence\n1,a,The ferry left.\n1,b,We can't stay.\n")
    both = ("-m", "en-hhmm", "-m", "en-ngram")
    done = treelm("surprisal", *both, "--stimuli", table, "--measures", "all", "-o", "out.tsv")
    assert_fine(done, None)
    header, *rows = (line.split("\t") for line in Path("out.tsv").read_text().splitlines())
    assert header[:5] == ["item", "condition", "sentence", "position", "word"]
    assert {"surprisal_en-hhmm", "oov_en-hhmm", "depth_en-hhmm", "surprisal_en-ngram"} < set(header)
    assert "depth_en-ngram" not in header
    assert [row[4] for row in rows] == ["The", "ferry", "left.", "We", "can't", "stay."]
    one = treelm("surprisal", "-m", "en-ngram", stdin=b"The ferry left.\nWe can't stay.")
    alone = [line.split("\t")[4] for line in assert_fine(one, None).decode().splitlines()[1:]]
    column = header.index("surprisal_en-ngram")
    assert [float(row[column]) for row in rows] == pytest.approx(list(map(float, alone)))
    refused = treelm("surprisal", *both, stdin=b"x")
    assert_refused(refused, 2, "several models go with --stimuli")


def test_models_that_take_text_differently_are_refused(packages: Path, tmp_path: Path) -> None:
    table = tmp_path / "items.tsv"
    table.write_text("item\tword\n1\tThe\n1\tferry\n")
    small_ngram(order=2).save("plain")
    both = ("surprisal", "-m", "en-ngram", "-m", "plain", "--stimuli", table)
    assert_refused(treelm(*both), 2, "say --tokenize or --tokenized")
    assert b"surprisal_plain" in assert_fine(treelm(*both, "--tokenized"), None)


def test_models_with_different_tokenizers_are_refused(packages: Path, tmp_path: Path) -> None:
    table = tmp_path / "items.tsv"
    table.write_text("item\tword\n1\tThe\n1\tferry\n")
    small_ngram(order=2).with_tokenizer("simple").save("simple")
    both = ("-m", "en-ngram", "-m", "simple")
    message = "different tokenizers (penn and simple)"
    assert_refused(treelm("surprisal", *both, "--stimuli", table), 2, message)
    with pytest.raises(UsageError, match="different tokenizers"):
        package.surprisal_table({"a": packages / "en-ngram", "b": "simple"}, table)
    times = tmp_path / "times.tsv"
    times.write_text("item\tzone\tword\tmean_rt\n1\t1\tThe\t300\n")
    assert_refused(treelm("evaluate", "reading-times", times, *both), 2, message)


def test_pairs_are_raw_text_for_models_that_take_it(packages: Path, tmp_path: Path) -> None:
    raw, tokens = tmp_path / "raw.tsv", tmp_path / "tokens.tsv"
    raw.write_text("good\tbad\nThe ferry didn't leave.\tThe ferry leave didn't.\n")
    tokens.write_text("good\tbad\nThe ferry did n't leave .\tThe ferry leave did n't .\n")
    for table, how in ((raw, ()), (tokens, ("--tokenized",)), (raw, ("--tokenized",))):
        done = treelm("evaluate", "pairs", "-m", "en-ngram", table, *how, "-o", f"{len(how)}.tsv")
        assert_fine(done, None)
        assert (b"looks untokenized" in done.stderr) == (table is raw and bool(how))
        if table is tokens:
            assert Path("0.tsv").read_bytes() == Path("1.tsv").read_bytes()


#: A suite whose words the two tokenizers take apart differently.
SUITE = {
    "meta": {"name": "s", "metric": "sum"},
    "region_meta": {"1": "a"},
    "predictions": [{"type": "formula", "formula": "(1;%x%) < (1;%y%)"}],
    "items": [
        {
            "item_number": 1,
            "conditions": [
                {"condition_name": name, "regions": [{"region_number": 1, "content": text}]}
                for name, text in (("x", "It didn't leave"), ("y", "Frumious didn't leave"))
            ],
        }
    ],
}


@pytest.mark.parametrize(("tokenizer", "words"), [("penn", 8), ("simple", 6)])
def test_suites_and_designs_use_the_tokenizer_of_the_model(
    tokenizer: str, words: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small_ngram(order=2).with_tokenizer(tokenizer).save("model")
    Path("suite.json").write_text(json.dumps(SUITE))
    Path("items.csv").write_text(
        "item,c,first,sentence\n1,x,1,It didn't leave\n1,y,1,Frumious didn't leave\n"
    )
    for command in (
        ("suites", "suite.json"),
        ("design", "items.csv", "--factors", "c", "--critical", "first"),
    ):
        done = treelm("evaluate", *command, "-m", "model")
        assert_fine(done, None)
        assert f"of {words}) are unknown".encode() in done.stderr


def test_demo_shows_the_ready_models(packages: Path) -> None:
    shown = assert_fine(treelm("demo", "-o", "tour.html"), None).decode()
    assert "Ready models: en-hhmm (" in shown
    assert "raced " in shown
    assert "What en-parser makes of raw text" in shown
    assert "325 trees" in shown
    page = Path("tour.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("treelm-chart") >= 2
    assert_refused(treelm("demo", "-o", "tour.png"), 2, "rsvg-convert")
