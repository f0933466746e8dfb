"""Raw text given to models: warnings on standard error, and --tokenize with one meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_line import assert_fine, treelm_line

import treelm
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.tokenize import tokenize

Capture = pytest.CaptureFixture[bytes]

RAW = "The ferry didn't leave.\n\nWe can't stay in the harbour.\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    trees = treelm.TreeCorpus((sample_path(),))
    treelm.train("ngram", trees, order=3).save(folder / "ngram")
    treelm.train("pcfg", trees).save(folder / "pcfg")
    good = treelm.TextCorpus.of_sentences([tree.words for tree in trees][:40])
    bad = treelm.TextCorpus.of_sentences([tree.words[::-1] for tree in trees][:40])
    judge = treelm.train("trigram_svm", treelm.LabelledSentences(good, bad), regularization=1.0)
    judge.save(folder / "judge")
    (folder / "raw.txt").write_text(RAW)
    tokenized = "".join(" ".join(tokenize(line)) + "\n" for line in RAW.splitlines())
    (folder / "tokenized.txt").write_text(tokenized)
    (folder / "other.txt").write_text("\n".join(reversed(RAW.splitlines())) + "\n")
    return folder


#: Commands whose output for raw text with --tokenize is that for the tokenized text.
SAME = [
    "score -m @ngram FILE",
    "score -m @pcfg FILE",
    "parse -m @pcfg FILE",
    "parse -m @pcfg -k 2 FILE",
    "classify -m @judge FILE",
]


@pytest.mark.parametrize("line", SAME)
def test_tokenize_means_the_same_as_tokenizing_before(
    line: str, models: Path, capfdbinary: Capture
) -> None:
    raw = treelm_line(models, capfdbinary, line.replace("FILE", "@raw.txt --tokenize"))
    before = treelm_line(models, capfdbinary, line.replace("FILE", "@tokenized.txt"))
    assert assert_fine(raw, None) == assert_fine(before, None) != b""


@pytest.mark.parametrize("line", [*SAME, "surprisal -m @ngram FILE", "score -m @ngram --slr FILE"])
def test_raw_text_is_noticed_on_standard_error(
    line: str, models: Path, capfdbinary: Capture
) -> None:
    found = treelm_line(models, capfdbinary, line.replace("FILE", "@raw.txt"))
    assert found.returncode == 0
    assert b"of the words" in found.stderr
    assert b"looks untokenized" in found.stderr
    assert found.stderr.count(b"looks untokenized") == 1
    quiet = treelm_line(models, capfdbinary, line.replace("FILE", "@raw.txt -q"))
    assert (quiet.stdout, quiet.stderr) == (found.stdout, b"")
    tokenized = treelm_line(models, capfdbinary, line.replace("FILE", "@raw.txt --tokenize"))
    assert b"looks untokenized" not in tokenized.stderr


def test_surprisal_of_raw_text_has_a_row_for_each_word(models: Path, capfdbinary: Capture) -> None:
    done = treelm_line(models, capfdbinary, "surprisal -m @ngram --tokenize @raw.txt")
    rows = [line.split("\t") for line in assert_fine(done, None).decode().splitlines()[1:]]
    assert [row[3] for row in rows] == RAW.split()
    assert [row[0] for row in rows] == ["1"] * 4 + ["2"] * 6
    tokens = treelm_line(models, capfdbinary, "surprisal -m @ngram @tokenized.txt")
    single = [line.split("\t") for line in assert_fine(tokens, None).decode().splitlines()[1:]]
    assert float(rows[2][4]) == pytest.approx(float(single[2][4]) + float(single[3][4]))
    assert sum(float(row[4]) for row in rows) == pytest.approx(sum(float(row[4]) for row in single))


def test_score_table_of_raw_text_counts_words(models: Path, capfdbinary: Capture) -> None:
    done = treelm_line(models, capfdbinary, "score -m @ngram --format tsv --tokenize @raw.txt")
    raw = [line.split("\t") for line in assert_fine(done, None).decode().splitlines()[1:]]
    done = treelm_line(models, capfdbinary, "score -m @ngram --format tsv @tokenized.txt")
    before = [line.split("\t") for line in assert_fine(done, None).decode().splitlines()[1:]]
    assert [row[1] for row in raw] == ["4", "6"]
    assert [row[1] for row in before] == ["6", "8"]
    assert [row[2] for row in raw] == [row[2] for row in before]


def test_perplexity_of_raw_text(models: Path, capfdbinary: Capture) -> None:
    done = treelm_line(models, capfdbinary, "evaluate perplexity -m @ngram --tokenize @raw.txt")
    shown = assert_fine(done, None).decode()
    assert "tokens                  10\n" in shown
    done = treelm_line(models, capfdbinary, "evaluate perplexity -m @ngram @raw.txt")
    assert b"looks untokenized" in done.stderr
    done = treelm_line(
        models, capfdbinary, "evaluate perplexity -m @ngram --tokenize --oov-mode skip @raw.txt"
    )
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("--tokenize", "--tokenize yes"),
        ("--no-tokenize", "--tokenize=no"),
        ("", "--tokenize auto"),
    ],
)
def test_pairs_take_the_flag_and_the_old_values(
    new: str, old: str, models: Path, capfdbinary: Capture
) -> None:
    command = "evaluate pairs -m @ngram @raw.txt @other.txt"
    found = [treelm_line(models, capfdbinary, f"{command} {option}") for option in (new, old)]
    assert assert_fine(found[0], None) == assert_fine(found[1], None) != b""
    assert (b"looks untokenized" in found[0].stderr) == (new != "--tokenize")
