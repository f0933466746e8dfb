"""Texts and trees that a URL names, read as files are."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import read_lines, size_if_known
from treelm.corpus.pieces import FileRange, pieces_in_place, read_piece, tree_pieces
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import InputFileError
from treelm.models.ngram.count_shards import count_in_pieces
from treelm.models.ngram.counts import NgramCounts
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.count_shards import count_treelets_in_pieces
from treelm.models.treelet.events import count_treelets
from treelm.parallel.executor import SERIAL, executor

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def store() -> Any:
    """A store of objects in the memory of this process."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


def test_urls_are_read_as_files_are(store: Any) -> None:
    text = b"one two\nthree\n"
    for suffix, packed in (
        ("", text),
        (".gz", gzip.compress(text)),
        (".bz2", bz2.compress(text)),
        (".xz", lzma.compress(text)),
    ):
        store.pipe(f"/texts/a.txt{suffix}", packed)
        url = f"memory://texts/a.txt{suffix}"
        assert list(read_lines(url)) == ["one two", "three"]
        assert size_if_known(url) == (len(text) if not suffix else None)


def test_trees_of_urls_are_those_of_files(store: Any) -> None:
    store.pipe("/trees/a.mrg", sample_path().read_bytes())
    found = TreeCorpus("memory://trees/a.mrg")
    assert list(found) == list(read_trees(sample_path()))
    assert found.fingerprint == TreeCorpus(sample_path()).fingerprint


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://nowhere/a.txt", "there is no such file"),
        ("nosuch://a/b", "cannot be read"),
        ("file:///nowhere/at/all", "there is no such file"),
    ],
)
def test_urls_that_cannot_be_read_are_named(url: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message) as caught:
        list(read_lines(url))
    assert url in str(caught.value)


def test_workers_read_pieces_of_urls_themselves(store: Any, tmp_path: Path) -> None:
    store.pipe("/trees/a.mrg", sample_path().read_bytes())
    pieces = list(pieces_in_place(["memory://trees/a.mrg"], tree_pieces, 3000, None))
    assert len(pieces) > 3
    assert all(isinstance(piece, FileRange) for piece in pieces)
    assert b"".join(read_piece(piece).data for piece in pieces) == sample_path().read_bytes()
    config = TreeletConfig(temporal=("monday",))
    found = count_treelets_in_pieces(
        TreeCorpus("memory://trees/a.mrg"), config, SERIAL, tmp_path, piece_bytes=3000
    )
    expected = count_treelets(TreeCorpus(sample_path()), config)
    assert found.corpora[0].sha256 == expected.corpora[0].sha256
    assert found.terminal.rows.tolist() == expected.terminal.rows.tolist()


@pytest.mark.slow
def test_texts_of_urls_are_counted_by_many_workers(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("".join(f"{' '.join(tree.words)}\n" for tree in read_trees(sample_path())))
    with executor("processes", workers=2) as workers:
        found = count_in_pieces(
            TextCorpus(f"file://{text}"), 3, workers, tmp_path, piece_bytes=2000
        )
    expected = NgramCounts.count(TextCorpus(text), 3)
    assert found.events.rows.tolist() == expected.events.rows.tolist()
    assert found.corpora[0].sha256 == expected.corpora[0].sha256
