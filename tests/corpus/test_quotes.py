"""Quotes of treebanks are the words that the tokenizer writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from treelm.corpus.brackets import EVALUATION_OPTIONS, RAW_OPTIONS, ReadOptions, read_trees
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.tokenize import detokenize, tokenize
from treelm.trees.profile import load_profile

QUOTED = {
    ("``", '"'): "``",
    ("``", "“"): "``",
    ("``", "'"): "`",
    ("``", "‘"): "`",
    ("''", '"'): "''",
    ("''", "”"): "''",
    ("''", "’"): "'",
    ("''", "'"): "'",
    ("``", "``"): "``",
    ("NN", '"'): '"',
    ("POS", "’"): "’",
}


@pytest.mark.parametrize(("written", "read"), QUOTED.items())
def test_quotes_are_spelled_by_their_tags(written: tuple[str, str], read: str) -> None:
    text = "(S ({} {}) (NN a))".format(*written)
    (tree,) = read_trees([text])
    assert tree.words == (read, "a")
    for options in (RAW_OPTIONS, EVALUATION_OPTIONS, ReadOptions(profile="neutral")):
        (tree,) = read_trees([text], options)
        assert tree.words == (written[1], "a")


def test_a_profile_says_how_words_are_spelled(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'name = "own"\n[reading.spellings]\nFe = { \'"\' = "QUOTE" }\n', "utf-8"
    )
    (tree,) = read_trees(
        ['(S (Fe ") (n a) (x "))'], ReadOptions(profile=str(tmp_path / "own.toml"))
    )
    assert tree.words == ("QUOTE", "a", '"')


def test_spellings_leave_vocabularies_of_earlier_versions_as_they_were() -> None:
    english = load_profile("english")
    reading = english.reading.model_copy(update={"spellings": {}})
    assert english.reading.spellings
    assert english.model_copy(update={"reading": reading}).fingerprint == english.fingerprint


@pytest.mark.filterwarnings("ignore:.*unlabelled root")
@pytest.mark.parametrize("treebank", ["gum", "masc", "craft", "wsj-sample"])
def test_tokenized_quotes_are_words_of_the_treebank(shared_data: Path, treebank: str) -> None:
    folder = shared_data / "treebanks" / treebank
    known = {
        word for tree in TreeCorpus((folder / "train.mrg",), on_error="skip") for word in tree.words
    }
    unknown = quotes = 0
    for tree in TreeCorpus((folder / "dev.mrg",), on_error="skip"):
        for token in tokenize(detokenize(tree.words)):
            if token in ("``", "''", '"', "“", "”"):
                quotes += 1
                unknown += token not in known
    assert quotes > 10
    assert unknown == 0
