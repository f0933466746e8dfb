"""`treelm train hhmm` and the commands that use its models."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm
from tests.models.ngram_models import small_ngram
from tests.models.reading import write_reading_data

from treelm.corpus.sample_treebank import sample_path
from treelm.models.hhmm.model import HhmmModel

TEXT = b"The old ferry left the harbour .\nThere were storms .\n"


NOT_EXACT = b"treelm: these scores are not exact: the beam leaves out improbable parses.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hhmm") / "model"
    done = treelm("train", "hhmm", "--trees", sample_path(), "--depth", "3", "-o", made, "--json")
    record = json.loads(assert_fine(done, None))
    assert record["system"] == "hhmm"
    assert record["depth"] == 3
    assert 0 < record["fitting_share"] <= 1
    return made


def test_train_hhmm_refuses_what_it_must(tmp_path: Path) -> None:
    out = tmp_path / "model"
    assert_refused(
        treelm("train", "hhmm", "--trees", sample_path(), "--depth", "9", "-o", out), 2, "depth"
    )
    assert not out.exists()


def test_hhmm_scores_and_measures(folder: Path) -> None:
    model = HhmmModel.load(folder)
    lines = assert_fine(treelm("score", "-m", folder, stdin=TEXT), NOT_EXACT).decode().split()
    expected = [model.score(line).log_prob for line in TEXT.decode().splitlines()]
    assert [float(line) for line in lines] == pytest.approx(expected)
    found = json.loads(
        assert_fine(treelm("evaluate", "perplexity", "-m", folder, "--json", stdin=TEXT), None)
    )
    assert found["perplexity"] == pytest.approx(math.exp(-sum(expected) / (11 + 2)))
    assert found["exactness"] == "beam"
    narrow = treelm(
        "evaluate", "perplexity", "-m", folder, "--beam-width", "2", "--json", stdin=TEXT
    )
    assert "beam:2" in json.loads(assert_fine(narrow, None))["signature"]


def test_hhmm_surprisal_has_measures_and_pictures(tmp_path: Path, folder: Path) -> None:
    plot, states = tmp_path / "plot.svg", tmp_path / "states.svg"
    done = treelm(
        *("surprisal", "-m", folder, "--beam-width", "50", "--measures", "all"),
        *("--plot", plot, "--parser-states", states),
        stdin=TEXT,
    )
    header, *rows = assert_fine(done).decode().splitlines()
    assert header.split("\t")[7:] == [
        "syntactic",
        "lexical",
        "entropy",
        "entropy_reduction",
        "depth",
        "open_nodes",
        "embedding_difference",
        "stacks",
        "beam_mass",
    ]
    assert len(rows) == 11
    assert plot.read_text().startswith("<svg")
    assert "ferry" in states.read_text()
    old_name = tmp_path / "old-name.svg"
    assert_fine(treelm("surprisal", "-m", folder, "--beliefs", old_name, stdin=TEXT))
    assert "ferry" in old_name.read_text()


def test_hhmm_surprisal_keeps_stimuli(tmp_path: Path, folder: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("item,region,word\n7,1,The old\n7,2,ferry\n3,1,There\n")
    done = treelm("surprisal", "-m", folder, "--stimuli", table, "--format", "csv")
    lines = assert_fine(done).decode().splitlines()
    assert [line.rsplit(",", 4)[0] for line in lines] == table.read_text().splitlines()
    assert_refused(
        treelm("surprisal", "-m", folder, "--stimuli", table, "--format", "minicons"),
        2,
        "--stimuli",
    )


def test_hhmm_parses_and_samples(folder: Path) -> None:
    trees = assert_fine(treelm("parse", "-m", folder, stdin=TEXT)).decode().splitlines()
    assert len(trees) == 2
    assert trees[0].startswith("(ROOT (S (NP (DT The) (JJ old)")
    drawn = treelm("sample", "-m", folder, "-n", "2", "--seed", "4", "--max-words", "8")
    cut = b"treelm: 1 of 2 sentences were cut after 8 words.\n"
    assert len(assert_fine(drawn, cut).decode().splitlines()) == 2


def test_hhmm_takes_a_beam_in_every_command(tmp_path: Path, folder: Path) -> None:
    narrow = HhmmModel.load(folder).with_search(beam_width=3)
    lines = treelm("score", "-m", folder, "--beam-width", "3", stdin=TEXT)
    expected = [narrow.score(line).log_prob for line in TEXT.decode().splitlines()]
    found = assert_fine(lines, NOT_EXACT).decode().split()
    assert [float(line) for line in found] == pytest.approx(expected)
    trees = treelm("parse", "-m", folder, "--beam-width", "3", stdin=TEXT)
    assert len(assert_fine(trees, None).decode().splitlines()) == 2
    drawn = treelm("sample", "-m", folder, "--beam-width", "3", "--max-words", "8")
    assert len(assert_fine(drawn, None).decode().splitlines()) == 1
    for command in ("score", "parse", "surprisal"):
        refused = treelm(command, "-m", folder, "--beam-width", "0", stdin=TEXT)
        assert_refused(refused, 2, "--beam-width is")
    small_ngram(order=2).save(tmp_path / "ngram")
    refused = treelm("score", "-m", tmp_path / "ngram", "--beam-width", "3", stdin=TEXT)
    assert_refused(refused, 2, "no search with beam_width")


def test_hhmm_parses_with_another_beam_into_another_file(tmp_path: Path, folder: Path) -> None:
    out = tmp_path / "parses.forest"
    assert treelm("parse", "-m", folder, "-o", out, stdin=TEXT).returncode == 0
    refused = treelm("parse", "-m", folder, "--beam-width", "3", "-o", out, stdin=TEXT)
    assert refused.returncode != 0
    assert b"another" in refused.stderr or b"other" in refused.stderr


def test_hhmm_mixes_on_the_command_line(tmp_path: Path, folder: Path) -> None:
    vocabulary = folder / "words.txt"
    ngram, text = tmp_path / "ngram", tmp_path / "held-out.txt"
    text.write_bytes(TEXT)
    trained = treelm(
        *("train", "ngram", "--trees", sample_path(), "--order", "2"),
        *("--vocabulary", vocabulary, "-o", ngram),
    )
    assert trained.returncode == 0
    mixture = tmp_path / "mixture"
    done = treelm(
        *("train", "interpolated", "--models", folder, ngram, "--held-out", text),
        *("-o", mixture, "--json"),
    )
    assert sum(json.loads(assert_fine(done))["weights"]) == pytest.approx(1)
    table = assert_fine(treelm("surprisal", "-m", mixture, "--measures", "depth", stdin=TEXT))
    assert table.decode().splitlines()[0].endswith("\tdepth")


def test_reading_times_compare_two_models(tmp_path: Path, folder: Path) -> None:
    baseline = small_ngram(order=2)
    baseline.save(tmp_path / "ngram")
    times, trees = write_reading_data(tmp_path, baseline, shift=0, sentences=60)
    done = treelm(
        *("evaluate", "reading-times", times, "--trees", trees, "-m", folder),
        *("--baseline", tmp_path / "ngram", "--beam-width", "20", "--json"),
        *("--table", tmp_path / "table.tsv"),
    )
    found = json.loads(assert_fine(done))
    assert found["reverse_delta_log_likelihood"] > found["delta_log_likelihood"] >= 0
    assert 0 <= found["p_value"] <= 1
    lines = (tmp_path / "table.tsv").read_text().splitlines()
    assert len(lines) == found["n"] + 1
    assert lines[0].split("\t")[:3] == ["item", "zone", "sentence"]
    small_ngram(["the boat sank"], order=1).save(tmp_path / "other")
    call = ("evaluate", "reading-times", times, "--trees", trees, "-m", tmp_path / "ngram")
    done = treelm(*call, "--baseline", tmp_path / "other")
    assert done.stderr.count(b"% of the words") == 1
    assert re.search(rb"are unknown to \S+/other\. Is the text", done.stderr)
