"""The bracket reader against the slow oracle, on good, damaged and nonsensical text."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise, product
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.reference import bracket_reader as oracle
from tests.reference.conversion import parts_of_node, parts_of_tree, to_node
from tests.reference.nodes import write

from treelm.corpus.brackets import (
    DEFAULT_OPTIONS,
    RAW_OPTIONS,
    ReadOptions,
    ReadReport,
    parse_tree,
    read_packed,
    read_trees,
    rewrite_brackets,
)
from treelm.errors import CorpusFormatError, TreelmWarning
from treelm.testing.strategies import bracket_soup, english_trees, labels, trees, words
from treelm.transforms.clean import clean
from treelm.trees.tree import Tree

COMMON_BYTES = b"()NX \n\t\xc3\xa9\xe2\x80*x"
WHOLE = ReadOptions(strip=False, unescape=False)


@pytest.fixture(autouse=True)
def _several_roots_are_no_news() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        yield


class Reading(NamedTuple):
    """Everything a reading says."""

    trees: list[str]
    places: list[tuple[int, int]]
    problems: list[tuple[str, int, int, int]]
    dropped: int
    many_rooted: int
    tokens: int


def encode(text: str) -> bytes:
    """The bytes of a text whose lone surrogates stand for bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def read(
    blocks: Iterable[bytes], options: ReadOptions = DEFAULT_OPTIONS, *, threads: int = 1
) -> Reading:
    """What the kernel reads."""
    report = ReadReport()
    batches = list(
        read_packed(iter(blocks), options, on_error="skip", report=report, threads=threads)
    )
    lines = b"".join(batch.to_brackets() for batch in batches).decode().split("\n")[:-1]
    assert [str(tree) for batch in batches for tree in batch] == lines
    assert report.trees == len(lines)
    assert report.failed == len(report.problems)
    return Reading(
        lines,
        [
            (int(ordinal), int(line))
            for batch in batches
            for ordinal, line in zip(batch.ordinal, batch.line, strict=True)
        ],
        [(found.code, found.tree, found.line, found.column) for found in report.problems],
        report.dropped,
        report.many_rooted,
        report.tokens,
    )


