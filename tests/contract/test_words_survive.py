r"""Every word survives every writer and reader.

Text, tables, JSON, vocabularies and files of parses keep a word exactly. Bracket files keep it up to
its Penn spelling: ``(`` is ``-LRB-``, ``\/`` is ``/`` (docs/formats/brackets.md).
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm import Tree, read_trees
from treelm.corpus.brackets import RAW_OPTIONS
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.file_kinds import FileKind, kind_of
from treelm.corpus.files import Content
from treelm.corpus.k_best_lists import block_lines, read_k_best_lists
from treelm.corpus.nbest import Hypothesis, NBest, kaldi_lines, moses_lines, read_kaldi, read_moses
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import CorpusFormatError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import ForestHeader
from treelm.grammar.forest_writer import open_forest
from treelm.grammar.k_best import text_of
from treelm.grammar.k_best_arrays import k_best_of_trees
from treelm.grammar.scored_tree import ScoredTree
from treelm.interop.nltk_trees import from_nltk, to_nltk
from treelm.tasks.surprisal.rows import SurprisalRow
from treelm.tasks.surprisal.stimuli import read_stimuli
from treelm.tasks.surprisal.tables import table_lines
from treelm.testing.strategies import words as usual_words
from treelm.trees.packed import PackedTrees

_PIECES = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "-LRB-",
    "-RRB-",
    "-lrb-",
    '"',
    "'",
    "``",
    "''",
    "\\",
    "\\/",
    "\\*",
    "/",
    "*",
    "#",
    "*x*",
    "|",
    "<",
    "&",
    ";",
    ",",
    ".",
    ":",
    "=",
    "-",
    "_",
    "a",
    "0",
    "é",
    "犬",
    "ROOT",
    "\xa0",
    "\u2003",
    "\u2028",
    "\u200b",
    "\ufeff",
    "\x85",
    "\x1c",
    "\x00",
    "()",
    "(())",
]

#: Words made of what some format gives a meaning to; any that one line of text can hold.
odd_words = st.one_of(
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join), usual_words()
).filter(lambda word: not word.encode().startswith(b"\xef\xbb\xbf"))
sentences = st.lists(odd_words, min_size=1, max_size=5)


def penn(word: str) -> str:
    """Return what a bracket reader gives for a word, written without the program's own code."""
    spelled = word.replace("(", "-LRB-").replace(")", "-RRB-")
    return re.sub(r"\\+(?=[/*])", "", spelled)


def tree_over(words: list[str]) -> Tree:
    """Return a tree with several levels over the words."""
    return Tree("ROOT", [Tree("S", [Tree("NP", [Tree("NN", word)]) for word in words])])


@given(sentences)
def test_words_survive_bracket_files(words: list[str]) -> None:
    tree = tree_over(words)
    expected = tuple(map(penn, words))
    assert Tree.from_string(str(tree)).words == tuple(
        word.replace("(", "-LRB-").replace(")", "-RRB-") for word in words
    )
    (read,) = read_trees([str(tree)])
    assert read.words == expected
    assert str(read) == str(next(iter(read_trees([str(read)]))))
    packed = PackedTrees.from_trees([tree, tree]).to_brackets().decode()
    assert packed == f"{tree}\n{tree}\n"
    assert list(TreeSentences(TreeCorpus.of_trees([tree]))) == [expected]


@given(sentences)
def test_words_survive_k_best_lists(words: list[str]) -> None:
    tree = tree_over(words)
    other = Tree("ROOT", [Tree("X", word) for word in words])
    scored = [ScoredTree(tree, -1.5, -1.0), ScoredTree(other, -2.5, -1.0)]
    arrays = k_best_of_trees(tuple(words), scored)
    expected = [tuple(map(penn, words))] * 2
    blocks = text_of([scored])
    assert text_of([arrays]) == blocks
    rewritten = block_lines(read_k_best_lists(Content("lists", blocks)))
    again = block_lines(read_k_best_lists(Content("lists", "\n".join(rewritten).encode())))
    bllip = f"2 s\n-1.5\n{tree}\n-2.5\n{other}\n".encode()
    for text in (blocks, "\n".join(again).encode(), bllip):
        (found,) = read_k_best_lists(Content("lists", text))
        assert [each.words for each in found.hypotheses] == expected
    (plain,) = read_k_best_lists(Content("lists", text_of([arrays.first(1)], scores=False)))
    assert [each.words for each in plain.hypotheses] == expected[:1]


