"""Charts of the playground: rows that fit a width, differences, and trees with probabilities."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest

from treelm.trees.tree import Tree
from treelm.view.bracket_tree import draw_bracket_tree
from treelm.view.difference_chart import Pair, draw_difference
from treelm.view.page_style import page_style
from treelm.view.surprisal_chart import WordBar, draw_surprisal

WORDS = [WordBar(f"word{number}", 1.0 + number % 7, number % 5 == 0) for number in range(40)]


def size(picture: str) -> tuple[float, float]:
    root = ET.fromstring(picture)
    return float(root.attrib["width"]), float(root.attrib["height"])


@pytest.mark.parametrize("widest", [360, 700, 1200])
def test_rows_of_bars_fit_the_width(widest: int) -> None:
    picture = draw_surprisal([("a", WORDS), ("b", WORDS)], title="t", widest=widest)
    one_row = draw_surprisal([("a", WORDS), ("b", WORDS)], title="t")
    assert size(picture)[0] <= widest < size(one_row)[0]
    assert size(picture)[1] > size(one_row)[1]
    # Nothing is lost: the bars, and every word once.
    assert picture.count("<rect") == one_row.count("<rect")
    assert re.findall(r">(word\d+)†?</text>", picture) == [bar.word for bar in WORDS]


def test_a_word_wider_than_the_row_has_a_row_of_its_own() -> None:
    bars = [WordBar("short", 1.0), WordBar("w" * 80, 2.0), WordBar("short", 3.0)]
    picture = draw_surprisal([("a", bars)], title="t", widest=320)
    assert picture.count('class="c-label"') == 3


@pytest.mark.parametrize("widest", [None, 360])
def test_differences_are_drawn_for_pairs_alone(widest: int | None) -> None:
    pairs = [
        Pair(WordBar("a", 2.0), WordBar("b", 5.0)),
        Pair(None, WordBar("c", 1.0)),
        Pair(WordBar("d", math.inf), WordBar("d", 1.0)),
        Pair(WordBar("e", 3.0), WordBar("e", 3.0)),
    ]
    picture = draw_difference(("A", "B"), pairs, title="t", widest=widest)
    ET.fromstring(picture)
    assert "a → b: +3.00" in picture
    assert [pair.difference for pair in pairs] == [3.0, None, None, 0.0]
    assert "nan" not in picture


def test_no_pair_at_all_is_a_picture_too() -> None:
    picture = ET.fromstring(draw_difference(("A", "B"), [], title="nothing"))
    assert picture.tag.endswith("svg")
    assert "nothing" in "".join(picture.itertext())


def test_labels_have_probabilities_unless_they_are_certain() -> None:
    tree = Tree.from_string("(S (NP (PRP I)) (VP (VBP sleep)))")
    picture = draw_bracket_tree(tree, [1.0, 0.5, 0.996, 0.001, None])
    shown = [text for text in ET.fromstring(picture).itertext() if text.strip()]
    assert {"S", "NP .50", "PRP", "VP <.01", "VBP"} <= set(shown)


def test_the_style_of_a_page_has_everything_that_pictures_have() -> None:
    sheet = page_style("[data-theme=dark]")
    picture = draw_surprisal([("a", WORDS[:1])], title="t")
    for name in set(re.findall(r'class="(c-[a-z0-9-]+)"', picture)) - {"c-label"}:
        assert sheet.count(f".{name} ") >= 2 or name == "c-title"
    assert sheet.count("{") == sheet.count("}")
