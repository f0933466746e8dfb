"""`treelm demo`."""

from __future__ import annotations

from tests.command_line import assert_fine, treelm


def test_demo_shows_the_whole_tour() -> None:
    done = treelm("demo")
    shown = assert_fine(done, None).decode()
    assert b"pip install treelm-en" in done.stderr
    assert shown.startswith("The treebank that comes with treelm: 325 trees in 14 documents")
    assert "Its lexical head is" in shown
    assert "After the nine treelet transforms" in shown
    assert "... and back again: the same tree." in shown
    assert "A trigram model of its" in shown
    assert "bits █" in shown
    assert "Three sentences sampled from it" in shown
    assert "treelm --help" in shown
    pictures = [line for line in shown.splitlines() if "─" in line]
    assert max(map(len, pictures)) <= 100


def test_demo_says_the_same_each_time() -> None:
    first = assert_fine(treelm("demo", env={"PYTHONHASHSEED": "1"}), None)
    assert first == assert_fine(treelm("demo", env={"PYTHONHASHSEED": "2"}), None)
