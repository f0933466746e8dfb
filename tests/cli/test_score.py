"""`treelm score`, `surprisal`, `sample` and `evaluate perplexity`."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, finish, start_treelm, treelm

from treelm.models.ngram.model import NgramModel
from treelm.models.registry import load


@pytest.fixture
def model(ngram_folder: Path) -> NgramModel:
    loaded = load(ngram_folder)
    assert isinstance(loaded, NgramModel)
    return loaded


def test_score_writes_one_number_a_line(ngram_folder: Path, model: NgramModel) -> None:
    text = b"The old ferry left .\n\nfrumious\n  \nthe  the\n"
    lines = assert_fine(treelm("score", "-m", ngram_folder, stdin=text)).decode().splitlines()
    assert [line == "" for line in lines] == [False, True, False, True, False]
    assert float(lines[0]) == pytest.approx(model.score("The old ferry left .").log_prob, abs=1e-9)
    assert float(lines[4]) == pytest.approx(model.score("the the").log_prob, abs=1e-9)


def test_score_takes_files_and_options(
    tmp_path: Path, ngram_folder: Path, text_file: Path, model: NgramModel
) -> None:
    out = tmp_path / "scores"
    done = treelm(
        "score", text_file, text_file, "-m", ngram_folder, "--no-eos", "--limit", "400", "-o", out
    )
    assert assert_fine(done) == b""
    lines = out.read_text().splitlines()
    assert len(lines) == 400
    assert lines[0] == lines[325]
    first = text_file.read_text().splitlines()[0]
    assert float(lines[0]) == pytest.approx(model.score(first, eos=False).log_prob, abs=1e-9)
    two = treelm("score", text_file, "-m", ngram_folder, "--threads", "2")
    assert two.stdout == treelm("score", text_file, "-m", ngram_folder, "--threads", "1").stdout


def test_score_takes_fragments(ngram_folder: Path, model: NgramModel) -> None:
    options = ("--no-bos", "--no-eos")
    done = treelm("score", "-m", ngram_folder, *options, stdin=b"the ferry\n\nleft\n")
    expected = [model.score(each, bos=False, eos=False) for each in ("the ferry", "left")]
    first, second = (repr(score.log_prob) for score in expected)
    assert assert_fine(done).decode() == f"{first}\n\n{second}\n"
    done = treelm("score", "-m", ngram_folder, "--no-bos", "--slr", stdin=b"left\n")
    assert_refused(done, 2)


def test_score_answers_line_by_line(ngram_folder: Path) -> None:
    process = start_treelm("score", "-m", ngram_folder, "--line-buffered")
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(2):
        process.stdin.write(b"the boat\n")
        process.stdin.flush()
        assert float(process.stdout.readline()) < 0
    assert finish(process).returncode == 0


def test_score_refuses_what_it_must(tmp_path: Path, ngram_folder: Path, text_file: Path) -> None:
    assert_refused(treelm("score", stdin=b"a\n"), 2, "--model")
    assert_refused(treelm("score", "-m", tmp_path / "missing", stdin=b"a\n"), 3)
    assert_refused(treelm("score", "-m", text_file, stdin=b"a\n"), 3)
    assert_refused(treelm("score", "missing", "-m", ngram_folder), 3, "no such file")
    assert_refused(
        treelm("score", "-m", ngram_folder, stdin=b"a\na </s> b\n"), 3, "standard input:2:"
    )
    assert_refused(treelm("score", "-m", ngram_folder, stdin=b"a \xff\n"), 3, "UTF-8")
    assert_refused(treelm("score", "-m", ngram_folder, "--limit", "-1", stdin=b"a\n"), 2, "--limit")


def test_score_ends_quietly_when_its_reader_goes(ngram_folder: Path) -> None:
    process = start_treelm("score", "-m", ngram_folder, "--line-buffered")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"the boat\n" * 10)
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    done = finish(process)
    assert b"Traceback" not in done.stderr


# -- surprisal ------------------------------------------------------------------------------


def test_surprisal_has_one_row_a_word(ngram_folder: Path, text_file: Path) -> None:
    words = text_file.read_text().split()
    lines = assert_fine(treelm("surprisal", text_file, "-m", ngram_folder)).decode().splitlines()
    assert lines[0].split("\t") == [
        "doc_id",
        "sent_id",
        "word_id",
        "word",
        "surprisal",
        "log_prob",
        "oov",
    ]
    assert [line.split("\t")[3] for line in lines[1:]] == words


def test_surprisal_is_that_of_the_model(ngram_folder: Path, model: NgramModel) -> None:
    done = treelm("surprisal", "-m", ngram_folder, "--eos", stdin=b"The frumious ferry\n\nleft\n")
    rows = [line.split("\t") for line in assert_fine(done).decode().splitlines()[1:]]
    expected = model.surprisal("The frumious ferry", eos=True) + model.surprisal("left", eos=True)
    assert [row[3] for row in rows] == ["The", "frumious", "ferry", "</s>", "left", "</s>"]
    assert [row[0] for row in rows] == ["1"] * 4 + ["2"] * 2
    assert [float(row[4]) for row in rows] == pytest.approx([each.surprisal for each in expected])
    assert [row[6] for row in rows] == ["0", "1", "0", "0", "0", "0"]


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "itemmeasures", "minicons"])
def test_surprisal_formats(tmp_path: Path, ngram_folder: Path, form: str) -> None:
    out = tmp_path / "table.gz"
    done = treelm(
        "surprisal", "-m", ngram_folder, "--format", form, "-o", out, stdin=b'the " boat\nleft\n'
    )
    assert_fine(done)
    assert out.read_bytes()[:2] == b"\x1f\x8b"


def test_surprisal_refuses_other_formats(ngram_folder: Path) -> None:
    assert_refused(
        treelm("surprisal", "-m", ngram_folder, "--format", "xls", stdin=b"a\n"), 2, "xls"
    )


# -- samples --------------------------------------------------------------------------------


def test_samples_depend_on_the_seed_alone(ngram_folder: Path, model: NgramModel) -> None:
    five = assert_fine(treelm("sample", "-m", ngram_folder, "-n", "5", "--seed", "1"))
    assert five.count(b"\n") == 5
    assert five == assert_fine(treelm("sample", "-m", ngram_folder, "-n", "5", "--seed", "1"))
    assert five != assert_fine(treelm("sample", "-m", ngram_folder, "-n", "5", "--seed", "2"))
    two = assert_fine(treelm("sample", "-m", ngram_folder, "-n", "2", "--seed", "1"))
    assert five.startswith(two)
    drawn = [" ".join(each.words) for each in model.sample(5, seed=1)]
    assert five.decode().splitlines() == drawn


def test_samples_without_a_seed_report_it(ngram_folder: Path) -> None:
    done = treelm("sample", "-m", ngram_folder, "-n", "5")
    assert done.returncode == 0
    found = re.fullmatch(rb"treelm: sampling with --seed (\d+)\.\n", done.stderr)
    assert found is not None
    again = treelm("sample", "-m", ngram_folder, "-n", "5", "--seed", found[1].decode())
    assert assert_fine(again) == done.stdout
    assert treelm("sample", "-m", ngram_folder, "-n", "5").stdout != done.stdout


def test_samples_that_were_cut_are_noted(ngram_folder: Path) -> None:
    done = treelm("sample", "-m", ngram_folder, "-n", "20", "--max-words", "2", "--seed", "0")
    assert b"were cut after 2 words" in done.stderr
    assert max(len(line.split()) for line in done.stdout.splitlines()) == 2
    assert_fine(treelm("sample", "-m", ngram_folder, "-n", "20", "--max-words", "2", "-q"))
    assert_refused(treelm("sample", "-m", ngram_folder, "-n", "-1"), 2)


# -- perplexity -----------------------------------------------------------------------------


def test_perplexity_is_one_json_object(
    ngram_folder: Path, text_file: Path, model: NgramModel
) -> None:
    done = treelm(
        *("evaluate", "perplexity", "-m", ngram_folder, text_file, "--json", "--allow-overlap")
    )
    found = json.loads(assert_fine(done))
    assert (found["tokens"], found["sentences"], found["oov"]) == (3860, 325, 0)
    total = float(model.sentence_log_probs(text_file.read_text().splitlines()).sum())
    assert found["perplexity"] == pytest.approx(math.exp(-total / (3860 + 325)))
    assert found["perplexity_without_eos"] > 1
    assert "|sys:ngram|train:" in found["signature"]
    assert "|order:3|smoothing:mkn|" in found["signature"]


def test_perplexity_reads_standard_input_and_leaves_unknown_words_out(ngram_folder: Path) -> None:
    text = b"the frumious boat\n\nthe boat\n"
    found = [
        json.loads(
            assert_fine(
                treelm(
                    *("evaluate", "perplexity", "-m", ngram_folder, "--oov-mode", mode, "--json"),
                    stdin=text,
                )
            )
        )
        for mode in ("include", "skip")
    ]
    assert [each["oov"] for each in found] == [1, 1]
    assert found[0]["perplexity"] != found[1]["perplexity"]
    lines = assert_fine(treelm("evaluate", "perplexity", "-m", ngram_folder, stdin=text)).decode()
    assert lines.startswith("perplexity ")


def test_infinite_perplexity_is_null_in_json(tmp_path: Path, text_file: Path) -> None:
    done = treelm(
        "train",
        "ngram",
        "--order",
        "2",
        "--smoothing",
        "berkeley",
        "--text",
        text_file,
        "-o",
        tmp_path / "m",
    )
    assert_fine(done, None)
    command = ("evaluate", "perplexity", "-m", tmp_path / "m")
    found = json.loads(assert_fine(treelm(*command, "--json", stdin=b"frumious\n")))
    assert found["perplexity"] is None
    assert found["oov"] == 1
    assert b" inf\n" in assert_fine(treelm(*command, stdin=b"frumious\n"))
    skipped = json.loads(
        assert_fine(treelm(*command, "--oov-mode", "skip", "--json", stdin=b"the frumious\n"))
    )
    assert skipped["perplexity_without_eos"] > 1


def test_perplexity_of_nothing_is_refused(ngram_folder: Path) -> None:
    assert_refused(
        treelm("evaluate", "perplexity", "-m", ngram_folder, stdin=b"\n"), 3, "no sentence"
    )