def read_slowly(data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> Reading:
    """What the oracle reads."""
    english = options.profile == "english"
    result = oracle.read(
        data.decode("utf-8", "surrogateescape"),
        strip=options.strip,
        unescape=options.unescape,
        respell=english and options.respell,
        normalize_root=options.normalize_root,
        drop_tags=oracle.ENGLISH_DROP_TAGS if english else frozenset(),
        flatten_nml=english,
        max_depth=options.max_depth,
    )
    return Reading(
        [write(tree) for tree in result.trees],
        result.places,
        [tuple(error) for error in result.errors],
        result.dropped,
        result.many_rooted,
        sum(len(oracle_words(tree)) for tree in result.trees),
    )


def oracle_words(tree: oracle.Node) -> list[str]:
    """The words of an oracle tree."""
    return [parts.word for parts in parts_of_node(tree) if parts.word is not None]


ALL_OPTIONS = [
    ReadOptions(
        profile=profile,
        strip=strip,
        unescape=unescape,
        normalize_root=normalize_root,
        max_depth=max_depth,
    )
    for profile, strip, unescape, normalize_root, max_depth in product(
        ["english", "neutral"], [True, False], [True, False], [True, False], [1000, 3]
    )
]


@settings(max_examples=80)
@given(bracket_soup(undecodable=True))
@example("\ufeff*x* (\n(NN a)")
@example("(S (NN a)\n(NN b)) )\r\n*x*")
@example("(NML-TMP (NML (NML x)))(ROOT (ROOT (NML (NN a))))")
@example("( (X a) (Y b))(TOP-1 (X a))(TOP dog)")
@example("(S (S ((S a))))(S (S (S (S a))))(TOP (S (S (S a))))( (S (S (S (S a)))))")
def test_brackets_oracle_same_reading_with_every_option(text: str) -> None:
    data = encode(text)
    for options in ALL_OPTIONS:
        assert read([data], options) == read_slowly(data, options)


@settings(max_examples=80)
@given(bracket_soup(undecodable=True), st.integers(1, 6))
def test_brackets_oracle_max_depth(text: str, max_depth: int) -> None:
    options = ReadOptions(strip=False, max_depth=max_depth)
    reading = read([encode(text)], options)
    assert reading == read_slowly(encode(text), options)
    again = read(["\n".join(reading.trees).encode()], options)
    assert (again.trees, again.problems) == (reading.trees, [])


@settings(max_examples=80)
@given(
    st.binary(max_size=60) | st.lists(st.sampled_from(b"()NX \n\t\xc3\xa9\xe2\x80*x")).map(bytes)
)
def test_brackets_oracle_any_bytes(data: bytes) -> None:
    assert read([data]) == read_slowly(data)
    assert read([data], RAW_OPTIONS) == read_slowly(data, RAW_OPTIONS)


@settings(max_examples=80)
@given(bracket_soup(undecodable=True), st.lists(st.integers(0, 400), max_size=12), st.data())
def test_brackets_oracle_blocks_and_threads_change_nothing(
    text: str, cuts: list[int], data: st.DataObject
) -> None:
    whole = encode(text)
    options = data.draw(st.sampled_from(ALL_OPTIONS))
    expected = read([whole], options)
    places = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
    blocks = [whole[start:end] for start, end in pairwise(places)]
    single = [whole[i : i + 1] for i in range(len(whole))]
    for threads in (1, 2, 3):
        assert read(blocks, options, threads=threads) == expected
    assert read(single, options) == expected
    assert read([], options).trees == []


@settings(max_examples=6)
@given(bracket_soup(undecodable=True), st.sampled_from([100, 4096, 70_000, 262_144, 300_001]))
def test_brackets_oracle_many_batches(text: str, block: int) -> None:
    once = encode(text + "\n(S (NP (NN again)) (VP (VBZ is)))\n") * 40
    whole = once * (1 + 600_000 // len(once))
    blocks = [whole[i : i + block] for i in range(0, len(whole), block)]
    recipe = ReadOptions().recipe()
    expected: list[object] = []
    for threads in (1, 2, 3):
        for source in ([whole], blocks):
            report, report_of_text = ReadReport(), ReadReport()
            batches = list(
                read_packed(iter(source), on_error="skip", report=report, threads=threads)
            )
            written = b"".join(batch.to_brackets() for batch in batches)
            ordinals = [batch.ordinal.tolist() for batch in batches]
            places = [(found.code, found.line, found.column) for found in report.problems]
            counts = (report.trees, report.tokens, report.failed, report.dropped)
            found = [written, list(chain(*ordinals)), places, counts]
            expected = expected or found
            assert found == expected
            text_blocks = rewrite_brackets(
                iter(source), recipe, on_error="skip", report=report_of_text, threads=threads
            )
            assert b"".join(text_blocks) == written
            assert (report_of_text.trees, report_of_text.failed) == (report.trees, report.failed)
            assert report_of_text.problems == report.problems


@settings(max_examples=60)
@given(bracket_soup())
@example("junk")
def test_brackets_oracle_excerpts_do_not_depend_on_blocks(text: str) -> None:
    data = text.encode()
    excerpts = []
    for blocks in ([data], [data[i : i + 1] for i in range(len(data))]):
        report = ReadReport()
        list(read_packed(iter(blocks), on_error="skip", report=report))
        excerpts.append([problem.excerpt for problem in report.problems])
    assert excerpts[0] == excerpts[1]


@settings(max_examples=30)
@given(bracket_soup())
def test_brackets_oracle_line_buffered_rewriting(text: str) -> None:
    recipe = ReadOptions().recipe()
    lines = text.encode().splitlines(keepends=True)
    rewritten = rewrite_brackets(iter(lines), recipe, on_error="skip", line_buffered=True)
    assert b"".join(rewritten).decode().split("\n")[:-1] == read([text.encode()]).trees


@settings(max_examples=60)
@given(bracket_soup(undecodable=True))
def test_brackets_oracle_raise_stops_at_the_first_error(text: str) -> None:
    errors = read_slowly(encode(text)).problems
    if not errors:
        list(read_packed(iter([encode(text)])))
        return
    with pytest.raises(CorpusFormatError) as caught:
        list(read_packed(iter([encode(text)])))
    error = caught.value
    assert (error.code, error.tree, error.line, error.column) == errors[0]


# -- round trips ----------------------------------------------------------------------------


@settings(max_examples=100)
@given(trees(labels=labels(reserved=True)))
def test_brackets_oracle_written_trees_are_read_as_they_were(tree: Tree) -> None:
    assert parse_tree(str(tree)) == tree
    assert str(parse_tree(str(tree), WHOLE)) == write(oracle_raw(str(tree)))
    rooted = Tree("ROOT", [tree])
    assert list(read_trees([str(rooted)], WHOLE)) == [rooted]


def oracle_raw(text: str) -> oracle.Node:
    """The only tree of a text, whole."""
    return oracle.read(text, strip=False, unescape=False).trees[0]


@settings(max_examples=80)
@given(bracket_soup())
def test_brackets_oracle_reading_again_changes_nothing(text: str) -> None:
    for options in (ReadOptions(), ReadOptions("neutral"), WHOLE):
        reading = read([text.encode()], options)
        again = read(["\n".join(reading.trees).encode()], options)
        assert again.trees == reading.trees
        assert again.problems == []
        assert again.dropped == 0


@settings(max_examples=100)
@given(trees(labels=labels(reserved=True)) | english_trees())
def test_brackets_oracle_clean_does_what_reading_does(tree: Tree) -> None:
    node = to_node(tree)
    if not oracle.strip_tree(node, oracle.ENGLISH_DROP_TAGS, flatten_nml=True):
        with pytest.raises(CorpusFormatError) as caught:
            clean(tree)
        assert caught.value.code == "E_EMPTY_TREE"
        return
    assert parts_of_tree(clean(tree)) == parts_of_node(node)
    assert clean(clean(tree)) == clean(tree)
    options = ReadOptions(unescape=False, normalize_root=False)
    assert list(read_trees([str(tree)], options)) == [clean(tree)]


@settings(max_examples=50)
@given(st.lists(st.builds(Tree, labels(), words()), min_size=1))
def test_brackets_oracle_strings_may_hold_any_number_of_trees(preterminals: list[Tree]) -> None:
    text = "".join(map(str, preterminals))
    each = list(read_trees(map(str, preterminals), RAW_OPTIONS))
    assert each == preterminals
    assert list(read_trees([text], RAW_OPTIONS)) == preterminals


def test_brackets_oracle_deep_trees() -> None:
    for depth in (1000, 1001):
        text = "(X " * (depth - 1) + "(NN a)" + ")" * (depth - 1)
        assert read([text.encode()]) == read_slowly(text.encode())
        assert read([f"( {text})".encode()], WHOLE) == read_slowly(f"( {text})".encode(), WHOLE)
    deep = ReadOptions(strip=False, max_depth=100_000)
    text = "(X " * 99_999 + "(NN a)" + ")" * 99_999
    assert read([text.encode()], deep).trees == [f"(ROOT {text})"]
