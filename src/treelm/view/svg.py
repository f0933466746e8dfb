"""Trees drawn as self-contained SVG, with the words on one base line under the tree."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import copysign
from operator import add

from treelm.trees.tree import Tree
from treelm.view.markup import escape, escape_attribute
from treelm.view.text import EMPTY_LABEL

_PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" class="treelm" role="img" \
width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-size="{font_size}">
<title>{title}</title>
<style>{style}</style>
<rect class="treelm-page" width="{width}" height="{height}" rx="{corner}"/>
<g class="treelm-stems">
{stems}
</g>
<g class="treelm-edges">
{edges}
</g>
<g class="treelm-edges treelm-heads">
{head_edges}
</g>
<g>
{texts}
</g>
</svg>
"""

_STACK = """\
<svg xmlns="http://www.w3.org/2000/svg" class="treelm" role="img" \
width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<title>{title}</title>
{pictures}</svg>
"""
_SIZE = re.compile(r'width="([0-9.]+)" height="([0-9.]+)"')

# Class names carry the prefix because an SVG set inside an HTML page shares its style sheet.
STYLE = """
.treelm text { font-family: "Helvetica Neue", Helvetica, Arial, "Liberation Sans", "Noto Sans",
  "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; text-anchor: middle; }
.treelm .treelm-page { fill: #ffffff; }
.treelm .treelm-phrase { fill: #1e293b; font-weight: bold; }
.treelm .treelm-tag { fill: #64748b; }
.treelm .treelm-word { fill: #0f766e; font-style: italic; }
.treelm path { fill: none; stroke-linecap: round; stroke-linejoin: round; }
.treelm .treelm-edges { stroke: #94a3b8; stroke-width: 1.4; }
.treelm .treelm-heads { stroke: #c2410c; stroke-width: 2.4; }
.treelm .treelm-stems { stroke: #cbd5e1; stroke-width: 1.6; stroke-dasharray: 0.1 4.4; }
@media (prefers-color-scheme: dark) {
  .treelm .treelm-page { fill: #111827; }
  .treelm .treelm-phrase { fill: #f1f5f9; }
  .treelm .treelm-tag { fill: #94a3b8; }
  .treelm .treelm-word { fill: #5eead4; }
  .treelm .treelm-edges { stroke: #64748b; }
  .treelm .treelm-heads { stroke: #fb923c; }
  .treelm .treelm-stems { stroke: #475569; }
}
"""

_EDGE = '<path d="M{x},{y}V{end_y}"/>'
_BENT_EDGE = '<path d="M{x},{y}V{bend}H{bar_end}Q{end_x},{bend} {end_x},{bend_end}V{end_y}"/>'
_TEXT = '<text class="treelm-{kind}" x="{x}" y="{y}"{style}>{text}</text>'

# Distances in units of the font size.
_MARGIN = 1.4
_LEVEL_HEIGHT = 3.0
_WORD_DROP = 2.5
_ASCENT = 0.75
_ABOVE_TEXT = 1.05
_BELOW_TEXT = 0.42
_TEXT_CLEARANCE = 0.42
_STEM_CLEARANCE = 0.35
_SHORTEST_STEM = 0.5
_BEND_RADIUS = 0.65
_SNAP = 0.8


def draw_svg(
    tree: Tree,
    *,
    title: str | None = None,
    font_size: int = 14,
    mark_heads: bool = False,
    colours: Sequence[str] = (),
) -> str:
    """Return a picture of `tree` as an SVG element that refers to nothing outside itself.

    Parents are centred over their children and subtrees packed as close as their outlines allow
    (in the manner of Reingold and Tilford 1981), in time linear in the number of nodes. Characters
    that XML 1.0 forbids become U+FFFD.

    Args:
        tree: The tree to draw.
        title: Read by screen readers; by default the sentence.
        font_size: Size of the letters in pixels; all distances follow it.
        mark_heads: Draw the edge to each known head child heavy and coloured.
        colours: Colours of the labels, in preorder; by default those of the style.

    Examples:
        >>> picture = draw_svg(Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")]))
        >>> picture.count("<text"), "<title>Syntax tree: the dog</title>" in picture
        (5, True)
    """
    root, left, right = tree.fold(_lay_out)
    start = _MARGIN + max(left.extent_of(left.reach[-1]), left.extent_of(left.word))
    end = _MARGIN + max(right.extent_of(right.reach[-1]), right.extent_of(right.word))
    word_line = _MARGIN + _ASCENT + (tree.height - 1) * _LEVEL_HEIGHT + _WORD_DROP
    pen = _Pen(font_size, word_line, mark_heads, iter(colours))
    pen.draw(root, start)
    return _PAGE.format(
        width=pen.pixels(start + end),
        height=pen.pixels(word_line + _MARGIN + 0.25),
        corner=pen.pixels(0.6),
        font_size=font_size,
        title=escape(f"Syntax tree: {' '.join(tree.words)}" if title is None else title),
        style=STYLE,
        stems="\n".join(pen.stems),
        edges="\n".join(pen.edges),
        head_edges="\n".join(pen.head_edges),
        texts="\n".join(pen.texts),
    )


