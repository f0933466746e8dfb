"""Drawings of definitions: arrows end at borders, texts stay apart and inside of the picture."""

from __future__ import annotations

import html
import importlib
import math
import re
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from treelm.view.svg import text_width

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.append(str(DOCS))

diagram: Any = importlib.import_module("diagram")
paper_diagrams: Any = importlib.import_module("paper_diagrams")

_TEXT = re.compile(
    r'<text class="c-(\w+)" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)</text>'
)
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
_ARROW = re.compile(r'd="M([\d.]+),([\d.]+)[LQ](?:.* )?([\d.]+),([\d.]+)"/>')
_ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}

Room = tuple[float, float, float, float]


def rooms_of(picture: str) -> dict[str, Room]:
    """Return what each text takes from left to right and from top to bottom, by text and place."""
    found = {}
    for kind, x, y, anchor, escaped in _TEXT.findall(picture):
        content = html.unescape(escaped)
        size = diagram.FONT_SIZES[kind]
        width = text_width(content, bold=kind == "title") * size
        left = float(x) - _ANCHORS[anchor] * width
        found[f"{content!r} at {x}, {y}"] = (
            left,
            left + width,
            float(y) - 0.75 * size,
            float(y) + 0.22 * size,
        )
    assert len(found) == picture.count("<text ")
    return found


def do_overlap(one: Room, other: Room) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def test_overlapping_texts_are_noticed() -> None:
    drawing = diagram.Diagram("A title", "Nothing.")
    for x in (100, 120):
        drawing.text(x, 100, "a text")
    one, other = list(rooms_of(drawing.svg()).values())[-2:]
    assert do_overlap(one, other)


@pytest.mark.parametrize("name", paper_diagrams.DIAGRAMS)
def test_texts_of_a_drawing_stay_apart_and_inside(name: str) -> None:
    picture = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    size = _SIZE.search(picture)
    assert size is not None
    width, height = map(float, size.groups())
    rooms = rooms_of(picture)
    for text, (left, right, top, bottom) in rooms.items():
        assert left >= 0, text
        assert right <= width, text
        assert top >= 0, text
        assert bottom <= height, text
    for (text, room), (other_text, other) in combinations(rooms.items(), 2):
        assert not do_overlap(room, other), (text, other_text)


def ends_of_arrow(picture: str) -> tuple[float, float, float, float]:
    """Return where the first arrow of a drawing starts and ends."""
    found = _ARROW.search(picture)
    assert found is not None
    x, y, end_x, end_y = map(float, found.groups())
    return x, y, end_x, end_y


@pytest.mark.parametrize("via", [None, (300.0, 120.0)])
def test_an_arrow_starts_and_ends_at_borders(via: tuple[float, float] | None) -> None:
    drawing = diagram.Diagram("Two shapes", "A box and a circle.")
    box = drawing.box(100, 100, ["a box", "with two lines"])
    circle = drawing.circle(300, 250, "c")
    drawing.arrow(box, circle, via=via)
    x, y, end_x, end_y = ends_of_arrow(drawing.svg())
    sides = abs(x - box.x) / (box.width / 2), abs(y - box.y) / (box.height / 2)
    assert max(sides) == pytest.approx(1, abs=0.01)
    radius = math.hypot(end_x - circle.x, end_y - circle.y)
    assert radius == pytest.approx(circle.width / 2, abs=0.1)


def test_a_box_is_as_wide_as_its_text_needs_and_a_frame_as_its_boxes() -> None:
    drawing = diagram.Diagram("Boxes", "Two boxes in a frame.")
    boxes = [drawing.box(150, 120, ["short"]), drawing.box(150, 200, ["a longer text", "below"])]
    assert boxes[0].width < boxes[1].width == drawing.width_of(["a longer text", "below"])
    frame = drawing.frame(boxes, "heading")
    assert frame.left[0] < boxes[1].left[0]
    assert frame.top[1] < boxes[0].top[1]
    assert frame.bottom[1] > boxes[1].bottom[1]
    size = _SIZE.search(drawing.svg())
    assert size is not None
    assert float(size[1]) > frame.right[0]
    assert float(size[2]) > frame.bottom[1]


def test_text_is_escaped() -> None:
    drawing = diagram.Diagram("<s> & </s>", "Signs.")
    drawing.box(100, 100, ["<s>"])
    picture = drawing.svg()
    assert "&lt;s&gt; &amp; &lt;/s&gt;" in picture
    assert "<s>" not in picture


def test_what_lies_outside_is_refused() -> None:
    drawing = diagram.Diagram("A title", "Nothing.")
    with pytest.raises(ValueError, match="outside of the drawing"):
        drawing.box(10, 100, ["too far to the left"])


def test_steps_of_a_structured_model_end_with_null_and_expose_heads() -> None:
    steps = paper_diagrams.steps_of(paper_diagrams.SUBJECT_TREE)
    assert " ".join(step.word for step in steps) == "The captain of the ferry saw the storm"
    assert all(step.moves[-1] == "null" for step in steps)
    assert steps[4].moves == ("adjoin-right NP", "adjoin-left PP", "adjoin-left NP", "null")
    assert steps[4].heads == ["NP: captain", "<s>"]
    assert steps[5].heads == ["VBD: saw", "NP: captain"]


@pytest.mark.slow
def test_the_parser_keeps_hypotheses_apart_that_a_bigram_model_does_not() -> None:
    decoder_diagrams: Any = importlib.import_module("decoder_diagrams")
    extensions, best = decoder_diagrams.search()
    kept = [each for each in extensions if each.same_as is None]
    assert [each.words[-2:] for each in kept if each.size == 4] == [
        ("saw", "the"),
        ("watched", "the"),
    ]
    assert len(kept) == 8
    assert len(extensions) == 11
    words = max((each.words for each in kept if each.number in best), key=len)
    assert " ".join(words) == "The captain saw the ferry"
