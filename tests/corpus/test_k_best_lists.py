"""Lists of trees as other parsers print them."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelm.corpus.brackets import RAW_OPTIONS
from treelm.corpus.k_best_lists import block_lines, read_k_best_lists, read_packed_lists
from treelm.corpus.nbest import Hypothesis, NBest
from treelm.errors import CorpusFormatError, UsageError
from treelm.models.interface.parse_lists import ParseLists
from treelm.testing.strategies import english_trees
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"
FLAT = "(FRAG (DT the) (NN dog) (VBZ barks))"
CAT = "(S (NP (NN cats)) (VP (VBP sleep)))"

#: What several parsers print for the same two sentences, the second without scores or parses.
FILES = {
    "treelm": f"-1.5\t(ROOT {DOG})\n-2.25\t(ROOT {FLAT})\n\n-3.0\t(ROOT {CAT})\n\n",
    "berkeley-scores": f"-1.5\t( {DOG} )\n-2.25\t( {FLAT} )\n\n-3.0\t( {CAT} )\n\n",
    "berkeley": f"( {DOG} )\n( {FLAT} )\n\n( {CAT} )\n\n",
    "bllip": f"2\tdoc-0\n-1.5\n(S1 {DOG})\n-2.25\n(S1 {FLAT})\n\n1\tdoc-1\n-3.0\n(S1 {CAT})\n\n",
    "no last line end": f"-1.5\t(ROOT {DOG})\n-2.25\t(ROOT {FLAT})\n\n-3.0\t(ROOT {CAT})",
}


def read(tmp_path: Path, text: str, **options: object) -> list[NBest]:
    path = tmp_path / "lists.xz"
    path.write_bytes(lzma.compress(text.encode()))
    return list(read_k_best_lists(path, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FILES)
def test_what_parsers_print_is_read(kind: str, tmp_path: Path) -> None:
    first, second = read(tmp_path, FILES[kind])
    expected = [Tree("ROOT", [Tree.from_string(text)]) for text in (DOG, FLAT)]
    assert [each.tree for each in first.hypotheses] == expected
    assert first.hypotheses[0].words == ("the", "dog", "barks")
    scores = [None, None] if kind == "berkeley" else [-1.5, -2.25]
    assert [each.score for each in first.hypotheses] == scores
    assert len(second) == 1
    assert (first.id, second.id) == (("doc-0", "doc-1") if kind == "bllip" else ("1", "2"))


def test_one_tree_a_line(tmp_path: Path) -> None:
    lists = read(tmp_path, f"{DOG}\n\n{CAT}\n", form="plain")
    assert [len(best) for best in lists] == [1, 0, 1]
    assert [len(best) for best in read(tmp_path, f"{DOG}\n{CAT}\n\n{DOG}\n")] == [1, 1, 0, 1]


def test_no_parse_is_no_tree(tmp_path: Path) -> None:
    lists = read(tmp_path, f"(())\n\n-1\t( {DOG} )\n-inf\t(())\n\n\n( {CAT} )\n")
    assert [len(best) for best in lists] == [0, 1, 0, 1]
    assert read(tmp_path, "") == []


def test_columns_after_the_first_are_kept(tmp_path: Path) -> None:
    (best,) = read(tmp_path, f"-1\t-7.5\t0.25\t(ROOT {CAT})\n")
    assert (best.hypotheses[0].score, best.hypotheses[0].more) == (-1.0, ("-7.5", "0.25"))


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        (f"-1\t{DOG}\nhello\n", 2, "E_NBEST"),
        (f"-1\t{DOG}\nx\t{FLAT}\n", 2, "E_NBEST"),
        (f"-1\t{DOG}\n-2\t(S (NN dog)\n", 2, "E_UNBALANCED"),
        (f"-1\t{DOG}\n\n-2\t(S (NN a b))\n", 3, "E_MULTI_WORD"),
        (f"-1\t{DOG}\n-2\t{CAT}\n", 2, "E_NBEST_WORDS"),
        (f"-1\t{DOG} {CAT}\n", 1, "E_NBEST"),
        (f"2\tx\n-1\n{DOG}\n", 1, "E_NBEST"),
        (f"1\tx\n{DOG}\n{DOG}\n", 2, "E_NBEST"),
        (f"1\tx\n-1\n{DOG}\n{DOG}\n", 4, "E_NBEST"),
    ],
)
def test_malformed_lists_name_their_line(text: str, line: int, code: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusFormatError, match=rf"lists\.xz:{line}: ") as caught:
        read(tmp_path, text)
    assert (caught.value.code, caught.value.line) == (code, line)


def test_forms_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="blocks, bllip, plain"):
        read(tmp_path, "", form="berkeley")


@settings(max_examples=25)
@given(st.lists(st.lists(st.tuples(english_trees(annotated=False), st.floats(-9, 0)), min_size=1)))
def test_blocks_come_back(lists: list[list[tuple[Tree, float]]]) -> None:
    import tempfile

    made = []
    for number, pairs in enumerate(lists, 1):
        words = pairs[0][0].words
        own = [(tree, score) for tree, score in pairs if tree.words == words]
        made.append(NBest(str(number), tuple(Hypothesis(words, *pair) for pair in own)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lists"
        path.write_text("".join(f"{line}\n" for line in block_lines(made)))
        again = list(read_k_best_lists(path, form="blocks", options=RAW_OPTIONS))
    assert [best.hypotheses for best in again] == [best.hypotheses for best in made]


def test_a_list_longer_than_a_batch_of_the_kernel_is_one_list(tmp_path: Path) -> None:
    """The kernel reads 256 KiB at a time; each batch has labels and words of its own."""
    left = "(ROOT (S (A (B (X one)) (Y two)) (Z three)))"
    right = "(ROOT (S (C (X one)) (D (Y two) (Z three))))"
    lines = [f"{-n - 0.5}\t{left if n % 3 else right}\n" for n in range(20_000)]
    path = tmp_path / "long"
    path.write_text("".join(lines) + "\n-1\t(ROOT (NN rain))\n")
    first, second = read_packed_lists(path)
    assert first.trees is not None
    assert first.trees.first_words() == ("one", "two", "three")
    assert [*map(str, first.trees)] == [line.strip().partition("\t")[2] for line in lines]
    assert list(first.scores) == [-n - 0.5 for n in range(20_000)]
    assert second.trees is not None
    assert [*map(str, second.trees)] == ["(ROOT (NN rain))"]


@settings(max_examples=50)
@given(st.lists(english_trees(annotated=False), min_size=1, max_size=6), st.integers(1, 5))
def test_packed_trees_know_whose_words_differ(trees: list[Tree], cut: int) -> None:
    batches = [PackedTrees.from_trees(part) for part in (trees[:cut], trees[cut:]) if part]
    joined = PackedTrees.joined(batches)
    assert list(joined) == trees
    assert joined.first_words() == trees[0].words
    different = (n for n, tree in enumerate(trees) if tree.words != trees[0].words)
    assert joined.first_with_other_words() == next(different, None)


# -- lists as a parser ----------------------------------------------------------------------


def test_lists_are_a_parser(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    path.write_text(FILES["treelm"])
    parser = ParseLists(path)
    assert parser.parse("") == []
    assert [parse.score for parse in parser.parse("the dog barks", 5)] == [-1.5, -2.25]
    (best,) = parser.k_best_many([("cats", "sleep")], 1)
    assert str(best[0].tree) == f"(ROOT {CAT})"
    assert parser.parse("the dog barks", 1)[0].score == -1.5  # asked for again
    assert parser.parse_many([(), ("cats", "sleep")])[0] is None
    with pytest.raises(UsageError, match="no trees of the sentence") as caught:
        parser.parse("dogs bark")
    assert caught.value.code == "E_NO_LIST"
