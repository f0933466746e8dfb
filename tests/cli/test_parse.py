"""`treelm train pcfg` and `treelm parse`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    path = tmp_path_factory.mktemp("models") / "pcfg"
    done = treelm("train", "pcfg", "--trees", sample_file, "-o", path, "--json")
    assert json.loads(assert_fine(done))["system"] == "pcfg"
    return path


def test_parse_writes_one_tree_a_line(folder: Path) -> None:
    text = b"The old ferry left .\n\n   \nfrumious\n"
    lines = assert_fine(treelm("parse", "-m", folder, stdin=text)).decode().splitlines()
    assert [line == "" for line in lines] == [False, True, True, False]
    assert lines[0].startswith("(ROOT (S ")
    assert lines[0].count("(") == lines[0].count(")")
    for option in ("--fast", "--accurate", "--line-buffered"):
        done = treelm("parse", "-m", folder, option, "--threads", "2", stdin=text)
        assert len(assert_fine(done).decode().splitlines()) == 4


def test_parse_writes_brackets_in_words_so_that_other_commands_read_them(
    folder: Path, tmp_path: Path
) -> None:
    text = b"The ( old ) ferry :) left .\n"
    for options in ([], ["-k", "2", "-q"]):
        written = assert_fine(treelm("parse", "-m", folder, *options, stdin=text))
        line = written.splitlines()[0].split(b"\t")[-1]
        assert b" -LRB-)" in line
        assert b" :-RRB-)" in line
        picture = assert_fine(treelm("draw", stdin=line))
        assert b"-LRB-" in picture
        assert b":-RRB-" in picture
    forest = tmp_path / "x.forest"
    assert_fine(treelm("parse", "-m", folder, "-q", "-o", forest, stdin=text))
    assert (
        assert_fine(treelm("parse", "--from", forest)).strip()
        == assert_fine(treelm("parse", "-m", folder, stdin=text)).strip()
    )


def test_parse_writes_blocks_of_the_best_trees(folder: Path) -> None:
    text = b"The old ferry left .\n\nfrumious\n"
    best = assert_fine(treelm("parse", "-m", folder, stdin=text)).decode().splitlines()
    done = treelm("parse", "-m", folder, "-k", "20", stdin=text)
    out = assert_fine(done, None).decode()
    assert done.stderr.count(b"the score of a tree is") == 1
    assert b"the score of a tree is the natural logarithm of the product of the exp" in done.stderr
    blocks = out.split("\n\n")
    assert len(blocks) == 3
    assert blocks[1].startswith("\n")
    for block, tree in ((blocks[0], best[0]), (blocks[1][1:], best[2])):
        rows = [line.split("\t") for line in block.split("\n")]
        assert rows[0][1] == tree
        assert len({row[1] for row in rows}) == len(rows) > 1
        scores = [float(row[0]) for row in rows]
        assert scores == sorted(scores, reverse=True)
    for option in ("--line-buffered", "--threads=2"):
        again = treelm("parse", "-m", folder, "-k", "20", "-q", option, stdin=text)
        assert assert_fine(again).decode() == out


def test_the_limit_counts_sentences_of_all_files(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("The old ferry left .\n" * 3)
    for limit, lines in ((0, 0), (2, 2), (3, 3), (4, 4), (9, 6)):
        done = treelm(
            "parse", "-m", folder, "--limit", str(limit), tmp_path / "one", tmp_path / "two"
        )
        nothing = b"" if limit else b"treelm: warning: no sentence was read.\n"
        assert len(assert_fine(done, nothing).splitlines()) == lines


def test_parse_output_can_be_evaluated(folder: Path, sample_file: Path, tmp_path: Path) -> None:
    from treelm.corpus.brackets import read_trees

    text = tmp_path / "text"
    text.write_text("".join(" ".join(tree.words) + "\n" for tree in read_trees(sample_file)))
    parsed = tmp_path / "parsed.mrg"
    assert_fine(treelm("parse", text, "-m", folder, "-o", parsed))
    done = treelm("evaluate", "parses", sample_file, parsed, "--json")
    assert json.loads(assert_fine(done))["labelled_f1"] > 0.75


def test_sentences_without_a_tree_are_named(tmp_path: Path) -> None:
    trees = tmp_path / "trees.mrg"
    trees.write_text("(ROOT (S (A a) (B b)))\n" * 3)
    assert_fine(treelm("train", "pcfg", "--trees", trees, "-o", tmp_path / "model"))
    done = treelm("parse", "-m", tmp_path / "model", stdin=b"a b\n\nb a b\n" + b"a " * 201 + b"\n")
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "(ROOT (S (A a) (B b)))"
    assert lines[2] == "(ROOT (B b) (A a) (B b))"
    assert b":3: no tree was found" in done.stderr
    assert b"1 sentence of over 200 words was split." in done.stderr


def test_long_sentences_are_split_flat_or_refused(folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the boat .\n\n" + "the old boat is here . " * 40 + "\n")
    done = treelm("parse", "-m", folder, "-k", "2", text)
    assert b"1 sentence of over 200 words was split.\n" in done.stderr
    assert done.stdout.decode().splitlines()[-2].startswith("nan\t(ROOT (")
    done = treelm("parse", "-m", folder, "-k", "2", "--long", "flat", "--verbose", text)
    assert b"1 sentence of over 200 words was given flat trees.\n" in done.stderr
    assert f"{text}:3: the sentence is too long".encode() in done.stderr
    assert done.stdout.decode().splitlines()[-2].startswith("-inf\t(ROOT (")
    refused = treelm("parse", "-m", folder, "--long", "refuse", text)
    assert_refused(refused, 3, f"{text}:3: this sentence has 240 words", "--max-words 240")
    whole = treelm("parse", "-m", folder, "--long", "refuse", "--max-words", "240", text)
    assert whole.returncode == 0
    assert b"240" not in whole.stderr
    forest = tmp_path / "text.forest"
    done = treelm("parse", "-m", folder, "-o", forest, text)
    assert b"1 sentence of over 200 words was split.\n" in done.stderr
    assert treelm("parse", "--from", forest).stdout == treelm("parse", "-m", folder, text).stdout
    assert_refused(treelm("parse", "--from", forest, "--long", "flat"), 2, "cannot be combined")


def test_wrong_use_of_parse_is_refused(folder: Path, ngram_folder: Path) -> None:
    assert_refused(treelm("parse", "-m", folder, "--fast", "--accurate"), 2, "choose one")
    assert_refused(treelm("parse", "-m", folder, "-k", "0", stdin=b"a\n"), 2, "-k is 0")
    assert_refused(treelm("parse", "-m", folder, "--limit", "-1", stdin=b"a\n"), 2, "--limit is")
    assert_refused(treelm("parse", "-m", ngram_folder, stdin=b"a\n"), 2, "do not parse sentences")
    assert_refused(treelm("parse", "-m", folder, stdin=b"a\n<s> b\n"), 3, ":2:")
