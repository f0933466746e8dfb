"""`treelm corrupt`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm, treelm_inside

from treelm.corpus.sample_treebank import sample_treebank

TREES = b"(S (NP (DT This) (NN dog)) (VP (VBZ barks)))\n(S (UH Yes))\n"


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    path = tmp_path / "trees.mrg"
    path.write_bytes(TREES)
    return path


# -- trigram ----------------------------------------------------------------------------------


def test_trigram_writes_one_sentence_a_line(
    tmp_path: Path, ngram_folder: Path, text_file: Path
) -> None:
    command = ("corrupt", "trigram", "-m", ngram_folder, "-n", "40", "--seed", "1")
    done = treelm(*command, "--corpus", text_file, "--positives", text_file)
    lines = assert_fine(done, None).decode().splitlines()
    assert len(lines) == 40
    assert min(len(line.split()) for line in lines) >= 5
    note = done.stderr.decode()
    known = set(text_file.read_text().splitlines())
    for part in (
        "sentences: 40",
        "too short",
        f"in corpus: {sum(line in known for line in lines)}",
    ):
        assert part in note
    summary = tmp_path / "summary.json"
    again = treelm(*command, "--summary", summary)
    assert assert_fine(again).decode().splitlines() == lines
    assert json.loads(summary.read_text())["sentences"] == 40
    assert assert_fine(treelm(*command, "--part", "test", "-q")).decode().splitlines() != lines
    ten = treelm("corrupt", "trigram", "-m", ngram_folder, "-n", "10", "--seed", "1", "-q")
    assert assert_fine(ten).decode().splitlines() == lines[:10]


def test_trigram_refuses_what_it_must(tmp_path: Path, ngram_folder: Path) -> None:
    out = tmp_path / "out"
    command = ("corrupt", "trigram", "-m", ngram_folder, "-o", out)
    assert_refused(treelm(*command, "--min-words", "0"), 2, "--min-words")
    assert_refused(treelm(*command, "--min-words", "9", "--max-words", "8"), 2, "--max-words")
    assert_refused(treelm(*command, "--part", "other"), 2, "part")
    assert_refused(treelm(*command, "-n", "-1"), 2, "-n is -1; it must be 0 or more")
    assert_refused(treelm("corrupt", "trigram", "-n", "1"), 2, "--model")
    assert not out.exists()


# -- noisy ------------------------------------------------------------------------------------


def test_noisy_writes_sentence_type_position_and_original(
    trees: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command = ("corrupt", "noisy", "--trees", trees, "--seed", "3")
    found = set()
    for seed in range(30):
        done = treelm_inside(capfdbinary, *command[:-1], str(seed), "--only", "agreement")
        (line,) = assert_fine(done, None).decode().splitlines()
        found.add(line)
    assert found == {
        "These dog barks\tagreement\t0\tThis dog barks",
        "This dogs barks\tagreement\t1\tThis dog barks",
        "This dog bark\tagreement\t2\tThis dog barks",
    }
    note = done.stderr.decode()
    assert "skipped: too short 1, nothing applies 0" in note
    assert "types: agreement 1\n" in note


def test_noisy_counts_and_repeats(tmp_path: Path, sample_file: Path) -> None:
    out, summary = tmp_path / "noisy.tsv", tmp_path / "summary.json"
    command = ("corrupt", "noisy", "--trees", sample_file, "--seed", "1", "--summary", summary)
    assert assert_fine(treelm(*command, "-n", "700", "-o", out)) == b""
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert len(rows) == 700
    counts = json.loads(summary.read_text())
    assert counts["sentences"] == 700
    for name, made in counts["types"].items():
        assert made == sum(row[1] == name for row in rows) == sum(counts["ways"][name].values())
    originals = [" ".join(tree.words) for tree in sample_treebank() if len(tree.words) > 1]
    assert [row[3] for row in rows[: len(originals)]] == originals
    once = assert_fine(treelm(*command, "--threads", "2")).decode()
    assert out.read_text().startswith(once)
    assert once.count("\n") == len(originals)


def test_noisy_takes_words_from_another_treebank(
    tmp_path: Path, trees: Path, sample_file: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pairs = tmp_path / "pairs"
    pairs.write_text("dog dig\n")
    command = ("corrupt", "noisy", "--trees", trees, "-n", "20", "-q", "--only", "spelling")
    done = treelm_inside(capfdbinary, *command, "--confusions", pairs)
    assert {line.split("\t")[0] for line in assert_fine(done).decode().splitlines()} == {
        "This dig barks"
    }
    words = ("--lexicon", sample_file, "-n", "99", "-q")
    other = treelm_inside(capfdbinary, "corrupt", "noisy", "--trees", trees, *words)
    made = {line.split("\t")[0] for line in assert_fine(other).decode().splitlines()}
    assert len(made) > 20  # its own lexicon has four words
    equal = treelm_inside(
        capfdbinary, "corrupt", "noisy", "--trees", sample_file, "--weights", "equal", "-q"
    )
    assert b"\tverb-form\t" in assert_fine(equal)


def test_noisy_refuses_what_it_must(tmp_path: Path, trees: Path) -> None:
    out = tmp_path / "out"
    command = ("corrupt", "noisy", "--trees", trees, "-o", out)
    assert_refused(treelm(*command, "--only", "typo"), 2, "typo")
    assert_refused(treelm(*command, "--only", "verb-form", "-n", "5"), 2, "--lexicon")
    assert_refused(treelm(*command, "--seed", "-1"), 2, "--seed")
    wrong = tmp_path / "pairs"
    wrong.write_text("one\n")
    assert_refused(treelm(*command, "--confusions", wrong), 3, "pairs:1:")
    assert_refused(treelm("corrupt", "noisy", "--trees", "missing.mrg"), 3, "missing.mrg")
    assert_refused(treelm("corrupt", "noisy"), 2, "--trees")
    assert not out.exists()
