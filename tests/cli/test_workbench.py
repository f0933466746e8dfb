"""The commands of psycholinguists: reading times, designs, pairs in one table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm
from tests.models.ngram_models import small_ngram
from tests.models.reading import write_reading_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models and tables."""
    made = tmp_path_factory.mktemp("workbench")
    model = small_ngram(order=2)
    model.save(made / "2-gram")
    small_ngram(order=1, vocabulary=model.vocabulary).save(made / "1-gram")
    write_reading_data(made, model, shift=0, sentences=80)
    rows = ["item\tage\tverb\tcritical\tsentence"]
    rows += [
        f"{item}\t{age}\t{verb}\t4\tThe {age} {noun} {verb} ."
        for item, noun in enumerate(("ferry", "boat", "house"), 1)
        for age in ("old", "new")
        for verb in ("left", "came")
    ]
    (made / "items.tsv").write_text("\n".join(rows) + "\n")
    (made / "pairs.tsv").write_text(
        "id\tgood\tbad\n1\tThe ferry left .\tferry left the .\n2\tThe boat came .\tboat came the .\n"
    )
    return made


def test_reading_times_of_several_models(folder: Path) -> None:
    done = treelm(
        *("evaluate", "reading-times", "words.tsv", "-m", "2-gram", "-m", "1-gram"),
        *("--baseline", "1-gram", "--spill-over", "2", "--cross-validate", "10"),
        *("--r-script", "out.R", "--plot", "power.svg", "--json"),
        cwd=folder,
    )
    found = json.loads(assert_fine(done))
    assert found["model"] == "2-gram"
    assert set(found["perplexity"]) == {"1-gram", "2-gram"}
    by_key = {(row["model"], *row["over"], row["words"]): row for row in found["results"]}
    gain = by_key["2-gram", "1-gram", "all"]["cross_validated"]
    assert gain["folds"] == 10
    assert gain["per_word"] > 0
    assert gain["interval_sentences"][0] < gain["per_word"] < gain["interval_sentences"][1]
    assert by_key["1-gram", "2-gram", "all"]["delta_log_likelihood"] == pytest.approx(
        found["reverse_delta_log_likelihood"]
    )
    table = (folder / "out.tsv").read_text().splitlines()
    assert len(table) == found["n"] + 1
    assert table[0].split("\t")[-1] == "surprisal_2_gram_before_2"
    assert '"out.tsv"' in (folder / "out.R").read_text()
    assert (folder / "power.svg").read_text().startswith("<svg")
    lines = assert_fine(
        treelm("evaluate", "reading-times", "words.tsv", "-m", "2-gram", cwd=folder)
    )
    assert b"gain per word: 2-gram, all words" in lines


def test_reading_times_with_other_words_are_refused(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "words.tsv").read_text().splitlines()
    cells = lines[7].split("\t")
    changed = tmp_path / "changed.tsv"
    changed.write_text(
        "\n".join([*lines[:7], "\t".join([*cells[:2], "zebra", *cells[3:]]), *lines[8:]])
    )
    call = ("evaluate", "reading-times", changed, "-m", "2-gram", "--trees", "trees.mrg")
    assert_refused(treelm(*call, cwd=folder), 3, "changed.tsv:8:")
    shifted = [line.split("\t") for line in lines[1:]]
    words = [shifted[-1][2], *(cells[2] for cells in shifted[:-1])]
    rows = ["\t".join([*c[:2], word, *c[3:]]) for c, word in zip(shifted, words, strict=True)]
    changed.write_text("\n".join([lines[0], *rows]) + "\n")
    done = treelm(*call, "--drop-different-words", cwd=folder)
    assert_refused(done, 3, "is one of them shifted?")


