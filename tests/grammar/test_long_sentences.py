"""Sentences that are too long to be parsed as a whole."""

from __future__ import annotations

import math
from itertools import chain, pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.lengths import TooLongSentence
from treelm.errors import UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import text_of
from treelm.grammar.long_sentences import pieces_of
from treelm.grammar.parser_options import Long, ParserOptions
from treelm.grammar.scored_tree import ParseStatus
from treelm.models.interface.abilities import GivesForests, ask_for
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import train
from treelm.tasks.parse_file import parse_into_file

WORDS = st.lists(st.sampled_from(["a", "b", ".", ",", "(", '"', "?!", "--", "z-z"]), max_size=60)


@given(words=WORDS, longest=st.integers(1, 20))
def test_pieces_are_the_sentence_and_never_too_long(words: list[str], longest: int) -> None:
    pieces = pieces_of(words, longest)
    assert list(chain.from_iterable(pieces)) == words
    assert all(1 <= len(piece) <= longest for piece in pieces) or not words


@given(words=WORDS)
def test_pieces_end_where_sentences_end(words: list[str]) -> None:
    pieces = pieces_of(words, 1000)
    for before, after in pairwise(pieces):
        assert any(word in (".", "?!") for word in before)
        assert after[0] not in (".", ",", '"', "?!", "--")
    for piece in pieces:
        ends = [place for place, word in enumerate(piece) if word in (".", "?!")]
        assert not ends or all(word not in "ab(z-z" for word in piece[ends[0] + 1 :])


def test_pieces_without_ends_are_cut_at_the_mark_nearest_to_the_middle() -> None:
    words = ["a"] * 5 + [","] + ["a"] * 6 + [","] + ["a"] * 7
    assert [len(piece) for piece in pieces_of(words, 14)] == [13, 7]
    assert [len(piece) for piece in pieces_of(words, 12)] == [6, 7, 7]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A grammar of words and full stops, sentence by sentence."""
    trees = tmp_path_factory.mktemp("trees") / "trees.mrg"
    trees.write_text("(ROOT (S (T a) (P .)))\n(ROOT (S (T a) (S (T a) (P .))))\n" * 3)
    return train("pcfg", trees)


LONG = ["a", "a", ".", "a", ".", "a", "a", "a", "."]
JOINED = "(ROOT (S (T a) (S (T a) (P .))) (S (T a) (P .)) (S (T a) (S (T a) (S (T a) (P .)))))"
SPLIT, FLAT, REFUSE = (ParserOptions(max_words=4, long=long) for long in get_args(Long))


def test_long_sentences_are_parsed_in_pieces_and_marked(model: LanguageModel) -> None:
    none, short, long = model.parse_many([[], ["a", "."], LONG], options=SPLIT)
    assert none is None
    assert short is not None
    assert short.status == ParseStatus.PARSED
    assert long is not None
    assert long.status == ParseStatus.SPLIT
    assert long.is_fallback
    assert str(long.tree) == JOINED
    assert math.isnan(long.score)
    assert math.isnan(long.sentence_log_prob)


def test_lists_of_long_sentences_have_one_tree_without_a_score(model: LanguageModel) -> None:
    found = model.k_best_many([["a", "."], LONG], 5, options=SPLIT)
    assert text_of(found).decode().split("\n\n")[1] == f"nan\t{JOINED}"


def test_long_sentences_are_flat_or_refused_on_request(model: LanguageModel) -> None:
    (flat,) = model.parse_many([LONG], options=FLAT)
    assert flat is not None
    assert flat.status == ParseStatus.TOO_LONG
    assert flat.score == flat.sentence_log_prob == -math.inf
    assert len(flat.tree.children) == len(LONG)
    for ask in (
        lambda: model.parse_many([["a"], LONG], options=REFUSE),
        lambda: model.k_best_many([["a"], LONG], 2, options=REFUSE),
        lambda: ask_for(model, GivesForests, "").forests_many([["a"], LONG], options=REFUSE),
    ):
        with pytest.raises(TooLongSentence, match="at most 4 are parsed together") as caught:
            ask()
        assert (caught.value.place, caught.value.words) == (1, 9)


def test_impossible_options_are_refused() -> None:
    with pytest.raises(UsageError, match="long"):
        ParserOptions(long="cut")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_words is 0"):
        ParserOptions(max_words=0)


def test_what_is_not_too_long_is_parsed_as_before(model: LanguageModel) -> None:
    sentences = [["a", "."], [], ["a", "a", "a", "."]]
    found = model.parse_many([*sentences, LONG], options=SPLIT)
    assert found[:3] == model.parse_many(sentences)
    just_whole = ParserOptions(max_words=len(LONG), long="refuse")
    assert model.parse_many([LONG]) == model.parse_many([LONG], options=just_whole)


def test_files_of_parses_keep_trees_of_pieces(model: LanguageModel, tmp_path: Path) -> None:
    path = tmp_path / "a.forest"
    lines = ["a .", "a . a ."]
    for forests, split, flat in ((False, 1, 0), (True, 0, 1)):
        done = parse_into_file(
            model,
            [("text", lines)],
            path,
            fingerprint="0" * 64,
            forests=forests,
            options=ParserOptions(max_words=3),
            restart=True,
        )
        assert (done.long.split, done.long.flat, done.fallbacks) == (split, flat, 0)
        with ForestFile(path) as file:
            found = list(file)[1]
        assert found is not None
        assert found.status == (ParseStatus.TOO_LONG if forests else ParseStatus.SPLIT)
        if not forests:
            assert str(found[0].tree) == "(ROOT (S (T a) (P .)) (S (T a) (P .)))"
