"""The five shared treebanks, whole: what is in them, and kernel against oracle tree by tree."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from tests.reference import bracket_reader, heads, temporal
from tests.reference import treelet as oracle
from tests.reference.nodes import Node, write

from treelm.corpus.brackets import ReadOptions, ReadReport, read_packed, read_trees
from treelm.errors import TreelmWarning
from treelm.transforms.binarize import binarize, undo_binarize
from treelm.transforms.temporal_lexicon import TemporalLexicon
from treelm.transforms.treelet import Treelet
from treelm.trees.heads import find_heads_all
from treelm.trees.packed import NO_WORD
from treelm.trees.profile import load_profile
from treelm.view.svg import draw_svg
from treelm.view.text import draw_text

pytestmark = [pytest.mark.needs_data, pytest.mark.slow]

TREEBANKS = ("gum", "craft", "masc", "wsj-sample", "cess-esp")
PARTS = ("train", "dev", "test")
TRAIN_SLICE = 300
MOST_TREES = 1000
CHUNK = 200
TEMPORAL = frozenset({"today", "monday", "week", "months", "year", "days", "hoy", "time"})

# Malformed at the source, by the README of the data: (code, tree, line, column).
MALFORMED = {
    ("craft", "train"): [("E_MULTI_WORD", 12141, 12141, 93), ("E_MULTI_WORD", 12214, 12214, 218)],
    ("masc", "train"): [("E_EMPTY_LABEL", 2902, 2902, 207)],
}
# Good trees, tokens with the English profile, and with the neutral one, which keeps CODE and SU;
# counted by a regular expression on the files, less the words of the malformed trees.
COUNTS = {
    ("gum", "train"): (10224, 177410, 177410),
    ("gum", "dev"): (1575, 28119, 28119),
    ("gum", "test"): (1464, 28397, 28397),
    ("craft", "train"): (13086, 398568, 398568),
    ("craft", "dev"): (1854, 53136, 53136),
    ("craft", "test"): (6061, 182092, 182092),
    ("masc", "train"): (4145, 79875, 80112),
    ("masc", "dev"): (332, 5483, 5725),
    ("masc", "test"): (156, 2167, 2247),
    ("wsj-sample", "train"): (3396, 81793, 81793),
    ("wsj-sample", "dev"): (273, 6327, 6327),
    ("wsj-sample", "test"): (245, 5964, 5964),
    ("cess-esp", "train"): (4860, 151136, 151136),
    ("cess-esp", "dev"): (576, 18530, 18530),
    ("cess-esp", "test"): (577, 19013, 19013),
}


@pytest.fixture(autouse=True)
def _several_roots_are_no_news() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        yield


def lines_of(path: Path, count: int | None = None) -> list[str]:
    """The lines of a file; each holds one tree."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return list(islice(file, count))


def read_slowly(lines: list[str], *, strip: bool = True) -> list[Node]:
    """What the oracle reads, line by line."""
    return [tree for line in lines for tree in bracket_reader.read(line, strip=strip).trees]


@pytest.mark.parametrize("treebank", TREEBANKS)
@pytest.mark.parametrize("part", PARTS)
def test_treebanks_every_tree_is_accepted_or_placed(
    shared_data: Path, treebank: str, part: str
) -> None:
    path = shared_data / "treebanks" / treebank / f"{part}.mrg"
    trees, *tokens = COUNTS[treebank, part]
    malformed = MALFORMED.get((treebank, part), [])
    for profile, expected_tokens in zip(("english", "neutral"), tokens, strict=True):
        report = ReadReport()
        options = ReadOptions(profile)
        batches = list(read_packed(path, options, on_error="skip", report=report, threads=2))
        assert (report.trees, report.tokens) == (trees, expected_tokens)
        assert report.dropped == 0
        found = [(p.code, p.tree, p.line, p.column) for p in report.problems]
        assert found == malformed
        assert {problem.path for problem in report.problems} <= {str(path)}
        ordinals = [int(ordinal) for batch in batches for ordinal in batch.ordinal]
        expected = set(range(1, trees + len(malformed) + 1)) - {tree for _, tree, _, _ in malformed}
        assert ordinals == sorted(expected)
        assert [int(line) for batch in batches for line in batch.line] == ordinals


def test_treebanks_are_as_large_as_their_readme_says(shared_data: Path) -> None:
    readme = (shared_data / "README.md").read_text(encoding="utf-8")
    for treebank in TREEBANKS:
        row = next(line for line in readme.splitlines() if f"`treebanks/{treebank}/" in line)
        sizes = re.findall(r"([\d,]+) / (\d+)k", row)
        for part, (sentences, thousands) in zip(PARTS, sizes, strict=True):
            trees, tokens, _ = COUNTS[treebank, part]
            malformed = len(MALFORMED.get((treebank, part), []))
            assert int(sentences.replace(",", "")) == trees + malformed
            assert abs(tokens - 1000 * int(thousands)) < 1000


