"""Pictures of trees as SVG."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from tests.view.any_trees import ANY_TREES, chain

from treelm.trees.tree import Tree
from treelm.view.svg import draw_svg, text_width

SVG = "{http://www.w3.org/2000/svg}"
FONT_SIZE = 10

DOG = Tree(
    "S",
    [
        Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")], head=1),
        Tree("VP", [Tree("VBD", "barked")], head=0),
    ],
    head=1,
)


def parse(picture: str) -> ET.Element:
    return ET.fromstring(picture)


def texts(picture: str) -> list[ET.Element]:
    return list(parse(picture).iter(f"{SVG}text"))


def interval(text: ET.Element) -> tuple[float, float]:
    """Return where `text` begins and ends by the width table."""
    half = text_width(text.text or "", bold=text.get("class") == "treelm-phrase") / 2
    middle = float(text.attrib["x"])
    return middle - half * FONT_SIZE, middle + half * FONT_SIZE


def legal(text: str) -> str:
    forbidden = "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    obeyed = "[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    return re.sub(f"{forbidden}|{obeyed}", "\ufffd", text)


def test_svg_has_size_role_and_title() -> None:
    root = parse(draw_svg(DOG))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "Syntax tree: the dog barked"
    assert parse(draw_svg(DOG, title="<R & D>"))[0].text == "<R & D>"


def test_svg_refers_to_nothing_outside() -> None:
    picture = draw_svg(DOG)
    assert re.findall(r"https?://[^\s\"]+", picture) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|url\(|@import|<script", picture)


def test_svg_supports_dark_pages() -> None:
    assert "prefers-color-scheme: dark" in draw_svg(DOG)


def test_svg_writes_words_on_one_line_below_their_tags() -> None:
    by_kind = defaultdict(list)
    for text in texts(draw_svg(DOG)):
        by_kind[text.get("class")].append(text)
    assert [text.text for text in by_kind["treelm-word"]] == ["the", "dog", "barked"]
    assert [text.text for text in by_kind["treelm-tag"]] == ["DT", "NN", "VBD"]
    assert [text.text for text in by_kind["treelm-phrase"]] == ["S", "NP", "VP"]
    assert len({text.get("y") for text in by_kind["treelm-word"]}) == 1
    assert [text.get("x") for text in by_kind["treelm-word"]] == [
        text.get("x") for text in by_kind["treelm-tag"]
    ]


@pytest.mark.parametrize(("mark_heads", "count"), [(False, 0), (True, 3)])
def test_svg_marks_heads_on_request(mark_heads: bool, count: int) -> None:
    root = parse(draw_svg(DOG, mark_heads=mark_heads))
    (heads,) = (group for group in root if group.get("class") == "treelm-edges treelm-heads")
    (others,) = (group for group in root if group.get("class") == "treelm-edges")
    assert (len(heads), len(others)) == (count, 5 - count)


def test_svg_scales_with_font_size() -> None:
    small, large = (parse(draw_svg(DOG, font_size=size)) for size in (10, 20))
    for name in ("width", "height"):
        assert float(large.attrib[name]) == pytest.approx(2 * float(small.attrib[name]), abs=0.2)


def test_svg_text_width_knows_wide_and_combining_characters() -> None:
    assert text_width("狗") > 1.5 * text_width("a")
    assert text_width("e\u0301") == text_width("é") == text_width("e")


@given(ANY_TREES)
def test_svg_parses_and_shows_every_word_and_label(tree: Tree) -> None:
    shown = [text.text for text in texts(draw_svg(tree, mark_heads=True))]
    expected = []
    for node in tree.preorder():
        expected.append(legal(node.label) or "()")
        if node.word is not None:
            expected.append(legal(node.word))
    assert shown == expected


@given(ANY_TREES)
def test_svg_texts_do_not_overlap(tree: Tree) -> None:
    picture = draw_svg(tree, font_size=FONT_SIZE)
    width = float(parse(picture).attrib["width"])
    rows = defaultdict(list)
    for text in texts(picture):
        rows[text.get("y")].append(interval(text))
    for row in rows.values():
        assert row[0][0] > 0
        assert row[-1][1] < width
        # A third of the letters' size is left between texts, less what rounding takes.
        assert all(right[0] - left[1] > FONT_SIZE / 3 for left, right in pairwise(row))


@given(ANY_TREES)
def test_svg_stems_pass_between_labels(tree: Tree) -> None:
    picture = draw_svg(tree, font_size=FONT_SIZE)
    boxes = [(float(text.attrib["y"]), *interval(text)) for text in texts(picture)]
    (stems,) = (group for group in parse(picture) if group.get("class") == "treelm-stems")
    for stem in stems:
        match = re.fullmatch(r"M([\d.]+),([\d.]+)V([\d.]+)", stem.attrib["d"])
        assert match
        x, top, bottom = map(float, match.groups())
        assert not [box for box in boxes if top < box[0] < bottom and box[1] < x < box[2]]


@given(ANY_TREES)
def test_svg_parents_stand_between_their_children(tree: Tree) -> None:
    labels = (text for text in texts(draw_svg(tree)) if text.get("class") != "treelm-word")
    x_of = [float(text.attrib["x"]) for text in labels]
    # The nodes of a subtree follow each other in preorder, so sizes lead from child to child.
    sizes = [sum(1 for _ in node.preorder()) for node in tree.preorder()]
    for place, node in enumerate(tree.preorder()):
        children, child = [], place + 1
        for _ in node.children:
            children.append(x_of[child])
            child += sizes[child]
        if len(children) > 1:
            assert children[0] < x_of[place] < children[-1]
        elif children:
            assert children[0] == x_of[place]


def test_svg_draws_deep_and_flat_trees() -> None:
    branching = Tree("NN", "dog")
    for _ in range(5000):
        branching = Tree("XP", [Tree("DT", "the"), branching])
    for tree in (chain(5000), Tree("S", [Tree("NN", "dog")] * 5000), branching):
        nodes = sum(1 for _ in tree.preorder())
        assert draw_svg(tree).count("<text") == nodes + len(tree.words)