@given(sentences)
def test_words_survive_files_of_parses_exactly(words: list[str]) -> None:
    found = k_best_of_trees(tuple(words), [ScoredTree(tree_over(words), -1.0, -1.0)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.forest"
        with open_forest(path, ForestHeader(k=1, parser="p", options={})) as writer:
            writer.add([words], [found])
            writer.finish()
        with ForestFile(path) as file:
            (read,) = file
            assert read is not None
            assert read.words == read[0].tree.words == tuple(words)
            assert file.find(words) == 0


@given(sentences)
def test_words_survive_text_and_vocabularies_exactly(words: list[str]) -> None:
    content = (" ".join(words) + "\n").encode()
    if kind_of(content) is not FileKind.TREES:  # some are, by chance
        assert list(TextCorpus((Content("text", content),))) == [tuple(words)]
    assert list(TextCorpus.of_sentences([words])) == [tuple(words)]
    vocabulary = Vocabulary.from_counts(dict.fromkeys(words, 1))
    with tempfile.TemporaryDirectory() as folder:
        save_vocabulary(vocabulary, Path(folder) / "v")
        assert load_vocabulary(Path(folder) / "v").symbols == vocabulary.symbols
    assert set(words) <= set(vocabulary.symbols)


@given(sentences)
def test_words_survive_tables_exactly(words: list[str]) -> None:
    rows = [SurprisalRow(1, 1, n, word, 1.0, -0.5, False) for n, word in enumerate(words, 1)]

    def table(form: str) -> str:
        return b"".join(table_lines([rows], form)).decode()  # type: ignore[arg-type]

    def cells(text: str, separator: str) -> list[str]:
        header, *lines = [line.split(separator) for line in text.removesuffix("\n").split("\n")]
        return [line[header.index("word")] for line in lines]

    assert cells(table("tsv"), "\t") == words
    assert cells(table("itemmeasures"), " ") == words
    read = list(csv.DictReader(io.StringIO(table("csv"), newline="")))
    assert [row["word"] for row in read] == words
    json_lines = table("jsonl").removesuffix("\n").split("\n")
    assert [json.loads(line)["word"] for line in json_lines] == words
    assert [word for word, _ in json.loads(table("minicons"))] == words
    for form in ("tsv", "csv"):
        stimuli = read_stimuli(Content(f"x.{form}", table(form).encode()), ["sent_id"])
        assert list(stimuli.sentences()) == [[(word,) for word in words]]


@given(sentences)
def test_words_survive_n_best_lists_exactly(words: list[str]) -> None:
    best = NBest("0", (Hypothesis(tuple(words), score=-1.0),), 1)
    (kaldi,) = read_kaldi(Content("k", ("\n".join(kaldi_lines([best])) + "\n").encode()))
    assert kaldi.hypotheses[0].words == tuple(words)
    if "|||" in " ".join(words):
        with pytest.raises(CorpusFormatError, match="separates"):
            list(moses_lines([best]))
    else:
        (moses,) = read_moses(Content("m", ("\n".join(moses_lines([best])) + "\n").encode()))
        assert moses.hypotheses[0].words == tuple(words)


@given(sentences)
def test_words_survive_other_packages_exactly(words: list[str]) -> None:
    pytest.importorskip("nltk")
    tree = tree_over(words)
    assert from_nltk(to_nltk(tree)) == tree


def test_a_moses_list_with_its_separator_as_a_word_is_refused() -> None:
    with pytest.raises(CorpusFormatError, match="separates the columns"):
        list(moses_lines([NBest("7", (Hypothesis(("a", "|||")),))]))


def test_labels_with_brackets_and_words_with_spaces_can_be_read_again() -> None:
    tree = Tree("(", [Tree("N)", "New York\n")])
    assert str(tree) == "(-LRB- (N-RRB- New_York_))"
    assert Tree.from_string(str(tree)).words == ("New_York_",)
    assert PackedTrees.from_trees([tree]).to_brackets().decode() == f"{tree}\n"
    raw = list(read_trees([str(tree)], RAW_OPTIONS))
    assert [str(each) for each in raw] == [str(tree)]


def test_a_bracket_and_its_name_are_one_word_in_bracket_files_and_two_in_files_of_parses() -> None:
    pair = PackedTrees.from_trees([tree_over(["("]), tree_over(["-LRB-"])])
    first, second = pair.to_brackets().decode().splitlines()
    assert first == second
    assert np.unique(pair.node_word).size == 3  # two words, and the mark of phrases