def test_designs(folder: Path) -> None:
    call = ("evaluate", "design", "items.tsv", "-m", "2-gram", "--critical", "critical")
    call += ("--factors", "age", "verb=left,came", "--no-tokenize")
    done = treelm(*call, "-o", "cells.tsv", "--plot", "design.svg", "--json", cwd=folder)
    few = b"treelm: intervals and t are rough: items in all conditions: 3.\n"
    found = json.loads(assert_fine(done, few))["2-gram"]
    assert found["n"] == 3
    assert set(found["effects"]) == {"age", "verb", "interaction"}
    low, high = found["effects"]["verb"]["interval"]
    assert low <= found["effects"]["verb"]["mean"] <= high
    table = (folder / "cells.tsv").read_text().splitlines()
    assert table[0] == "model\titem\tage\tverb\tsurprisal\tunknown"
    assert len(table) == 13
    assert (folder / "design.svg").read_text().startswith("<svg")
    assert b"interaction" in assert_fine(treelm(*call, cwd=folder), few)
    assert_refused(treelm(*call[:-1], "--region", "2", cwd=folder), 2, "either --region or")


def test_pairs_of_one_table_are_compared(folder: Path) -> None:
    for model in ("2-gram", "1-gram"):
        call = ("evaluate", "pairs", "-m", model, "pairs.tsv", "-o", f"{model}.items.tsv")
        found = json.loads(assert_fine(treelm(*call, "--json", cwd=folder)))
        assert found["n"] == 2
        assert found["unknown_share"] == 0
    done = treelm("compare", "2-gram.items.tsv", "1-gram.items.tsv", "--json", cwd=folder)
    assert json.loads(assert_fine(done))["test"] == "exact McNemar"
    assert_refused(treelm("evaluate", "pairs", "pairs.tsv", cwd=folder), 2, "needs a model")


def test_stimuli_in_documents(folder: Path) -> None:
    call = ("surprisal", "-m", "2-gram", "--stimuli", "items.tsv")
    done = treelm(*call, "--document", "item", cwd=folder)
    assert_refused(done, 2, "--document is for models that remember the sentences before")
    assert_refused(treelm(*call, "--document", "page", cwd=folder), 2, 'no column "page"')
    refused = treelm("surprisal", "-m", "2-gram", "--document", "item", cwd=folder, stdin=b"x\n")
    assert_refused(refused, 2, "--document goes with --stimuli")


@pytest.mark.parametrize(
    "command",
    [
        "surprisal --stimuli items.tsv",
        "evaluate reading-times words.tsv",
        "evaluate design items.tsv --factors age=old,new verb=left,came --critical critical",
    ],
)
def test_search_options_that_no_model_has_are_refused(folder: Path, command: str) -> None:
    models = ("-m", "2-gram", "-m", "1-gram", "--beam-width", "10")
    done = treelm(*command.split(), *models, cwd=folder)
    assert_refused(done, 2, "ngram models have no search with beam_width")


def test_designs_of_few_items_say_so(folder: Path) -> None:
    factors = ("--factors", "age=old,new", "--critical", "critical")
    table = (folder / "items.tsv").read_text().splitlines()
    (folder / "one.tsv").write_text("\n".join([table[0], table[1], table[3]]) + "\n")
    done = treelm("evaluate", "design", "one.tsv", "-m", "2-gram", *factors, cwd=folder)
    assert b"] t -\n" in assert_fine(done, None)
    assert b"intervals and t are rough: items in all conditions: 1." in done.stderr


@pytest.mark.parametrize("kind", ["trees", "n-best list", "UTF-16", "commas", "nothing", "text"])
@pytest.mark.parametrize(
    "command",
    [
        "surprisal --stimuli FILE",
        "evaluate reading-times FILE",
        "evaluate suites FILE",
        "evaluate pairs FILE",
        "evaluate design FILE --factors age --region 1",
    ],
)
def test_files_of_other_kinds_are_refused(
    command: str, kind: str, folder: Path, tmp_path: Path
) -> None:
    content = {
        "trees": b"(S (NP (NN rain)) (VP (VBD fell)))\n" * 3,
        "n-best list": b"0 ||| the boat left ||| LM0= -3 ||| -4\n" * 3,
        "UTF-16": "item\tword\n1\tThe\n1\tboat\n".encode("utf-16"),
        "commas": b"item,age,zone,word,mean_rt\n1,old,1,The,300\n1,old,2,boat,310\n",
        "nothing": b"",
        "text": b"The boat left .\nIt was old .\n",
    }[kind]
    (tmp_path / "given.tsv").write_bytes(content)
    line = [str(tmp_path / "given.tsv") if part == "FILE" else part for part in command.split()]
    assert_refused(treelm(*line, "-m", folder / "2-gram"), 3, "given.tsv")
