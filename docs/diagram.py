"""Boxes, circles and arrows as SVG, in the fonts and colours of the charts of `treelm.view`.

Shapes are placed by their middle and are as large as their text needs; arrows end at their borders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from treelm.view.chart_page import MARGIN, TITLE_HEIGHT, colour_class, page, pixels, text
from treelm.view.svg import text_width

Point: TypeAlias = tuple[float, float]
Anchor = Literal["start", "middle", "end"]

#: Numbers of colours.
TEAL, RED = 0, 1
LINE_HEIGHT = 17.0
#: Sizes of letters, by the kinds of text that charts have.
FONT_SIZES = {"title": 15, "label": 13, "tick": 12, "value": 12}
_PADDING = (10.0, 7.0)
_LEAST_RADIUS = 19.0
#: From the middle of a line of text down to its base line, as a share of its size.
_BASE_LINE = 0.35
_HEAD_LENGTH, _HEAD_WIDTH = 8.0, 4.0

# Class names carry the prefix because an SVG set inside an HTML page shares its style sheet.
_STYLE = """\
<style>
.treelm-chart .d-shape { fill: #f1f5f9; stroke-width: 1.4; }
.treelm-chart .d-given { fill: #cbd5e1; }
.treelm-chart .d-line { fill: none; stroke-width: 1.4; stroke-linecap: round;
  stroke-linejoin: round; }
.treelm-chart .d-heavy { stroke-width: 2.6; }
.treelm-chart .d-dashed { stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
.treelm-chart .d-shape { fill: #1f2937; }
.treelm-chart .d-given { fill: #475569; }
}
</style>"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A box or a circle that has been drawn, for arrows to end at.

    Args:
        x: Its middle.
        y: Its middle.
        width: Its size.
        height: Its size.
        is_round: Whether it is a circle.
    """

    x: float
    y: float
    width: float
    height: float
    is_round: bool = False

    @property
    def left(self) -> Point:
        """The middle of its left side."""
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> Point:
        """The middle of its right side."""
        return self.x + self.width / 2, self.y

    @property
    def top(self) -> Point:
        """The middle of its upper side."""
        return self.x, self.y - self.height / 2

    @property
    def bottom(self) -> Point:
        """The middle of its lower side."""
        return self.x, self.y + self.height / 2

    def border_towards(self, point: Point) -> Point:
        """Return where the straight line from its middle to a point crosses its border."""
        across, down = point[0] - self.x, point[1] - self.y
        if self.is_round:
            share = self.width / 2 / math.hypot(across, down)
        else:
            sides = [abs(across) / (self.width / 2), abs(down) / (self.height / 2)]
            share = 1 / max(sides)
        return self.x + share * across, self.y + share * down


@dataclass
class Diagram:
    """A drawing under way.

    Args:
        title: Shown above it.
        description: What is to be seen, read by screen readers.
    """

    title: str
    description: str
    #: What is painted later lies above what is painted earlier.
    _lines: list[str] = field(default_factory=list)
    _labels: list[str] = field(default_factory=list)
    _shapes: list[str] = field(default_factory=list)
    _right: float = 0.0
    _bottom: float = 0.0

    def box(
        self,
        x: float,
        y: float,
        lines: Sequence[str],
        *,
        colour: int | None = None,
        width: float = 0.0,
        is_given: bool = False,
        is_dashed: bool = False,
        is_list: bool = False,
    ) -> Shape:
        """Draw a box with lines of text, the first of which is its name.

        Args:
            x: Its middle.
            y: Its middle.
            lines: The text.
            colour: Number of the colour of its border; grey unless given.
            width: Least width.
            is_given: Fill it as something that is known.
            is_dashed: Dash its border.
            is_list: All lines are alike, and begin at the left.
        """
        kinds = ["value" if is_list or place else "label" for place in range(len(lines))]
        widest = max(map(_width, lines, kinds))
        shape = Shape(
            x,
            y,
            max(width, widest + 2 * _PADDING[0]),
            len(lines) * LINE_HEIGHT + 2 * _PADDING[1],
        )
        left, top = shape.left[0], shape.top[1]
        paint = _paint(colour, is_given=is_given, is_dashed=is_dashed)
        self._shapes.append(
            f'<rect class="{paint}" x="{pixels(left)}" y="{pixels(top)}" '
            f'width="{pixels(shape.width)}" height="{pixels(shape.height)}" rx="6"/>'
        )
        for place, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
            middle = top + _PADDING[1] + (place + 0.5) * LINE_HEIGHT
            start = left + _PADDING[0] if is_list else x
            anchor: Anchor = "start" if is_list else "middle"
            self._shapes.append(_text(start, middle, line, kind, anchor))
        self._reach(shape)
        return shape

    @staticmethod
    def width_of(lines: Sequence[str]) -> float:
        """Return how wide a box with these lines is."""
        kinds = ["value" if place else "label" for place in range(len(lines))]
        return max(map(_width, lines, kinds)) + 2 * _PADDING[0]

    def circle(
        self, x: float, y: float, label: str, *, radius: float = 0.0, is_given: bool = False
    ) -> Shape:
        """Draw a circle with a text.

        Args:
            x: Its middle.
            y: Its middle.
            label: The text.
            radius: Least radius.
            is_given: Fill it as something that is known.
        """
        radius = max(radius, _LEAST_RADIUS, _width(label, "label") / 2 + 5)
        paint = _paint(None, is_given=is_given, is_dashed=False)
        self._shapes.append(
            f'<circle class="{paint}" cx="{pixels(x)}" cy="{pixels(y)}" r="{pixels(radius)}"/>'
        )
        self._shapes.append(_text(x, y, label, "label", "middle"))
        shape = Shape(x, y, 2 * radius, 2 * radius, is_round=True)
        self._reach(shape)
        return shape

    def text(
        self, x: float, y: float, content: str, kind: str = "tick", anchor: Anchor = "middle"
    ) -> Shape:
        """Write a line of text, and return the room it takes.

        Args:
            x: Where its anchor is.
            y: Its middle.
            content: The text.
            kind: That of charts: label, tick or value.
            anchor: Which part of it is at `x`.
        """
        width = _width(content, kind)
        shift = {"start": width / 2, "middle": 0.0, "end": -width / 2}[anchor]
        self._labels.append(_text(x, y, content, kind, anchor))
        room = Shape(x + shift, y, width, float(FONT_SIZES[kind]))
        self._reach(room)
        return room

    def explain(self, lines: Sequence[str]) -> float:
        """Write what signs mean below the title, and return where the drawing may begin."""
        for place, line in enumerate(lines):
            self.text(MARGIN, TITLE_HEIGHT + 10 + 16 * place, line, anchor="start")
        return TITLE_HEIGHT + 16.0 * len(lines) + 18

    def frame(self, shapes: Sequence[Shape], heading: str) -> Shape:
        """Draw a dashed frame around shapes, with a heading inside of it.

        Args:
            shapes: What it contains.
            heading: Written above them.
        """
        left = min(shape.left[0] for shape in shapes) - 12
        right = max(shape.right[0] for shape in shapes) + 12
        top = min(shape.top[1] for shape in shapes) - 30
        bottom = max(shape.bottom[1] for shape in shapes) + 12
        middle = (left + right) / 2
        width = max(right - left, _width(heading, "tick") + 2 * _PADDING[0])
        shape = Shape(middle, (top + bottom) / 2, width, bottom - top)
        self._lines.append(
            f'<rect class="d-line d-dashed c-axis" x="{pixels(shape.left[0])}" y="{pixels(top)}" '
            f'width="{pixels(width)}" height="{pixels(shape.height)}" rx="8"/>'
        )
        self.text(middle, top + 15, heading)
        self._reach(shape)
        return shape

    def arrow(
        self,
        start: Shape | Point,
        end: Shape | Point,
        label: str = "",
        *,
        colour: int | None = None,
        via: Point | None = None,
        is_dashed: bool = False,
        is_heavy: bool = False,
    ) -> None:
        """Draw an arrow.

        Args:
            start: Where it starts: a point, or a shape, at whose border it does.
            end: Where it ends.
            label: Written over its middle.
            colour: Number of its colour; grey unless given.
            via: It sets out for this point, and arrives from there, in a curve.
            is_dashed: Dash it.
            is_heavy: Draw it heavy.
        """
        first = start.border_towards(via or _middle(end)) if isinstance(start, Shape) else start
        last = end.border_towards(via or _middle(start)) if isinstance(end, Shape) else end
        control = via or _half_way(first, last)
        paint = colour_class(colour, "line") if colour is not None else "c-axis"
        weight = " d-heavy" if is_heavy else ""
        dashes = " d-dashed" if is_dashed else ""
        course = f"Q{_at(control)} {_at(last)}" if via else f"L{_at(last)}"
        self._lines.append(
            f'<path class="d-line {paint}{weight}{dashes}" d="M{_at(first)}{course}"/>'
        )
        self._lines.append(f'<path class="d-line {paint}{weight}" d="{_head(control, last)}"/>')
        # A curve passes half-way between the straight line and the point it bends to.
        middle = _half_way(control, _half_way(first, last))
        self._reach(Shape(*middle, 0.0, 0.0))
        if label:
            self._label(middle, label)

    def _label(self, middle: Point, label: str) -> None:
        """Write over a line, which is interrupted for it."""
        x, y = middle
        width, height = _width(label, "value") + 6, FONT_SIZES["value"] + 3.0
        self._lines.append(
            f'<rect class="c-page" x="{pixels(x - width / 2)}" y="{pixels(y - height / 2)}" '
            f'width="{pixels(width)}" height="{pixels(height)}"/>'
        )
        self.text(x, y, label, "value")

    def _reach(self, shape: Shape) -> None:
        if shape.left[0] < MARGIN - 0.5 or shape.top[1] < TITLE_HEIGHT:
            raise ValueError(f"{shape} lies outside of the drawing.")
        self._right = max(self._right, shape.right[0])
        self._bottom = max(self._bottom, shape.bottom[1])

    def svg(self) -> str:
        """Return it as an SVG element that refers to nothing outside itself."""
        width = max(self._right, MARGIN + _width(self.title, "title") * 1.1) + MARGIN
        body = [_STYLE, *self._lines, *self._labels, *self._shapes]
        return page(self.title, self.description, width, self._bottom + MARGIN, body)


def _width(content: str, kind: str) -> float:
    return text_width(content) * FONT_SIZES[kind]


def _text(x: float, middle: float, content: str, kind: str, anchor: Anchor) -> str:
    return text(x, middle + _BASE_LINE * FONT_SIZES[kind], content, kind, anchor=anchor)


def _paint(colour: int | None, *, is_given: bool, is_dashed: bool) -> str:
    border = colour_class(colour, "line") if colour is not None else "c-axis"
    given = " d-given" if is_given else ""
    return f"d-shape{given} {border}{' d-dashed' if is_dashed else ''}"


def _middle(place: Shape | Point) -> Point:
    return (place.x, place.y) if isinstance(place, Shape) else place


def _half_way(start: Point, end: Point) -> Point:
    return (start[0] + end[0]) / 2, (start[1] + end[1]) / 2


def _head(source: Point, tip: Point) -> str:
    """Return the head of an arrow that comes from somewhere."""
    across, down = tip[0] - source[0], tip[1] - source[1]
    length = math.hypot(across, down)
    across, down = across / length, down / length
    back = tip[0] - _HEAD_LENGTH * across, tip[1] - _HEAD_LENGTH * down
    left = back[0] + _HEAD_WIDTH * down, back[1] - _HEAD_WIDTH * across
    right = back[0] - _HEAD_WIDTH * down, back[1] + _HEAD_WIDTH * across
    return f"M{_at(left)}L{_at(tip)}L{_at(right)}"


def _at(point: Point) -> str:
    return f"{pixels(point[0])},{pixels(point[1])}"
