"""`treelm vocabulary`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import treelm

from treelm.corpus.vocabulary_file import load_vocabulary


def test_vocabulary_of_text_and_of_trees(tmp_path: Path, sample_file: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a b a\nb c\n\na new word\n")
    target = tmp_path / "words"
    done = treelm(
        "vocabulary", "--text", text, text, "--rule", "top", "--size", "2", "-o", target, "--json"
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["words"], summary["tokens"], summary["unknown"]) == (2, 16, 6)
    assert load_vocabulary(target).symbols == ("<unk>", "a", "b")
    done = treelm("vocabulary", "--trees", sample_file, "--seed", "1", "-o", target)
    assert done.returncode == 0, done.stderr
    vocabulary = load_vocabulary(target)
    assert int(vocabulary.counts.sum()) == 3860
    assert vocabulary.source["seed"] == 1
    assert any(item.is_signature for item in vocabulary.entries)


def test_vocabulary_wants_text_or_trees_and_a_file(tmp_path: Path) -> None:
    target = tmp_path / "words"
    assert treelm("vocabulary", "-o", target).returncode == 2
    assert treelm("vocabulary", "--text", "a", "--trees", "b", "-o", target).returncode == 2
    assert treelm("vocabulary", "--text", "missing").returncode == 2
    done = treelm("vocabulary", "--text", "missing", "-o", target)
    assert done.returncode == 3
    assert list(tmp_path.iterdir()) == []


def test_vocabulary_of_an_empty_text_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n\n")
    done = treelm("vocabulary", "--text", text, "-o", tmp_path / "words")
    assert done.returncode == 1
    assert b"no words" in done.stderr


def test_vocabulary_refuses_what_can_be_read_only_once(tmp_path: Path) -> None:
    done = treelm("vocabulary", "--text", "/dev/stdin", "-o", tmp_path / "words", stdin=b"a b\n")
    assert done.returncode == 2
    assert b"only once" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_vocabulary_reports_malformed_trees(tmp_path: Path) -> None:
    trees, target = tmp_path / "trees.mrg", tmp_path / "words"
    trees.write_text("(S (NN a))\n" * 150 + "(NN )\n")
    done = treelm("vocabulary", "--trees", trees, "--rule", "all", "-o", target)
    assert done.returncode == 0
    assert b"E_NO_WORD" in done.stderr
    trees.write_text("(S (NN a))\n(NN )\n")
    target.unlink()
    assert treelm("vocabulary", "--trees", trees, "--rule", "all", "-o", target).returncode == 3
    assert not target.exists()
