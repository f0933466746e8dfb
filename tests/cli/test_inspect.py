"""`treelm inspect`: what is in a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.command_line import (
    assert_fine,
    assert_refused,
    finish,
    pipe_holding,
    start_treelm,
    treelm,
)

TREES = b"""\
(S (NP-SBJ (DT the) (NN dog)) (VP (VBD barked)))
(S (NP a b))
(S (NP-SBJ (DT the) (NN cat)) (VP (VBD slept)) (. .))
(S (NP
( (NP (-NONE- *)) )
"""


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    path = tmp_path / "trees.mrg"
    path.write_bytes(TREES)
    return path


def test_inspect_counts_trees(trees: Path) -> None:
    lines = assert_fine(treelm("inspect", trees)).decode().splitlines()
    counts = {name: value for name, _, value in (line.partition("  ") for line in lines)}
    assert counts["trees"].strip() == "2"
    assert counts["tokens"].strip() == "7"
    assert counts["malformed"].strip() == "2"
    assert counts["frequent words"].strip().startswith("the 2")


def test_inspect_lists_everything_that_is_wrong(trees: Path) -> None:
    report = assert_fine(treelm("inspect", trees)).decode()
    assert f"{trees}:2:10: tree 2: two words are under one tag" in report
    assert f"{trees}:4:1: tree 4: " in report
    assert "E_MULTI_WORD" in report
    assert "E_UNBALANCED" in report


def test_inspect_json(trees: Path) -> None:
    record = json.loads(assert_fine(treelm("inspect", trees, "--json")))
    assert record["trees"] == 2
    assert record["tokens"] == 7
    assert record["word_types"] == 6
    assert record["longest"] == 4
    assert record["deepest"] == 4
    assert record["mean_length"] == 3.5
    assert record["malformed"] == 2
    assert record["only_empty_elements"] == 1
    assert record["documents"] is None
    assert record["tags_that_are_phrases"] == []
    assert record["frequent_phrases"] == {"ROOT": 2, "S": 2, "NP": 2, "VP": 2}
    assert record["problems"] == [
        {"code": "E_MULTI_WORD", "tree": 2, "line": 2, "column": 10},
        {"code": "E_UNBALANCED", "tree": 4, "line": 4, "column": 1},
    ]


def test_inspect_raw_counts_what_is_written(trees: Path) -> None:
    record = json.loads(assert_fine(treelm("inspect", trees, "--json", "--raw")))
    assert record["trees"] == 3
    assert record["frequent_phrases"]["NP-SBJ"] == 2
    assert record["frequent_tags"]["-NONE-"] == 1


def test_inspect_threads_do_not_change_the_report(sample_file: Path) -> None:
    one = assert_fine(treelm("inspect", sample_file, "--json", "--threads", "1"))
    assert one == assert_fine(treelm("inspect", sample_file, "--json", "--threads", "3"))
    assert json.loads(one)["trees"] == 325
    assert json.loads(one)["documents"] == 14


def test_inspect_names_labels_that_are_tags_and_phrases(tmp_path: Path) -> None:
    file = tmp_path / "x.mrg"
    file.write_bytes(b"(S (X (X a) (Y b)))\n")
    record = json.loads(assert_fine(treelm("inspect", file, "--json")))
    assert record["tags_that_are_phrases"] == ["X"]


def test_inspect_text(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"the dog barked\nthe cat\n\n\nanother text\n")
    record = json.loads(assert_fine(treelm("inspect", file, "--json")))
    assert record["sentences"] == 3
    assert record["tokens"] == 7
    assert record["word_types"] == 6
    assert record["documents"] == 2
    assert record["longest"] == 3
    assert record["frequent_words"]["the"] == 2


@pytest.mark.parametrize("content", [TREES, b"two words\n"])
def test_inspect_compressed_files(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(content))
    record = json.loads(assert_fine(treelm("inspect", file, "--json")))
    assert record["tokens"] == (7 if content is TREES else 2)


def test_inspect_comments_and_mark_before_the_first_bracket(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xef\xbb\xbf*x* comment\n\n  (S (NN a))\n")
    assert json.loads(assert_fine(treelm("inspect", file, "--json")))["trees"] == 1


def test_inspect_profile(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ndescription = "two words"\n[punctuation]\ntags = [",", "."]\n')
    record = json.loads(assert_fine(treelm("inspect", file, "--json")))
    assert record["name"] == "mine"
    assert record["punctuation_tags"] == [",", "."]
    assert "two words" in assert_fine(treelm("inspect", file)).decode()


def test_inspect_file_without_a_tree_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "x.mrg"
    file.write_bytes(b"(S (NP a b))\n")
    done = treelm("inspect", file)
    assert_refused(done, 3, "x.mrg", "no tree")
    assert b"E_MULTI_WORD" in done.stdout


@pytest.mark.parametrize("content", [TREES, b"two words\n"])
def test_inspect_reads_standard_input(content: bytes) -> None:
    record = json.loads(assert_fine(treelm("inspect", "-", "--json", stdin=content)))
    assert record["tokens"] == (7 if content is TREES else 2)


def test_inspect_reads_a_pipe_by_name() -> None:
    with pipe_holding(TREES) as pipe:
        done = finish(start_treelm("inspect", f"/dev/fd/{pipe}", "--json", passed=[pipe]))
    assert json.loads(assert_fine(done))["trees"] == 2