@pytest.mark.parametrize("treebank", TREEBANKS)
@pytest.mark.parametrize("part", PARTS)
def test_treebanks_kernel_equals_oracle(shared_data: Path, treebank: str, part: str) -> None:
    """Reading, heads and treelet transforms of dev, and of the first trees of train and test."""
    path = shared_data / "treebanks" / treebank / f"{part}.mrg"
    lines = lines_of(path, MOST_TREES if part == "dev" else TRAIN_SLICE)
    for start in range(0, len(lines), CHUNK):
        check_against_oracle(lines[start : start + CHUNK])


def check_against_oracle(lines: list[str]) -> None:
    """Compare everything the kernel does to some trees with what the oracle does."""
    expected = read_slowly(lines)
    (packed,) = read_packed(["".join(lines).encode()], on_error="skip")
    assert packed.to_brackets().decode() == written(expected)
    found_heads = packed.native.find_heads(load_profile("english").native)
    assert found_heads.tolist() == [head for tree in expected for head in head_indices(tree)]
    result = [oracle.apply(tree, TEMPORAL) for tree in expected]
    transformed = Treelet(temporal=TEMPORAL).apply_packed(packed)
    assert transformed.to_brackets().decode() == written(result)


def written(trees: list[Node]) -> str:
    """The trees as the kernel writes them, one a line."""
    return "".join(f"{write(tree)}\n" for tree in trees)


def head_indices(tree: Node) -> list[int]:
    """The head of every node in preorder, as the kernel gives it."""
    found: list[int] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        found.append(heads.head_index(node) if node.is_phrasal else NO_WORD)
        stack.extend(reversed(node.children))
    return found


@pytest.mark.parametrize("treebank", TREEBANKS)
def test_treebanks_whole_trees_and_temporal_lexicon(
    shared_data: Path, treebank: str, tmp_path: Path
) -> None:
    lines = lines_of(shared_data / "treebanks" / treebank / "dev.mrg", TRAIN_SLICE)
    raw = read_slowly(lines, strip=False)
    path = tmp_path / "slice.mrg"
    path.write_text("".join(lines), encoding="utf-8", newline="")
    found = read_packed(path, ReadOptions(strip=False))
    assert "".join(batch.to_brackets().decode() for batch in found) == written(raw)
    lexicon = TemporalLexicon.collect([path])
    for min_count, min_share in ((1, 0.0), (2, 0.1)):
        expected = temporal.collect(raw, min_count=min_count, min_share=min_share)
        assert lexicon.words(min_count=min_count, min_share=min_share) == expected
    assert lexicon.counts or treebank in ("cess-esp", "craft")  # no temporal phrases there


def test_treebanks_spanish_with_the_neutral_profile(shared_data: Path) -> None:
    """A language without a profile of its own reads, draws, binarizes and transforms."""
    path = shared_data / "treebanks" / "cess-esp" / "dev.mrg"
    trees = list(read_trees(path, ReadOptions("neutral")))
    assert [str(tree) for tree in trees[:100]] == [
        write(bracket_reader.read(line, drop_tags=(), flatten_nml=False).trees[0])
        for line in lines_of(path, 100)
    ]
    transform = Treelet(profile="neutral")
    for tree, headed in zip(trees[:100], find_heads_all(trees[:100], "neutral"), strict=True):
        picture = draw_text(tree, width=120)
        assert all(word in picture for word in tree.words)
        assert draw_svg(tree).startswith("<svg")
        for direction in ("right", "left", "head"):
            binary = binarize(headed, direction=direction, horizontal_order=1)
            assert max(len(node) for node in binary.preorder()) <= 2
            assert undo_binarize(binary) == tree
        result = transform.apply(tree)
        assert result.words == tree.words
        for node in result.preorder():
            assert node is result or node.is_preterminal or len(node) > 1


def test_treebanks_files_are_read_alike_by_any_number_of_threads(shared_data: Path) -> None:
    path = shared_data / "treebanks" / "craft" / "test.mrg"
    written = [
        b"".join(batch.to_brackets() for batch in read_packed(path, threads=threads))
        for threads in (1, 2, 3)
    ]
    assert written[0] == written[1] == written[2]
    again = b"".join(batch.to_brackets() for batch in read_packed([written[0]]))
    assert again == written[0]