# -- text -----------------------------------------------------------------------------------

# Advances in units of the font size: the wider of Arial and DejaVu Sans, roughly, because which
# font will be found is not known here.
_ADVANCES = {
    **dict.fromkeys("ijl'|", 0.31),
    **dict.fromkeys("Ift.,:;!()[]/\\ `", 0.40),
    **dict.fromkeys('r-"*^', 0.46),
    **dict.fromkeys("ckvxysz?_J", 0.59),
    **dict.fromkeys("ABCEFKLPRSTUVXYZ", 0.72),
    **dict.fromkeys("DGHNOQ&", 0.79),
    **dict.fromkeys("+<=>~#", 0.80),
    **dict.fromkeys("mwMW%@", 1.0),
}
_OTHER_ADVANCE = 0.64
_WIDE_ADVANCE = 2 * 0.52
_BOLD_FACTOR = 1.1


def text_width(text: str, *, bold: bool = False) -> float:
    """Return an estimate of the width of `text` in units of the font size.

    Examples:
        >>> text_width("ill") < text_width("mow") < text_width("mow", bold=True)
        True
    """
    width = sum(map(_advance, text))
    return width * _BOLD_FACTOR if bold else width


@lru_cache(maxsize=4096)
def _advance(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE_ADVANCE
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0.0
    plain = unicodedata.normalize("NFD", character)[0]
    default = _ADVANCES["O"] if plain.isupper() else _OTHER_ADVANCE
    return _ADVANCES.get(plain, default)


# -- layout ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Block:
    """A subtree laid out: its root, and the offsets of the children to the right of it."""

    node: Tree
    children: list[_Block]
    offsets: list[float]


@dataclass(slots=True)
class _Side:
    """How far a subtree reaches to one side of its root, outward counted positive.

    All but `shift` is stored less `shift`, so that a move costs nothing. The line down to a word
    runs through every row under its tag; so each row holds something of each subtree, and the side
    of a parent is that of its outermost child.
    """

    #: From the lowest row up to the root.
    rows: list[float]
    #: Farthest of each row and all rows below it.
    reach: list[float]
    word: float
    stem: float = _STEM_CLEARANCE
    shift: float = 0.0

    def add_row(self, extent: float) -> None:
        row = extent - self.shift
        self.rows.append(row)
        self.reach.append(max(row, self.reach[-1]) if self.reach else row)

    def extent_of(self, stored: float) -> float:
        return stored + self.shift

    def distance_to(self, other: _Side) -> float:
        """Return how far apart two roots must be whose facing sides these are."""
        distance: float = max(map(add, reversed(self.rows), reversed(other.rows)))
        distance = max(distance, self.word + other.word)
        shared = min(len(self.rows), len(other.rows))
        for deep, shallow in ((self, other), (other, self)):
            if len(deep.rows) > shared:
                distance = max(distance, deep.reach[-1 - shared] + shallow.stem)
        return distance + self.shift + other.shift


def _lay_out(node: Tree, parts: list[tuple[_Block, _Side, _Side]]) -> tuple[_Block, _Side, _Side]:
    """Return `node` set over its laid-out children (the step of a fold), and its two sides."""
    half_label = _TEXT_CLEARANCE + text_width(_shown(node), bold=node.is_phrasal) / 2
    if node.word is not None:
        half_word = _TEXT_CLEARANCE + text_width(node.word) / 2
        left, right = _Side([], [], half_word), _Side([], [], half_word)
        offsets = []
    else:
        offsets = [0.0]
        for (_, _, facing_right), (_, facing_left, _) in pairwise(parts):
            offsets.append(offsets[-1] + facing_right.distance_to(facing_left))
        middle = _middle(offsets)
        offsets = [offset - middle for offset in offsets]
        left, right = parts[0][1], parts[-1][2]
        left.shift -= offsets[0]
        right.shift += offsets[-1]
    left.add_row(half_label)
    right.add_row(half_label)
    return _Block(node, [block for block, _, _ in parts], offsets), left, right


def _middle(offsets: list[float]) -> float:
    """Return the midpoint, or the place of an inner child close to it."""
    middle = (offsets[0] + offsets[-1]) / 2
    nearest = min(offsets[1:-1], key=lambda offset: abs(offset - middle), default=middle)
    return nearest if abs(nearest - middle) <= _SNAP else middle


def _shown(node: Tree) -> str:
    return node.label or EMPTY_LABEL


# -- drawing --------------------------------------------------------------------------------


def stack_svg(pictures: Sequence[str], *, title: str = "Syntax trees") -> str:
    """Return one picture with several of `draw_svg` below each other.

    Args:
        pictures: From top to bottom.
        title: What they show, read by screen readers.

    Examples:
        >>> one = draw_svg(Tree("NN", "dog"))
        >>> stack_svg([one, one]).count("<svg")
        3
    """
    if len(pictures) == 1:
        return pictures[0]
    width = height = 0.0
    placed = []
    for picture in pictures:
        size = _SIZE.search(picture)
        if size is None:
            raise ValueError("stack_svg takes pictures made by draw_svg")
        placed.append(picture.replace("<svg ", f'<svg y="{height:g}" ', 1))
        width = max(width, float(size[1]))
        height += float(size[2])
    return _STACK.format(
        width=f"{width:g}", height=f"{height:g}", pictures="".join(placed), title=escape(title)
    )


@dataclass(slots=True)
class _Pen:
    """Turns blocks into SVG elements; takes units of the font size, writes pixels."""

    font_size: int
    word_line: float
    mark_heads: bool
    colours: Iterator[str]
    stems: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    #: Kept separate, to be painted over the bars that they share with the others.
    head_edges: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def pixels(self, length: float) -> str:
        return f"{length * self.font_size:.1f}".removesuffix(".0")

    def draw(self, root: _Block, x: float) -> None:
        pending = [(root, x, _MARGIN + _ASCENT)]
        while pending:
            block, x, y = pending.pop()
            kind = "phrase" if block.node.is_phrasal else "tag"
            self.write(kind, x, y, _shown(block.node), next(self.colours, None))
            if block.node.word is not None:
                self.write("word", x, self.word_line, block.node.word)
                self.draw_stem(x, y)
            for place in range(len(block.children) - 1, -1, -1):
                child_x = x + block.offsets[place]
                self.draw_edge(x, child_x, y, is_head=block.node.head == place)
                pending.append((block.children[place], child_x, y + _LEVEL_HEIGHT))

    def write(self, kind: str, x: float, y: float, text: str, colour: str | None = None) -> None:
        style = "" if colour is None else f' style="fill:{escape_attribute(colour)}"'
        x_pixels, y_pixels = self.pixels(x), self.pixels(y)
        self.texts.append(
            _TEXT.format(kind=kind, x=x_pixels, y=y_pixels, style=style, text=escape(text))
        )

    def draw_stem(self, x: float, y: float) -> None:
        start, end = y + _BELOW_TEXT, self.word_line - _ABOVE_TEXT
        if end - start >= _SHORTEST_STEM:
            self.stems.append(
                _EDGE.format(x=self.pixels(x), y=self.pixels(start), end_y=self.pixels(end))
            )

    def draw_edge(self, x: float, child_x: float, y: float, *, is_head: bool) -> None:
        start, end = y + _BELOW_TEXT, y + _LEVEL_HEIGHT - _ABOVE_TEXT
        bend = (start + end) / 2
        sideways = child_x - x
        radius = min(_BEND_RADIUS, abs(sideways))
        template = _BENT_EDGE if radius * self.font_size >= 0.5 else _EDGE
        (self.head_edges if is_head and self.mark_heads else self.edges).append(
            template.format(
                x=self.pixels(x),
                y=self.pixels(start),
                bend=self.pixels(bend),
                bar_end=self.pixels(child_x - copysign(radius, sideways)),
                end_x=self.pixels(child_x),
                bend_end=self.pixels(bend + radius),
                end_y=self.pixels(end),
            )
        )
