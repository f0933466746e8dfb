"""Figures of tokens are summed back to the words of the text."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treelm
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import Content
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.tokenize import tokenize, tokenize_words
from treelm.corpus.words import split_words
from treelm.models.interface.model import LanguageModel
from treelm.tasks.raw_text import RawText, raw_text_perplexity, tokenized_lines
from treelm.tasks.surprisal.stimuli import measure_stimuli, read_stimuli
from treelm.tasks.surprisal.surprisal import surprisal_rows
from treelm.tasks.text_check import TextCheck

RAW = ["The ferry didn't leave.", "", '"Why?" she said (twice).', "It\u00a0fell\u00ad in the U.S."]

PIECES = st.sampled_from(
    ["can't", "U.S.", "Inc.", '"Stop!"', "(a)", "...", "he said.", "\u00ad", "\u00a0", "Mr.", "'s"]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=6).map(" ".join))
def test_tokens_of_words_are_those_of_the_sentence(sentence: str) -> None:
    found = tokenize_words(sentence)
    assert list(found.tokens) == tokenize(sentence)
    assert found.words == split_words(sentence)
    assert len(found.ends) == len(found.words)
    assert list(found.ends) == sorted(found.ends)
    assert not found.ends or found.ends[-1] == len(found.tokens)


def test_final_period_belongs_to_its_word() -> None:
    found = tokenize_words('He left the "U.S."')
    assert found.tokens == ("He", "left", "the", "``", "U.S.", ".", "''")
    assert found.ends == (1, 2, 3, 7)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return treelm.train("ngram", treelm.TreeCorpus((sample_path(),)), order=3)


@pytest.fixture(scope="module")
def hhmm() -> LanguageModel:
    return treelm.train("hhmm", treelm.TreeCorpus((sample_path(),)), depth=4, beam_width=50)


def test_rows_of_words_sum_those_of_tokens(hhmm: LanguageModel) -> None:
    text = Content("raw", "\n".join(RAW).encode())
    raw, measures = RawText(), ("entropy", "depth")
    corpus = TextCorpus((text,))
    tokens = list(
        surprisal_rows(hhmm, corpus.with_documents(tokenized_lines), eos=True, measures=measures)
    )
    rows = surprisal_rows(hhmm, corpus.with_documents(raw.tokenized), eos=True, measures=measures)
    words = list(raw.word_rows(rows))
    assert [each.words for each in words] == [(*split_words(line), "</s>") for line in RAW if line]
    assert [(each.doc_id, each.sent_id) for each in words] == [(1, 1), (2, 2), (2, 3)]
    for word_rows, token_rows in zip(words, tokens, strict=True):
        assert word_rows.surprisal.sum() == pytest.approx(token_rows.surprisal.sum())
        assert word_rows.log_prob.sum() == pytest.approx(token_rows.log_prob.sum())
    first, own = words[0], tokens[0]  # The ferry did n't leave . </s>
    assert own.words == ("The", "ferry", "did", "n't", "leave", ".", "</s>")
    assert first.surprisal[2] == pytest.approx(own.surprisal[2:4].sum())
    assert first.oov.tolist() == [*own.oov[:2], own.oov[2:4].any(), own.oov[4:6].any(), False]
    for after, column in zip(first.measures, own.measures, strict=True):
        np.testing.assert_array_equal(after, column[[0, 1, 3, 5, 6]])


def test_perplexity_of_raw_text_is_per_word(model: LanguageModel, tmp_path: Path) -> None:
    file = tmp_path / "raw.txt"
    file.write_text("\n".join(RAW))
    check = TextCheck(model.vocabulary, tokenized=True)
    found = raw_text_perplexity(model, [file], check=check)
    tokens = model.perplexity([tokenize(line) for line in RAW if line])
    assert found.log_prob == pytest.approx(tokens.log_prob)
    words = sum(len(split_words(line)) for line in RAW)
    assert (found.tokens, found.sentences) == (words, 3)
    assert found.perplexity == pytest.approx(math.exp(-found.log_prob / (words + 3)))
    assert tokens.perplexity_without_eos is not None
    assert found.perplexity_without_eos == pytest.approx(
        tokens.perplexity_without_eos ** (tokens.tokens / words)
    )
    assert "|tok:treelm|" in found.signature
    limited = raw_text_perplexity(
        model, [file], limit=1, check=TextCheck(model.vocabulary, tokenized=True)
    )
    assert (limited.tokens, limited.sentences) == (4, 1)


def test_stimuli_of_raw_text_keep_their_rows(model: LanguageModel, tmp_path: Path) -> None:
    file = tmp_path / "stimuli.tsv"
    file.write_text("item\tword\n1\tThe ferry\n1\tdidn't\n1\tleave.\n2\tWhy?\n")
    table = read_stimuli(file, tokenizing=True)
    assert list(table.sentences()) == [
        [("The", "ferry"), ("did", "n't"), ("leave", ".")],
        [("Why", "?")],
    ]
    lines = [
        line.split("\t") for line in measure_stimuli(model, table).to_bytes().decode().splitlines()
    ]
    assert [line[1] for line in lines[1:]] == ["The ferry", "didn't", "leave.", "Why?"]
    whole = model.surprisal(tokenize("The ferry didn't leave."))
    assert sum(float(line[2]) for line in lines[1:4]) == pytest.approx(
        sum(each.surprisal for each in whole)
    )


@pytest.mark.parametrize("system", ["ngram", "hhmm", "pcfg", "treelet"])
def test_unknown_words_are_counted_with_the_scores(
    system: str, trained_small: Callable[[str], LanguageModel]
) -> None:
    model = trained_small(system)
    sentences = [("The", "frumious", "ferry"), ("left", "."), ("slithy",)]
    log_probs, _, unknown = model.log_probs_and_unknown(sentences)
    assert log_probs.tolist() == model.sentence_log_probs(sentences).tolist()
    assert unknown == 2


@pytest.fixture(scope="module")
def trained_small() -> Callable[[str], LanguageModel]:
    trees = treelm.TreeCorpus((sample_path(),))

    def train(system: str) -> LanguageModel:
        if system == "treelet":
            return treelm.train("treelet", trees, parser=treelm.train("pcfg", trees), k=2)
        options = {"ngram": {"order": 3}, "hhmm": {"depth": 4, "beam_width": 50}}
        return treelm.train(system, trees, **options.get(system, {}))  # type: ignore[arg-type]

    return train
