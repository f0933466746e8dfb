"""Trees drawn with characters: upright with the words in one row, or indented like a file list."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import sub
from typing import NamedTuple

from treelm.characters import character_width, display_width, visible
from treelm.errors import UsageError
from treelm.trees.tree import Tree

LAYOUTS = ("auto", "vertical", "indented")

#: Shown for the empty label that the Penn Treebank gives to its outermost bracket.
EMPTY_LABEL = "()"

_DOTTED_CIRCLE = "\u25cc"


def draw_text(
    tree: Tree,
    *,
    width: int | None = None,
    ascii_only: bool = False,
    layout: str = "auto",
    mark_heads: bool = False,
) -> str:
    r"""Return a picture of `tree` for a fixed-width font, without a final line break.

    Control characters of words and labels are shown as escapes such as ``\x1b``, so that no
    treebank can control the terminal.

    Args:
        tree: The tree to draw.
        width: Available columns; None for no limit. It only matters for the layout ``auto``.
        ascii_only: Draw lines with ``| - +``; words and labels keep their characters.
        layout: ``vertical`` (root on top, words in one row), ``indented`` (one node per line, unary
            chains joined) or ``auto`` (vertical where that fits `width`, else indented).
        mark_heads: Draw the way down to each known head child heavy (``*`` in ASCII).

    Raises:
        UsageError: ``E_USAGE`` for a layout that does not exist.

    Examples:
        >>> noun_phrase = Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")])
        >>> tree = Tree("S", [noun_phrase, Tree("VP", [Tree("VBD", "barked")])])
        >>> print(draw_text(tree))
              S
           ┌──┴───┐
           NP     VP
         ┌─┴─┐    │
         DT  NN  VBD
        the dog barked
        >>> print(draw_text(tree, width=10, ascii_only=True))
        S
        +- NP
        |  +- DT the
        |  +- NN dog
        +- VP - VBD barked
    """
    if layout not in LAYOUTS:
        raise UsageError(f'no layout is called "{layout}". Choose one of: {", ".join(LAYOUTS)}.')
    strokes = _ASCII if ascii_only else _BOX
    if layout == "indented" or (layout == "auto" and not _may_fit(tree, width)):
        return "\n".join(_draw_indented(tree, strokes, mark_heads=mark_heads))
    lines = _paint(tree.fold(_lay_out)[0], strokes, mark_heads=mark_heads)
    if layout == "auto" and width is not None and max(map(display_width, lines)) > width:
        lines = _draw_indented(tree, strokes, mark_heads=mark_heads)
    return "\n".join(lines)


def _cell_text(text: str) -> str:
    """Return `text` as shown in the picture: safe, and never without a first column."""
    shown = visible(text) or EMPTY_LABEL
    # A bare accent would otherwise sit on whatever the picture has to the left of it.
    return shown if character_width(shown[0]) else _DOTTED_CIRCLE + shown


# -- lines ----------------------------------------------------------------------------------


class _Drops(NamedTuple):
    """How the line to one child leaves the bar under its parent."""

    first: str
    middle: str
    last: str
    under_parent: str
    down: str
    sideways: str


class _Strokes(NamedTuple):
    """The characters that lines are drawn with."""

    bar: str
    parent: str
    branch: str
    last_branch: str
    plain: _Drops
    head: _Drops

    def drops(self, *, is_head: bool) -> _Drops:
        return self.head if is_head else self.plain


_BOX = _Strokes("─", "┴", "├", "└", _Drops(*"┌┬┐┼│─"), _Drops(*"┎┰┒╁┃━"))
_ASCII = _Strokes("-", "+", "+", "+", _Drops(*"++++|-"), _Drops(*"****|*"))


# -- upright --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Block:
    """A drawn subtree: what its root shows, and the columns of its children.

    Rows are counted from the words up: words in row 0, a label of height h in row 2h - 1, and the
    bar over its children in row 2h - 2.
    """

    label: str
    word: str | None
    head: int | None
    height: int
    children: list[_Block]
    #: Columns of the children, counted from this block's own column.
    offsets: list[int]


@dataclass(slots=True)
class _Outline:
    """The outermost columns of a block, row by row, counted from the block's own column.

    Every block fills every row below its root, so the outline of a parent is the left side of its
    first child and the right side of its last. Those lists are passed on, not copied: a move only
    changes the shift, and a chain of n nodes takes O(n) time.
    """

    left: list[int]
    right: list[int]
    left_shift: int = 0
    right_shift: int = 0

    def add_row(self, first: int, last: int) -> None:
        self.left.append(first - self.left_shift)
        self.right.append(last - self.right_shift)

    def add_text(self, text: str) -> None:
        first = _first_column(text, 0)
        self.add_row(first, first + display_width(text) - 1)

    def add_stem(self, row_count: int) -> None:
        """Lead a line straight up from the root until there are `row_count` rows."""
        missing = row_count - len(self.left)
        self.left.extend([-self.left_shift] * missing)
        self.right.extend([-self.right_shift] * missing)

    def distance_to(self, right_neighbour: _Outline) -> int:
        """Return how far apart the two columns must be for one blank between the outlines."""
        overlap: int = max(map(sub, self.right, right_neighbour.left))
        return overlap + self.right_shift - right_neighbour.left_shift + 2


def _lay_out(node: Tree, parts: list[tuple[_Block, _Outline]]) -> tuple[_Block, _Outline]:
    """Return `node` set over its laid-out children (the step of a fold)."""
    label = _cell_text(node.label)
    if node.word is not None:
        word = _cell_text(node.word)
        outline = _Outline([], [])
        outline.add_text(word)
        outline.add_text(label)
        return _Block(label, word, None, 1, [], []), outline
    children = [block for block, _ in parts]
    outlines = [outline for _, outline in parts]
    height = 1 + max(child.height for child in children)
    for outline in outlines:
        outline.add_stem(2 * height - 2)
    offsets = [0]
    for outline, right_neighbour in pairwise(outlines):
        offsets.append(offsets[-1] + outline.distance_to(right_neighbour))
    middle = _middle(offsets)
    offsets = [offset - middle for offset in offsets]
    merged = _Outline(
        outlines[0].left,
        outlines[-1].right,
        outlines[0].left_shift + offsets[0],
        outlines[-1].right_shift + offsets[-1],
    )
    merged.add_row(offsets[0], offsets[-1])
    merged.add_text(label)
    return _Block(label, None, node.head, height, children, offsets), merged


def _middle(columns: list[int]) -> int:
    """Return the middle column, or that of an inner child next to it."""
    middle = (columns[0] + columns[-1]) // 2
    return next((column for column in columns[1:-1] if abs(column - middle) <= 1), middle)


def _first_column(text: str, column: int) -> int:
    """Return where `text` begins if it is centred on `column`."""
    return column - (display_width(text) - 1) // 2


def _paint(root: _Block, strokes: _Strokes, *, mark_heads: bool) -> list[str]:
    # Parents before children and left before right fills each row from left to right.
    rows: list[list[tuple[int, str]]] = [[] for _ in range(2 * root.height)]
    pending = [(root, 0, 0, "")]
    while pending:
        block, column, stem_end, stem = pending.pop()
        for row in range(2 * block.height, stem_end):
            rows[row].append((column, stem))
        label_row = 2 * block.height - 1
        rows[label_row].append((_first_column(block.label, column), block.label))
        if block.word is not None:
            rows[0].append((_first_column(block.word, column), block.word))
            continue
        head = block.head if mark_heads else None
        rows[label_row - 1].append((column + block.offsets[0], _bar(block, strokes, head)))
        for place in range(len(block.children) - 1, -1, -1):
            down = strokes.drops(is_head=place == head).down
            child_column = column + block.offsets[place]
            pending.append((block.children[place], child_column, label_row - 1, down))
    left_edge = min(row[0][0] for row in rows)
    return [_join_row(row, left_edge) for row in reversed(rows)]


def _bar(block: _Block, strokes: _Strokes, head: int | None) -> str:
    """Return the line that joins the children of `block` under its label."""
    first, last = block.offsets[0], block.offsets[-1]
    cells = [strokes.bar] * (last - first + 1)
    cells[-first] = strokes.parent
    for place, offset in enumerate(block.offsets):
        drops = strokes.drops(is_head=place == head)
        if first == last:
            cells[0] = drops.down
        elif offset == first:
            cells[0] = drops.first
        elif offset == last:
            cells[-1] = drops.last
        else:
            cells[offset - first] = drops.middle if offset else drops.under_parent
    return "".join(cells)


def _join_row(row: list[tuple[int, str]], first_column: int) -> str:
    parts: list[str] = []
    filled = first_column
    for column, text in row:
        parts += (" " * (column - filled), text)
        filled = column + display_width(text)
    return "".join(parts)


def _may_fit(tree: Tree, width: int | None) -> bool:
    """Return False where the row of words or the row of tags alone is wider than `width`.

    A tree of n words can need n * n cells, so hopeless ones must not be laid out at all.
    """
    return width is None or all(
        sum(display_width(_cell_text(text)) + 1 for text in row) - 1 <= width
        for row in (tree.words, tree.tags)
    )


# -- indented -------------------------------------------------------------------------------


def _draw_indented(tree: Tree, strokes: _Strokes, *, mark_heads: bool) -> list[str]:
    lines: list[str] = []
    pending = [(tree, "", "")]
    while pending:
        node, lead, lead_below = pending.pop()
        parts = [lead, _cell_text(node.label)]
        while len(node.children) == 1:
            drops = strokes.drops(is_head=mark_heads and node.head == 0)
            node = node.children[0]
            parts.append(f" {drops.sideways} {_cell_text(node.label)}")
        if node.word is not None:
            parts.append(f" {_cell_text(node.word)}")
        lines.append("".join(parts))
        last = len(node.children) - 1
        for place in range(last, -1, -1):
            drops = strokes.drops(is_head=mark_heads and node.head == place)
            corner = strokes.last_branch if place == last else strokes.branch
            guide = " " if place == last else strokes.plain.down
            child_lead = f"{lead_below}{corner}{drops.sideways} "
            pending.append((node.children[place], child_lead, f"{lead_below}{guide}  "))
    return lines
