"""Pictures of trees made of characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.characters import display_width, visible
from treelm.errors import UsageError
from treelm.trees.tree import Tree
from treelm.view.text import draw_text

DOG = Tree(
    "S",
    [
        Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")], head=1),
        Tree("VP", [Tree("VBD", "barked")], head=0),
    ],
    head=1,
)
GIRL = Tree(
    "S",
    [
        Tree(
            "NP",
            [
                Tree("DT", "La"),
                Tree("NN", "nin\u0303a"),
                Tree("PP", [Tree("IN", "de"), Tree("NP", [Tree("NNP", "Málaga")])]),
            ],
        ),
        Tree("VP", [Tree("VB", "comió")]),
        Tree("PUNC", "."),
    ],
)
APPLES = Tree(
    "IP",
    [
        Tree("NP", [Tree("DP", [Tree("DT", "這"), Tree("M", "隻")]), Tree("NN", "狗")]),
        Tree("VP", [Tree("VV", "吃了"), Tree("QP", [Tree("CD", "三"), Tree("NN", "蘋果")])]),
    ],
)

PICTURES: dict[str, tuple[Tree, dict[str, Any], str]] = {
    "dog": (
        DOG,
        {},
        """\
      S
   ┌──┴───┐
   NP     VP
 ┌─┴─┐    │
 DT  NN  VBD
the dog barked""",
    ),
    "dog in ASCII": (
        DOG,
        {"ascii_only": True},
        """\
      S
   +--+---+
   NP     VP
 +-+-+    |
 DT  NN  VBD
the dog barked""",
    ),
    "dog with heads": (
        DOG,
        {"mark_heads": True},
        """\
      S
   ┌──┴───┒
   NP     VP
 ┌─┴─┒    ┃
 DT  NN  VBD
the dog barked""",
    ),
    "dog with heads in ASCII": (
        DOG,
        {"mark_heads": True, "ascii_only": True},
        """\
      S
   +--+---*
   NP     VP
 +-+-*    |
 DT  NN  VBD
the dog barked""",
    ),
    "dog indented": (
        DOG,
        {"layout": "indented"},
        """\
S
├─ NP
│  ├─ DT the
│  └─ NN dog
└─ VP ─ VBD barked""",
    ),
    "dog indented with heads": (
        DOG,
        {"layout": "indented", "mark_heads": True},
        """\
S
├─ NP
│  ├─ DT the
│  └━ NN dog
└━ VP ━ VBD barked""",
    ),
    "dog indented in ASCII": (
        DOG,
        {"layout": "indented", "ascii_only": True, "mark_heads": True},
        """\
S
+- NP
|  +- DT the
|  +* NN dog
+* VP * VBD barked""",
    ),
    "girl": (
        GIRL,
        {},
        """\
              S
    ┌─────────┴─────┬───┐
    NP              │   │
┌───┼─────┐         │   │
│   │     PP        │   │
│   │   ┌─┴──┐      │   │
│   │   │    NP     VP  │
│   │   │    │      │   │
DT  NN  IN  NNP     VB PUNC
La niña de Málaga comió .""",
    ),
    "girl in ASCII": (
        GIRL,
        {"ascii_only": True},
        """\
              S
    +---------+-----+---+
    NP              |   |
+---+-----+         |   |
|   |     PP        |   |
|   |   +-+--+      |   |
|   |   |    NP     VP  |
|   |   |    |      |   |
DT  NN  IN  NNP     VB PUNC
La niña de Málaga comió .""",
    ),
    "girl indented": (
        GIRL,
        {"layout": "indented"},
        """\
S
├─ NP
│  ├─ DT La
│  ├─ NN niña
│  └─ PP
│     ├─ IN de
│     └─ NP ─ NNP Málaga
├─ VP ─ VB comió
└─ PUNC .""",
    ),
    "girl indented in ASCII": (
        GIRL,
        {"layout": "indented", "ascii_only": True},
        """\
S
+- NP
|  +- DT La
|  +- NN niña
|  +- PP
|     +- IN de
|     +- NP - NNP Málaga
+- VP - VB comió
+- PUNC .""",
    ),
    "apples": (
        APPLES,
        {},
        """\
        IP
   ┌────┴────┐
   NP        VP
 ┌─┴──┐   ┌──┴──┐
 DP   │   │     QP
