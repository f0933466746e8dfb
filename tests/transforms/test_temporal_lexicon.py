"""The temporal lexicon against the slow oracle, and its file."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.reference import bracket_reader, temporal
from tests.reference.nodes import Node

from treelm.errors import CorpusFormatError, InputFileError
from treelm.testing.strategies import english_trees, words
from treelm.transforms.temporal_lexicon import TemporalLexicon
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

SHARED_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
UNFLATTENED = load_profile(
    {
        **load_profile("english").model_dump(by_alias=True),
        "name": "unflattened",
        "reading": {"drop_tags": (), "flatten": {}},
    }
)
# As a lexicon holds them; a byte order mark at the start of a file is no part of its first word.
lexicon_words = (
    words()
    .map(lambda word: word.lower().replace("\u2018", "'").replace("\u2019", "'"))
    # A byte order mark is dropped, and a word with a blank in it is no word of a list.
    .filter(lambda word: not word.startswith("\ufeff") and len(word.split()) == 1)
)
COUNTS = st.integers(1, 200).flatmap(lambda total: st.tuples(st.integers(1, total), st.just(total)))


@st.composite
def temporal_trees(draw: st.DrawFn) -> Tree:
    """A tree with many temporal noun phrases of simple and odd shapes."""
    nouns = st.builds(
        Tree,
        st.sampled_from(["NN", "NNS", "NNP", "NNPS", "CD", "RB", "NNT", "POS", "-NONE-", "CODE"]),
        st.sampled_from(["time", "Monday", "MONDAY", "week", "Ärger", "day\u2019s", "*", "x"]),
    )
    phrase_labels = st.sampled_from(
        ["NP-TMP", "NP", "NP-TMP-1", "NP-SBJ", "NML", "NML-TMP", "PP-TMP", "NP=TMP", "NP|TMP"]
    )

    def phrases(below: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        return st.builds(Tree, phrase_labels, st.lists(below, min_size=1, max_size=3))

    below = st.recursive(nouns, phrases, max_leaves=8)
    return Tree("ROOT", draw(st.lists(below, min_size=1, max_size=3)))


corpora = st.lists(temporal_trees() | english_trees(max_depth=4), max_size=5)


def raw(batch: list[Tree]) -> list[Node]:
    """The trees as the oracle collects from them."""
    return bracket_reader.read("\n".join(map(str, batch)), strip=False).trees


def write(batch: list[Tree], path: Path) -> Path:
    """A treebank file of these trees."""
    path.write_text("\n".join(map(str, batch)), encoding="utf-8", newline="")
    return path


@settings(SHARED_FOLDER, max_examples=100)
@given(batch=corpora, english=st.booleans())
def test_temporal_lexicon_counts(batch: list[Tree], english: bool, tmp_path: Path) -> None:
    of_tmp: Counter[str] = Counter()
    of_any: Counter[str] = Counter()
    for tree in raw(batch):
        drop_tags = bracket_reader.ENGLISH_DROP_TAGS if english else frozenset()
        in_tmp, in_any = temporal.count_heads(tree, drop_tags, english)
        of_tmp.update(in_tmp)
        of_any.update(in_any)
    profile = "english" if english else UNFLATTENED
    found = TemporalLexicon.collect([write(batch, tmp_path / "x.mrg")], profile)
    assert found.counts == {word: (of_tmp[word], of_any[word]) for word in of_tmp if of_tmp[word]}


@settings(SHARED_FOLDER, max_examples=40)
@given(
    batch=corpora,
    min_count=st.integers(1, 3),
    min_share=st.sampled_from([0.0, 0.1, 0.3, 0.5, 2 / 3, 1.0]),
)
def test_temporal_lexicon_words(
    batch: list[Tree], min_count: int, min_share: float, tmp_path: Path
) -> None:
    lexicon = TemporalLexicon.collect([write(batch, tmp_path / "x.mrg")])
    expected = temporal.collect(raw(batch), min_count=min_count, min_share=min_share)
    assert lexicon.words(min_count=min_count, min_share=min_share) == expected


@settings(SHARED_FOLDER, max_examples=15)
@given(batch=corpora, cut=st.integers(0, 5))
def test_temporal_lexicon_of_several_files(batch: list[Tree], cut: int, tmp_path: Path) -> None:
    whole = TemporalLexicon.collect([write(batch, tmp_path / "x.mrg")])
    parts = [write(batch[:cut], tmp_path / "a.mrg"), write(batch[cut:], tmp_path / "b.mrg")]
    assert TemporalLexicon.collect(parts) == whole
    assert TemporalLexicon.collect(parts[::-1], threads=3) == whole


@given(COUNTS, st.integers(1, 200), st.integers(0, 100))
@example((7, 100), 1, 7)
def test_temporal_lexicon_thresholds(counts: tuple[int, int], min_count: int, percent: int) -> None:
    """The share is a quotient, as written in the specification: 7 of 100 is a share of 0.07."""
    in_tmp, in_any = counts
    min_share = percent / 100
    expected = in_tmp >= min_count and in_tmp / in_any >= min_share
    lexicon = TemporalLexicon({"noon": counts})
    assert ("noon" in lexicon.words(min_count=min_count, min_share=min_share)) is expected


# -- files ----------------------------------------------------------------------------------


@settings(SHARED_FOLDER, max_examples=60)
@given(counts=st.dictionaries(lexicon_words, COUNTS))
def test_temporal_lexicon_save_and_load(counts: dict[str, tuple[int, int]], tmp_path: Path) -> None:
    lexicon = TemporalLexicon(counts)
    for name in ("lexicon.tsv", "lexicon.tsv.gz"):
        lexicon.save(tmp_path / name)
        assert TemporalLexicon.load(tmp_path / name) == lexicon
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["lexicon.tsv", "lexicon.tsv.gz"]


def test_temporal_lexicon_loads_a_list_of_words(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes("today\r\n\nÄrger\nmonday".encode())
    lexicon = TemporalLexicon.load(tmp_path / "words.txt")
    assert lexicon.words() == lexicon.words(min_share=1.0) == {"today", "ärger", "monday"}


@pytest.mark.parametrize("line", ["today\tx\t1", "today\t1", "today\t1\t"])
def test_temporal_lexicon_refuses_a_bad_file(line: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text(f"monday\t1\t2\n{line}\n", encoding="utf-8")
    with pytest.raises(CorpusFormatError) as caught:
        TemporalLexicon.load(path)
    assert (caught.value.code, caught.value.line) == ("E_LEXICON", 2)
    with pytest.raises(InputFileError):
        TemporalLexicon.load(tmp_path / "missing.tsv")


def test_temporal_lexicon_skips_or_raises(tmp_path: Path) -> None:
    path = tmp_path / "x.mrg"
    path.write_text("(NP-TMP (NN noon))\n(NN )\n(S (NP-TMP (NN noon)) (NP (NN noon)))\n", "utf-8")
    assert TemporalLexicon.collect([path], on_error="skip").counts == {"noon": (2, 3)}
    with pytest.raises(CorpusFormatError):
        TemporalLexicon.collect([path])
    assert TemporalLexicon.collect([]).counts == {}


def test_temporal_lexicon_is_empty_without_function_tags(tmp_path: Path) -> None:
    batch = [Tree("ROOT", [Tree("NP", [Tree("NN", word)])]) for word in ("noon", "dusk")]
    assert TemporalLexicon.collect([write(batch, tmp_path / "x.mrg")]).words() == frozenset()


@given(st.dictionaries(st.text(min_size=1, max_size=3), COUNTS, max_size=5))
def test_temporal_lexicon_thresholds_only_remove(counts: dict[str, tuple[int, int]]) -> None:
    lexicon = TemporalLexicon(counts)
    assert lexicon.words() == frozenset(counts)
    for low, high in itertools.pairwise((0.0, 0.25, 0.5, 1.0)):
        assert lexicon.words(min_share=high) <= lexicon.words(min_share=low)
    for count in (1, 2, 5):
        assert lexicon.words(min_count=count + 1) <= lexicon.words(min_count=count)
