"""Corpora, documents, fingerprints."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from treelm.corpus.brackets import ReadOptions, ReadReport, parse_tree, read_trees
from treelm.corpus.corpus import TextCorpus, TreeCorpus, docs_path, read_sentences
from treelm.corpus.sample_treebank import sample_treebank
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.trees.tree import Tree

TREES = "( (S (NP-SBJ (PRP I)) (VP (VBP sleep))) )\n( (FRAG (UH Yes)) )\n( (NP (-NONE- *)) )\n(X )\n(Y y)\n"


@pytest.fixture
def tree_file(tmp_path: Path) -> Path:
    path = tmp_path / "few.mrg"
    path.write_text(TREES)
    return path


def test_text_corpus_counts_documents_by_blank_lines(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    first.write_text("\n\none two\nthree\n\n\nfour\n")
    second.write_bytes(gzip.compress(b"five\n\n"))
    corpus = TextCorpus((first, second))
    expected = [(0, ("one", "two")), (0, ("three",)), (1, ("four",)), (2, ("five",))]
    assert list(corpus.with_documents()) == expected
    assert list(corpus) == [words for _, words in expected], "a corpus can be read again"
    assert corpus.fingerprint[1:] == (4, 5)
    assert corpus.fingerprint != TextCorpus((second, first)).fingerprint
    assert list(read_sentences(second)) == [("five",)]


def test_text_is_split_at_white_space_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("don't  stop\t(now)\n", encoding="utf-8")
    assert list(read_sentences(path)) == [("don't", "stop", "(now)")]


def test_tree_corpus_skips_and_reports(tree_file: Path) -> None:
    corpus = TreeCorpus((tree_file,), on_error="skip")
    report = ReadReport()
    assert sum(len(batch) for batch in corpus.batches(report)) == 3
    assert (report.trees, report.tokens, report.failed, report.dropped) == (3, 4, 1, 1)
    assert report.failure_rate == pytest.approx(0.2)
    problem = report.problems[0]
    assert (problem.code, problem.tree, problem.line, problem.column) == ("E_NO_WORD", 4, 4, 1)
    assert [str(tree) for tree in corpus][2] == "(ROOT (Y y))"
    assert corpus.fingerprint[1:] == (3, 4)


def test_tree_corpus_raises_with_file_and_line(tree_file: Path) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        list(TreeCorpus((tree_file,)))
    error = caught.value
    assert (error.code, error.path, error.line, error.tree) == ("E_NO_WORD", str(tree_file), 4, 4)
    assert "treelm inspect" in str(error)


def test_documents_stay_aligned_past_malformed_and_dropped_trees(tree_file: Path) -> None:
    docs_path(tree_file).write_text("a\na\nb\nc\nd\n")
    corpus = TreeCorpus((tree_file,), on_error="skip")
    assert [document for document, _ in corpus.with_documents()] == ["a", "a", "d"]


def test_documents_that_do_not_fit_are_refused(tree_file: Path) -> None:
    docs_path(tree_file).write_text("a\nb\n")
    with pytest.raises(CorpusFormatError) as caught:
        list(TreeCorpus((tree_file,), on_error="skip").with_documents())
    assert caught.value.code == "E_DOCUMENTS"


def test_documents_lie_beside_compressed_files_too(tmp_path: Path) -> None:
    path = tmp_path / "few.mrg.gz"
    path.write_bytes(gzip.compress(b"(A a)\n(B b)\n"))
    (tmp_path / "few.docs").write_text("x\ny\n")
    assert [doc for doc, _ in TreeCorpus((path,)).with_documents()] == ["x", "y"]
    assert docs_path("dir/few.mrg.gz") == Path("dir/few.docs")


def test_sample_treebank_is_sound() -> None:
    corpus = sample_treebank()
    documents = [document for document, _ in corpus.with_documents()]
    assert len(documents) == corpus.fingerprint.sentences == 325
    assert len(set(documents)) == 14
    assert len(list(dict.fromkeys(documents))) == 14
    assert corpus.tags_that_are_phrases() == frozenset()
    corpus.check_tags_and_phrases()
    sentences = [tree.words for tree in corpus]
    assert len(set(sentences)) == len(sentences)


def test_tag_that_is_a_phrase_is_refused_for_models(tmp_path: Path) -> None:
    path = tmp_path / "clash.mrg"
    path.write_text("(S (NP (NN a)) (NP b))\n")
    corpus = TreeCorpus((path,))
    assert corpus.tags_that_are_phrases() == {"NP"}
    with pytest.raises(CorpusFormatError) as caught:
        corpus.check_tags_and_phrases()
    assert caught.value.code == "E_TAG_IS_PHRASE"


def test_several_nodes_below_an_unlabelled_root_warn_once() -> None:
    text = ["( (A a) (B b) )"] * 3
    with pytest.warns(TreelmWarning, match="several nodes") as caught:
        trees = list(read_trees(text))
    assert len(caught) == 1
    assert str(trees[0]) == "(ROOT (A a) (B b))"


def test_parse_tree_wants_exactly_one() -> None:
    for text in ("", "(A a) (B b)"):
        with pytest.raises(CorpusFormatError) as caught:
            parse_tree(text)
        assert caught.value.code == "E_NOT_ONE_TREE"


def test_fingerprint_keeps_files_apart_and_reads_each_once(tmp_path: Path) -> None:
    first, second, both = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    first.write_text("(A a)\n")
    second.write_text("(B b)\n")
    both.write_text("(A a)\n(B b)\n")
    apart = TreeCorpus((first, second)).fingerprint
    assert apart[1:] == TreeCorpus((both,)).fingerprint[1:] == (2, 2)
    assert apart.sha256 != TreeCorpus((both,)).fingerprint.sha256
    assert TextCorpus((first, second)).fingerprint.sha256 == apart.sha256


def test_one_file_need_not_stand_in_a_list(tmp_path: Path, tree_file: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("one two\n")
    for given in (path, str(path), [path], (str(path),), iter([path])):
        corpus = TextCorpus(given)
        assert isinstance(corpus.paths, tuple)
        assert list(corpus) == list(corpus) == [("one", "two")]
    assert TextCorpus(str(path)) == TextCorpus((str(path),))
    assert len(list(TreeCorpus(str(tree_file), on_error="skip"))) == 3  # type: ignore[arg-type]


def test_sentences_in_memory_are_a_corpus(tmp_path: Path) -> None:
    sentences = [("one", "two\u00a0three"), ("f\u00fcnf",)]
    corpus = TextCorpus.of_sentences(sentences)
    path = tmp_path / "same.txt"
    path.write_text("one two\u00a0three\nf\u00fcnf\n", encoding="utf-8")
    assert list(corpus) == list(corpus) == sentences
    assert [each.document for each in corpus.with_documents()] == [0, 0]
    assert corpus.fingerprint == TextCorpus((path,)).fingerprint
    assert list(TextCorpus.of_sentences([])) == []
    assert pickle.loads(pickle.dumps(corpus)) == corpus


@pytest.mark.parametrize("sentence", [[], [""], ["a b"], ["a\n"], ["a", "\r"]])
def test_sentences_that_no_line_can_hold_are_refused(sentence: list[str]) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        TextCorpus.of_sentences([["fine"], sentence])
    assert caught.value.code == "E_EMPTY_SENTENCE"
    assert str(caught.value).startswith("sentence 2 ")


def test_trees_in_memory_are_a_corpus(tree_file: Path) -> None:
    read = list(TreeCorpus((tree_file,), on_error="skip"))
    corpus = TreeCorpus.of_trees(read)
    assert list(corpus) == list(corpus) == read
    assert corpus.fingerprint[1:] == (3, 4)
    assert [place.document for place in corpus.with_documents()] == [None] * 3
    tagged = TreeCorpus.of_trees([parse_tree("(S (NP-SBJ (PRP I)) (VP (-NONE- *) (VBP go)))")])
    assert [str(tree) for tree in tagged] == ["(ROOT (S (NP (PRP I)) (VP (VBP go))))"]


def test_brackets_inside_words_of_trees_in_memory_are_escaped() -> None:
    (tree,) = TreeCorpus.of_trees([Tree("X", [Tree("A", "a(b"), Tree("B", ")")])])
    assert tree.words == ("a-LRB-b", "-RRB-")


def test_tree_corpus_in_memory_writes_brackets_of_words_at_any_depth() -> None:
    tree = Tree("NN", "(")
    for _ in range(3000):
        tree = Tree("NP", [tree])
    tree = Tree("S", [tree, Tree("VB", "a)b")])
    options = ReadOptions(strip=False, unescape=False, normalize_root=False, max_depth=5000)
    (read,) = TreeCorpus.of_trees([tree], options)
    assert read.words == ("-LRB-", "a-RRB-b")
    assert [child.label for child in read.children] == [child.label for child in tree.children]


def test_sentences_and_trees_are_no_names_of_files() -> None:
    with pytest.raises(UsageError, match=r"`TextCorpus\.of_sentences`"):
        TextCorpus([["rain", "fell"]])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"`TreeCorpus\.of_trees`"):
        TreeCorpus([Tree("NN", "rain")])  # type: ignore[list-item]