┌┴─┐  │   │   ┌─┴─┐
DT M  NN  VV  CD  NN
這 隻 狗 吃了 三 蘋果""",
    ),
    "apples in ASCII": (
        APPLES,
        {"ascii_only": True},
        """\
        IP
   +----+----+
   NP        VP
 +-+--+   +--+--+
 DP   |   |     QP
++-+  |   |   +-+-+
DT M  NN  VV  CD  NN
這 隻 狗 吃了 三 蘋果""",
    ),
    "apples indented": (
        APPLES,
        {"layout": "indented"},
        """\
IP
├─ NP
│  ├─ DP
│  │  ├─ DT 這
│  │  └─ M 隻
│  └─ NN 狗
└─ VP
   ├─ VV 吃了
   └─ QP
      ├─ CD 三
      └─ NN 蘋果""",
    ),
    "apples indented in ASCII": (
        APPLES,
        {"layout": "indented", "ascii_only": True},
        """\
IP
+- NP
|  +- DP
|  |  +- DT 這
|  |  +- M 隻
|  +- NN 狗
+- VP
   +- VV 吃了
   +- QP
      +- CD 三
      +- NN 蘋果""",
    ),
}

SENTENCE_WORDS = st.text(st.sampled_from("abz狗é\u0301"), min_size=1, max_size=9)
ANY_TREES = st.recursive(
    st.builds(Tree, st.text(st.characters(), max_size=4), st.text(st.characters(), min_size=1)),
    lambda trees: st.builds(
        Tree,
        st.text(st.characters(), max_size=8),
        st.lists(trees, min_size=1, max_size=4),
        head=st.sampled_from([None, 0]),
    ),
)
SHAPES = st.recursive(
    st.builds(Tree, st.just("X"), SENTENCE_WORDS),
    lambda trees: st.builds(Tree, st.just("X"), st.lists(trees, min_size=1, max_size=5)),
)


def chain(length: int) -> Tree:
    tree = Tree("NN", "dog")
    for _ in range(length - 1):
        tree = Tree("X", [tree])
    return tree


def numbered(shape: Tree) -> Tree:
    """Return `shape` with labels of which no two are the same."""
    count = 0

    def rename(node: Tree, children: tuple[Tree, ...]) -> Tree:
        nonlocal count
        count += 1
        # Uneven lengths make labels wider than what is below them.
        label = "N" + str(count).zfill(1 + 3 * (count % 4)) + "N"
        return Tree(label, node.word if node.word is not None else children)

    return shape.transform(rename)


def columns(line: str) -> list[str]:
    """Return what each terminal column of `line` shows; wide characters fill two."""
    cells: list[str] = []
    for character in line:
        width = display_width(character)
        if width:
            cells += [character] * width
    return cells


def label_places(lines: list[str]) -> dict[str, tuple[int, int]]:
    """Return row and middle column of every numbered label."""
    places = {}
    for row, line in enumerate(lines):
        for match in re.finditer(r"N\d+N", line):
            column = display_width(line[: match.start()]) + (len(match[0]) - 1) // 2
            places[match[0]] = (row, column)
    return places


def edges(tree: Tree) -> Iterator[tuple[Tree, Tree]]:
    for node in tree.preorder():
        for child in node.children:
            yield node, child


@pytest.mark.parametrize("name", PICTURES)
def test_text_draws_expected_picture(name: str) -> None:
    tree, options, picture = PICTURES[name]
    assert draw_text(tree, **options) == picture


def test_text_auto_takes_vertical_where_it_fits() -> None:
    assert draw_text(DOG, width=14) == draw_text(DOG, layout="vertical")
    assert draw_text(DOG, width=13) == draw_text(DOG, layout="indented")


def test_text_auto_counts_labels_wider_than_words() -> None:
    tree = Tree("A-VERY-LONG-LABEL", [Tree("X", "x")])
    assert draw_text(tree, width=16) == "A-VERY-LONG-LABEL ─ X x"
    assert draw_text(tree, width=17) == "A-VERY-LONG-LABEL\n        │\n        X\n        x"


def test_text_rejects_unknown_layout() -> None:
    with pytest.raises(UsageError) as caught:
        draw_text(DOG, layout="diagonal")
    assert caught.value.code == "E_USAGE"


def test_text_uses_only_ascii_for_lines() -> None:
    for layout in ("vertical", "indented"):
        assert draw_text(DOG, layout=layout, ascii_only=True, mark_heads=True).isascii()


def test_text_escapes_terminal_sequences() -> None:
    tree = Tree(
        "N\x07", [Tree("N\x9b", "\x1b]0;owned\x07"), Tree("", "\u202eback "), Tree("X", "\u0301")]
    )
    for layout in ("vertical", "indented"):
        picture = draw_text(tree, layout=layout)
        for hidden in (
            "\\x1b]0;owned\\x07",
            "\\u202eback\\x20",
            "N\\x07",
            "N\\x9b",
            "()",
            "◌\u0301",
        ):
            assert hidden in picture
        assert picture.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("dog", 3),
        ("狗狗", 4),
        ("ｄ", 2),
        ("e\u0301", 1),
        ("한", 2),
        ("\u1112\u1161\u11ab", 2),
        ("می\u200cشود", 5),
    ],
)
def test_text_display_width(text: str, width: int) -> None:
    assert display_width(text) == width


def test_text_visible_keeps_joiners_and_inner_blanks() -> None:
    assert visible("می\u200cشود 1\xa0000") == "می\u200cشود 1\xa0000"
    assert visible("\ud800 \U000e0041") == "\\ud800 \\U000e0041"


@given(ANY_TREES, st.booleans(), st.booleans())
def test_text_shows_every_word_and_label(tree: Tree, ascii_only: bool, mark_heads: bool) -> None:
    for layout in ("vertical", "indented"):
        picture = draw_text(tree, layout=layout, ascii_only=ascii_only, mark_heads=mark_heads)
        lines = picture.split("\n")
        assert all(line == line.rstrip() and line for line in lines)
        assert all(visible(node.label) in picture for node in tree.preorder())
        place = 0
        words = lines[-1] if layout == "vertical" else picture
        for word in tree.words:
            place = words.index(visible(word), place) + len(visible(word))


@given(SHAPES)
def test_text_edges_connect(shape: Tree) -> None:
    tree = numbered(shape)
    lines = draw_text(tree, layout="vertical").split("\n")
    grid = [columns(line) for line in lines]
    places = label_places(lines)
    for parent, child in edges(tree):
        (parent_row, parent_column), (row, column) = places[parent.label], places[child.label]
        assert grid[parent_row + 1][parent_column] in "┴┼│"
        while grid[row - 1][column] == "│" and row - 1 > parent_row:
            row -= 1
        assert row == parent_row + (1 if len(parent) == 1 else 2)
        assert len(parent) == 1 or grid[parent_row + 1][column] in "┌┬┐┼"
        first, last = (places[end.label][1] for end in (parent.children[0], parent.children[-1]))
        assert (first < parent_column < last) if len(parent) > 1 else first == parent_column


@given(SHAPES)
def test_text_words_stand_under_their_tags(shape: Tree) -> None:
    tree = numbered(shape)
    lines = draw_text(tree, layout="vertical").split("\n")
    places = label_places(lines)
    tags = [places[tag] for tag in tree.tags]
    assert {row for row, _ in tags} == {len(lines) - 2}
    starts, place = [], 0
    for word in tree.words:
        shown = word if display_width(word[0]) else "◌" + word
        place = lines[-1].index(shown, place)
        starts.append(display_width(lines[-1][:place]) + (display_width(shown) - 1) // 2)
        place += len(shown)
    assert starts == [column for _, column in tags]


@given(SHAPES)
def test_text_wastes_no_columns(shape: Tree) -> None:
    lines = draw_text(numbered(shape), layout="vertical").split("\n")
    assert any(not line.startswith(" ") for line in lines)


def test_text_draws_deep_and_flat_trees() -> None:
    deep, flat = chain(5000), Tree("S", [Tree("NN", "dog")] * 5000)
    assert len(draw_text(deep).split("\n")) == 10000
    assert draw_text(deep, layout="indented").count("X") == 4999
    assert len(draw_text(flat).split("\n")) == 4
    assert len(draw_text(flat, width=80).split("\n")) == 5001


def test_text_gives_up_early_on_wide_deep_trees() -> None:
    tree = Tree("NN", "dog")
    for _ in range(1500):
        tree = Tree("XP", [Tree("DT", "the"), tree])
    assert draw_text(tree, width=100).startswith("XP\n├─ DT the\n└─ XP\n")
