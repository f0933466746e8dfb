"""Phrase tables from aligned text, against their definitions."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.phrase_extraction import Link, extract, grow_diag_final_and

from treelm.errors import CorpusFormatError, MissingExtra, UsageError
from treelm.extras import import_extra
from treelm.tasks.phrases import make_phrase_tables
from treelm.translation.parallel_text import (
    Links,
    align_words,
    read_links,
    read_parallel_text,
    symmetrize,
)
from treelm.translation.phrases import extract_phrases

WORDS = st.lists(st.sampled_from("abc"), max_size=5)


@st.composite
def linked(draw: st.DrawFn) -> tuple[list[str], list[str], set[Link], set[Link]]:
    """Two sentences and two alignments of their words."""
    source, target = draw(WORDS), draw(WORDS)
    if not source or not target:
        return source, target, set(), set()
    places = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
    return source, target, draw(st.sets(places, max_size=8)), draw(st.sets(places, max_size=8))


def write_text(folder: Path, pairs: list[tuple[list[str], list[str]]]) -> tuple[Path, Path]:
    """Write both sides, one sentence per line."""
    files = folder / "source", folder / "target"
    for side, file in enumerate(files):
        file.write_text("".join(" ".join(pair[side]) + "\n" for pair in pairs), encoding="utf-8")
    return files


def links_of(alignments: list[set[Link]]) -> Links:
    """Return alignments as arrays."""
    ordered = [sorted(each) for each in alignments]
    flat = [place for links in ordered for link in links for place in link]
    starts = np.cumsum([0, *map(len, ordered)])
    return Links(np.array(flat, dtype=np.uint32), starts.astype(np.uint64))


@given(pairs=st.lists(linked(), min_size=1, max_size=4))
def test_symmetrize_is_grow_diag_final_and(
    pairs: list[tuple[list[str], list[str], set[Link], set[Link]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("text")
    text = read_parallel_text(*write_text(folder, [(f, e) for f, e, _, _ in pairs]))
    forward, backward = (links_of([pair[side] for pair in pairs]) for side in (2, 3))
    found = symmetrize(text, forward, backward)
    for place, (_, _, one, other) in enumerate(pairs):
        assert found.of(place) == sorted(grow_diag_final_and(set(one), set(other)))


@given(pairs=st.lists(linked(), min_size=1, max_size=4), longest=st.integers(1, 4))
def test_phrase_tables_hold_what_the_definitions_say(
    pairs: list[tuple[list[str], list[str], set[Link], set[Link]]],
    longest: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("text")
    source, target = write_text(folder, [(f, e) for f, e, _, _ in pairs])
    wanted = extract([(tuple(f), tuple(e), links) for f, e, links, _ in pairs], longest)
    text = read_parallel_text(source, target)
    links = links_of([each for _, _, each, _ in pairs])
    if not wanted.counts:
        with pytest.raises(CorpusFormatError, match="no word is aligned"):
            extract_phrases(text, links, longest=longest)
        return
    tables = extract_phrases(text, links, longest=longest)
    table, reordering = folder / "table.gz", folder / "reordering"
    tables.write_table(table)
    tables.write_reordering(reordering)
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()
    phrases = [tuple(field.split() for field in line.split("|||")[:2]) for line in lines]
    assert phrases == sorted(phrases)
    assert len(lines) == len(wanted.counts)
    for line, oriented in zip(lines, reordering.read_text().splitlines(), strict=True):
        f, e, scores, alignment, counts, *_ = (field.strip() for field in line.split("|||"))
        pair = tuple(f.split()), tuple(e.split())
        assert [float(score) for score in scores.split()] == pytest.approx(
            wanted.scores(pair), rel=1e-5
        )
        best = wanted.alignment(pair)
        assert alignment.split() == [f"{s}-{t}" for s, t in best]
        assert int(counts.split()[2]) == wanted.counts[pair]
        assert [field.strip() for field in oriented.split("|||")][:2] == [f, e]
        assert [float(each) for each in oriented.split("|||")[2].split()] == pytest.approx(
            wanted.orientations(pair), rel=1e-5
        )


def test_rare_pairs_are_left_out_but_counted(tmp_path: Path) -> None:
    pairs = [(["das"], ["the"])] * 3 + [(["das"], ["that"])]
    source, target = write_text(tmp_path, pairs)
    alignment = tmp_path / "links"
    alignment.write_text("0-0\n" * 4)
    table = tmp_path / "table"
    report = make_phrase_tables(source, target, table, alignment=alignment, min_count=2)
    assert report["phrase_pairs"] == 1
    assert table.read_text() == "das ||| the ||| 1 1 0.75 0.75 ||| 0-0 ||| 3 4 3 ||| |||\n"


def test_alignments_survive_writing_and_reading(tmp_path: Path) -> None:
    source, target = write_text(tmp_path, [(["a", "b"], ["x", "y", "z"]), ([], ["x"])])
    alignment = tmp_path / "links"
    alignment.write_text("1-0 0-2 1-0\n\n")
    text = read_parallel_text(source, target)
    links = read_links(alignment, text)
    assert links.of(0) == [(0, 2), (1, 0)]
    assert list(links.lines()) == ["0-2 1-0", ""]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("0-0 1-7\n\n", r":1: .*1-7 leads outside its sentences of 2 and 3 words"),
        ("0-0 1\n\n", r":1: .*'1' is no link"),
        ("0-99999999999\n\n", r":1: .*is no link"),
        ("\n-1-0\n", r":2: .*is no link"),
        ("0-0\n", r"aligns 1 sentence pairs, and there are 2"),
    ],
)
def test_wrong_alignments_are_refused_with_their_line(
    tmp_path: Path, lines: str, message: str
) -> None:
    text = read_parallel_text(*write_text(tmp_path, [(["a", "b"], ["x", "y", "z"]), ([], ["x"])]))
    alignment = tmp_path / "links"
    alignment.write_text(lines)
    with pytest.raises(CorpusFormatError, match=message):
        read_links(alignment, text)


def test_texts_of_different_lengths_are_refused(tmp_path: Path) -> None:
    source, target = write_text(tmp_path, [(["a"], ["x"])])
    target.write_text("x\ny\n")
    with pytest.raises(CorpusFormatError, match=r"1 lines, .* has 2") as caught:
        read_parallel_text(source, target)
    assert caught.value.code == "E_LENGTH_MISMATCH"


def test_the_separator_of_tables_is_no_word(tmp_path: Path) -> None:
    source, target = write_text(tmp_path, [(["a"], ["x"]), (["b"], ["|||"])])
    with pytest.raises(CorpusFormatError, match=r"target:2: .*separates the fields"):
        read_parallel_text(source, target)


def test_nothing_to_align_is_said(tmp_path: Path) -> None:
    text = read_parallel_text(*write_text(tmp_path, [([], [])]))
    with pytest.raises(UsageError, match="no words to align"):
        align_words(text)


def test_words_are_aligned_by_eflomal(tmp_path: Path) -> None:
    try:
        import_extra("eflomal", "Aligning words")
    except MissingExtra:
        pytest.skip("eflomal is not installed")
    numbers = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four"}
    pairs = [([a, b], [numbers[a], numbers[b]]) for a in numbers for b in numbers if a != b] * 10
    text = read_parallel_text(*write_text(tmp_path, pairs))
    links = align_words(text)
    right = sum(links.of(place) == [(0, 0), (1, 1)] for place in range(len(pairs)))
    assert right > 0.9 * len(pairs)
