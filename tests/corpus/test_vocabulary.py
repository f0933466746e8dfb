"""Vocabularies: the streaming rule against the rule as it is written, files, fingerprints."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.unknown_words import UNKNOWN, Signatures
from treelm.corpus.vocabulary import Vocabulary, check_same_vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.corpus.vocabulary_rules import (
    VocabularyRule,
    build_vocabulary,
    merge_entries,
    stream_entries,
)
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError, VocabularyError
from treelm.seeds import random_uniform
from treelm.trees.profile import load_profile

WORDS = st.sampled_from(["a", "A", "b", "vexing", "Vexing", "dogs", "B-52", "%", "x1", "Ünal"])
CORPORA = st.lists(st.lists(WORDS, min_size=1, max_size=5).map(tuple), min_size=1, max_size=12)


def stream_by_the_book(
    corpus: list[tuple[str, ...]], start_after: int, probability: float, seed: int
) -> tuple[set[str], list[tuple[str, ...]]]:
    """Equation (9.1) of trees-and-transforms.md, word by word."""
    known: set[str] = set()
    signature = Signatures("english")
    replaced = []
    for number, sentence in enumerate(corpus, 1):
        out = []
        for position, word in enumerate(sentence):
            if word in known:
                out.append(word)
            elif number <= start_after or random_uniform(seed, number, position) >= probability:
                known.add(word)
                out.append(word)
            else:
                out.append(signature(word, position, known=known))
        replaced.append(tuple(out))
    return known, replaced


@given(CORPORA, st.integers(0, 12), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(0, 5))
def test_stream_rule_is_that_of_the_paper(
    corpus: list[tuple[str, ...]], start_after: int, probability: float, seed: int
) -> None:
    rule = VocabularyRule(
        start_after=min(start_after, len(corpus) - 1), probability=probability, seed=seed
    )
    assert rule.start_after is not None
    known, expected = stream_by_the_book(corpus, rule.start_after, probability, seed)
    vocabulary = build_vocabulary(corpus, rule)
    assert {item.symbol for item in vocabulary.entries if not item.is_signature} - {
        UNKNOWN
    } == known
    replaced = [vocabulary.replace(words, sentence=n) for n, words in enumerate(corpus, 1)]
    assert replaced == expected
    counts = Counter(symbol for sentence in expected for symbol in sentence)
    found = {item.symbol: item.count for item in vocabulary.entries if item.count}
    assert found == dict(counts)
    emitted = {symbol for symbol in counts if symbol.startswith("UNK-")}
    assert {item.symbol for item in vocabulary.entries if item.is_signature} == emitted


@given(CORPORA, st.integers(0, 4), st.lists(st.integers(0, 12), max_size=3))
def test_stream_rule_gives_the_same_in_pieces(
    corpus: list[tuple[str, ...]], seed: int, cuts: list[int]
) -> None:
    rule = VocabularyRule(probability=0.6, seed=seed)
    whole = merge_entries([stream_entries(corpus, rule, 2)])
    places = sorted({0, *(min(cut, len(corpus)) for cut in cuts), len(corpus)})
    parts = [
        stream_entries(corpus[first:last], rule, 2, first + 1) for first, last in pairwise(places)
    ]
    assert merge_entries(parts[::-1]) == whole


def test_stream_rule_default_start_is_half_a_small_corpus() -> None:
    corpus = [("a",)] * 4 + [(f"w{i}",) for i in range(400)]
    vocabulary = build_vocabulary(corpus, VocabularyRule(seed=3))
    late = [item for item in vocabulary.entries if item.entry is not None]
    assert late
    assert min(item.entry[0] for item in late if item.entry) > 202
    assert any(item.is_signature for item in vocabulary.entries)


def test_stream_rule_that_never_fires_warns() -> None:
    with pytest.warns(TreelmWarning, match="start_after of 1"):
        vocabulary = build_vocabulary([("a",), ("b",)], VocabularyRule(start_after=9))
    assert vocabulary.symbols == (UNKNOWN, "a", "b")


@pytest.mark.parametrize(
    ("rule", "symbols"),
    [
        (VocabularyRule(name="all"), (UNKNOWN, "a", "b", "c", "dogs")),
        (VocabularyRule(name="min-count", min_count=2), (UNKNOWN, "a", "b")),
        (VocabularyRule(name="top", size=1), (UNKNOWN, "a")),
        (
            VocabularyRule(name="top", size=2, signatures=True),
            (UNKNOWN, "a", "b", "UNK-LC", "UNK-LC-s"),
        ),
    ],
)
def test_rules_choose_words(rule: VocabularyRule, symbols: tuple[str, ...]) -> None:
    corpus = [("a", "b", "a"), ("a", "b", "c", "dogs")]
    vocabulary = build_vocabulary(corpus, rule)
    assert vocabulary.symbols == symbols
    assert int(vocabulary.counts.sum()) == 7
    assert vocabulary.decode(vocabulary.encode(("a", "zebras"))) == vocabulary.replace(
        ("a", "zebras")
    )


def test_unknown_symbol_in_the_text_is_the_unknown_symbol() -> None:
    vocabulary = build_vocabulary([("a", UNKNOWN), ("a", "b")], VocabularyRule(name="all"))
    assert vocabulary.symbols == (UNKNOWN, "a", "b")
    assert vocabulary.counts.tolist() == [1, 2, 1]
    assert vocabulary.replace((UNKNOWN, "new")) == (UNKNOWN, UNKNOWN)


def test_boundary_marks_are_no_words() -> None:
    with pytest.raises(CorpusFormatError) as in_corpus:
        build_vocabulary([("<s>", "a")], VocabularyRule(name="all"))
    assert in_corpus.value.code == "E_RESERVED_SYMBOL"
    with pytest.raises(VocabularyError) as in_query:
        Vocabulary.from_counts({"a": 1}).replace(("a", "</s>"))
    assert in_query.value.code == "E_RESERVED_SYMBOL"
    with pytest.raises(VocabularyError):
        Vocabulary.from_counts({"<s>": 1})


def test_empty_corpus_and_wrong_options_are_refused() -> None:
    with pytest.raises(VocabularyError) as caught:
        build_vocabulary([], VocabularyRule())
    assert caught.value.code == "E_NO_DATA"
    for options in ({"name": "best"}, {"size": 0}, {"probability": 1.5}, {"start_after": -1}):
        with pytest.raises(UsageError):
            VocabularyRule(**options)  # type: ignore[arg-type]


@given(CORPORA, st.integers(0, 3))
def test_vocabulary_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[tuple[str, ...]], seed: int
) -> None:
    rule = VocabularyRule(probability=0.5, seed=seed, start_after=len(corpus) // 2)
    vocabulary = build_vocabulary(corpus, rule)
    path = tmp_path_factory.mktemp("vocabulary") / "words.gz"
    save_vocabulary(vocabulary, path)
    again = load_vocabulary(path)
    assert again.entries == vocabulary.entries
    assert again.fingerprint == vocabulary.fingerprint
    assert again.source["seed"] == seed
    for number, words in enumerate(corpus, 1):
        assert again.replace(words, sentence=number) == vocabulary.replace(words, sentence=number)
    check_same_vocabulary(again, vocabulary)


def test_vocabulary_of_a_profile_of_ones_own_survives_its_file(tmp_path: Path) -> None:
    packaged = load_profile("english")
    own = packaged.model_copy(update={"name": "mine"})
    vocabulary = Vocabulary.from_counts({"dog": 2}, signatures={"UNK": 1}, unknown=1, profile=own)
    save_vocabulary(vocabulary, tmp_path / "words.txt")
    again = load_vocabulary(tmp_path / "words.txt")
    assert again.fingerprint == vocabulary.fingerprint
    assert load_profile(again.profile).heads.rules == packaged.heads.rules


def test_fingerprint_tells_vocabularies_apart() -> None:
    first = Vocabulary.from_counts({"a": 2, "b": 1})
    same = Vocabulary.from_counts({"b": 5, "a": 9})
    other = Vocabulary.from_counts({"a": 2}, signatures={"b": 1})
    check_same_vocabulary(first, same)
    for different in (other, Vocabulary.from_counts({"a": 2, "b": 1}, profile="neutral")):
        with pytest.raises(VocabularyError, match="treelm vocabulary") as caught:
            check_same_vocabulary(first, different)
        assert caught.value.code == "E_VOCABULARY_MISMATCH"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda text: "", 1),
        (lambda text: text.replace("#treelm-vocabulary 1", "#treelm-vocabulary 9"), 1),
        (lambda text: text.replace("{", "[", 1), 1),
        (lambda text: text.replace('"english"', '"/etc/passwd"'), 1),
        (lambda text: text.replace("\tword\t", "\tverb\t", 1), 2),
        (lambda text: text.replace("a\t2", "a\t-2"), 3),
        (lambda text: text.replace("a\t2", "a\t2\t2"), 3),
        # As many columns as there should be, but in other lines.
        (lambda text: text.replace("a\t2", "a").replace("b\t1", "2\tb\t1"), 3),
        (lambda text: text.replace("b\t1", "a\t1"), 1),
        (lambda text: text.replace("b\t1", "c\t1"), 1),
        (lambda text: text[: text.rindex("b\t1")], 1),
        (lambda text: text + "<s>\t1\tword\t-\n", 1),
    ],
)
def test_damaged_vocabulary_file_is_refused(tmp_path: Path, change, line: int) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "words"
    save_vocabulary(Vocabulary.from_counts({"a": 2, "b": 1}), path)
    path.write_text(change(path.read_text()))
    with pytest.raises(CorpusFormatError) as caught:
        load_vocabulary(path)
    assert (caught.value.code, caught.value.line) == ("E_VOCABULARY_FILE", line)


def test_tree_sentences_are_the_words_of_the_trees(sample_file: Path) -> None:
    corpus = TreeCorpus((sample_file,))
    assert list(TreeSentences(corpus)) == [tree.words for tree in corpus]
