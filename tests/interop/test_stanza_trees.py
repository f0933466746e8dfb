"""Trees of stanza: what it makes of ours and we of its own, in memory, without any model of it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

import treelm
from treelm.errors import MissingExtra
from treelm.interop.parsers import stanza_parser
from treelm.interop.stanza_trees import from_stanza, to_stanza
from treelm.trees.tree import Tree


def test_stanza_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanza", None)
    monkeypatch.setitem(sys.modules, "stanza.models.constituency.parse_tree", None)
    with pytest.raises(MissingExtra, match=r'pip install "treelm\[stanza\]"'):
        to_stanza(Tree.from_string("(S (NN rain))"))


def test_stanza_is_not_loaded_with_treelm() -> None:
    check = "import sys, treelm.interop.stanza_trees; sys.exit('stanza' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


def test_stanza_trees_and_back() -> None:
    pytest.importorskip("stanza")
    for tree in treelm.sample_treebank():
        theirs = to_stanza(tree)
        assert theirs.leaf_labels() == list(tree.words)
        assert [each.label for each in theirs.yield_preterminals()] == [*map(str, tree.tags)]
        assert from_stanza(theirs) == tree


def test_stanza_reads_the_brackets_that_we_write() -> None:
    pytest.importorskip("stanza")
    from stanza.models.constituency.tree_reader import read_trees

    trees = list(treelm.sample_treebank())
    theirs = read_trees("\n".join(map(str, trees)))
    # In memory its words have brackets as they are; both of us write them as -LRB- and -RRB-.
    assert any("(" in each.leaf_labels() for each in theirs)
    assert [*map(str, theirs)] == [str(to_stanza(tree)) for tree in trees]
    assert [str(from_stanza(each)) for each in theirs] == [*map(str, trees)]


def test_stanza_deep_trees_need_no_recursion() -> None:
    pytest.importorskip("stanza")
    deep = Tree("NN", "rain")
    for _ in range(5000):
        deep = Tree("NP", [deep])
    back = from_stanza(to_stanza(deep))
    depth = 0
    while back.word is None:
        (back,) = back.children
        depth += 1
    assert depth == 5000


def test_stanza_documents_are_parsed_by_their_pipeline() -> None:
    """A document of stanza's own classes takes the place of what a downloaded model would give."""
    pytest.importorskip("stanza")
    from stanza.models.common.doc import Document

    tree = next(iter(treelm.sample_treebank()))

    def pipeline(sentences: list[list[str]]) -> object:
        rows = [
            [{"id": place, "text": word} for place, word in enumerate(words, 1)]
            for words in sentences
        ]
        document = Document(rows)
        document.sentences[0].constituency = to_stanza(tree)
        return document

    (parse,) = stanza_parser(pipeline).parse(tree.words)
    assert parse.tree == tree
    other = SimpleNamespace(sentences=[SimpleNamespace(constituency=to_stanza(tree))])
    with pytest.raises(treelm.errors.CorpusFormatError) as caught:
        stanza_parser(lambda _: other).parse("other words")
    assert caught.value.code == "E_WORDS_CHANGED"
