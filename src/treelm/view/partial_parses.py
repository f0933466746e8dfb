"""What a parser holds possible after each word, as text and as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator

from treelm.characters import visible
from treelm.models.interface.partial_parses import PartialParses, PartialStep, PartialTree
from treelm.trees.tree import Tree
from treelm.view.chart_page import (
    FONT_SIZE,
    MARGIN,
    TITLE_HEIGHT,
    colour_class,
    page,
    pixels,
    text,
    tip,
)
from treelm.view.parser_states import share_bar
from treelm.view.svg import draw_svg, text_width

#: What the dots in trees mean, for readers who see them for the first time.
LEGEND = "… stands for what is not decided yet: nodes in between, and all that follows."
_SIZE = re.compile(r'width="([0-9.]+)" height="([0-9.]+)"')
_TREE_FONT = 12
_GAP = 28
_BAR_WIDTH = 90
_HEADER = 40
#: Room for the bar and the marks above a tree.
_CAPTION = 34


def tree_marks(parses: PartialParses, place: int, tree: PartialTree) -> tuple[str, ...]:
    """Return what is to be said about a tree after the word at a place: where it leads."""
    marks = []
    if place > tree.start and tree.came_from is None:
        marks.append("comes back")
    if tree.wins:
        marks.append("wins")
    elif tree.survives:
        marks.append("survives")
    if not tree.continued:
        marks.append("lost" if place + 1 < len(parses.steps) else "cannot end here")
    return tuple(marks)


def step_note(parses: PartialParses, place: int) -> str:
    """Return what is to be said about a word, apart from its trees; nothing most of the time."""
    step = parses.steps[place]
    notes = []
    if step.began_again:
        notes.append("no analysis was left: the parser begins again with this word")
    if place == parses.disambiguation:
        notes.append("here the tree that wins in the end comes to the top")
    return "; ".join(notes)


def winner_note(step: PartialStep) -> str:
    """Return where the tree that wins in the end stands after a word."""
    if step.winner_rank is None:
        return "the winner has not begun"
    return f"winner: rank {step.winner_rank}, {step.winner_probability:.3f}"


def draw_partial_parses_text(parses: PartialParses, *, bar_width: int = 10) -> str:
    """Return a block for each word: its surprisal, and a line for each partial tree.

    Examples:
        >>> from treelm.models.interface.partial_parses import PartialStep, PartialTree, WholeTree
        >>> from treelm.trees.tree import Tree
        >>> tree = Tree.from_string("(ROOT (… (UH yes)))")
        >>> best = PartialTree(tree, 0.75, -1.0, 1, 0, None, True, True, True)
        >>> whole = WholeTree(Tree.from_string("(ROOT (UH yes))"), 1.0, -1.5)
        >>> step = PartialStep("yes", 1.25, (best,), 1, 0.75)
        >>> print(draw_partial_parses_text(PartialParses("hhmm", (step,), (whole,)), bar_width=4))
        1 yes  1.25 bits, winner: rank 1, 0.750
            1  0.750 ███   (ROOT (… (UH yes)))  [wins]
        whole sentence
            1  1.000 ████  (ROOT (UH yes))
        … stands for what is not decided yet: nodes in between, and all that follows.
    """
    return "\n".join(_lines(parses, bar_width))


def _lines(parses: PartialParses, bar_width: int) -> Iterator[str]:
    for place, step in enumerate(parses.steps):
        header = f"{place + 1} {visible(step.word)}  {step.surprisal:.2f} bits"
        note = step_note(parses, place)
        yield f"{header}, {winner_note(step)}" + (f" ({note})" if note else "")
        for each in step.trees:
            marks = ", ".join(tree_marks(parses, place, each))
            line = _line(each.rank, each.probability, str(each.tree), bar_width)
            yield line + (f"  [{marks}]" if marks else "")
    yield "whole sentence" + ("" if parses.whole else ": the parser found no tree")
    for rank, whole in enumerate(parses.whole, start=1):
        yield _line(rank, whole.probability, str(whole.tree), bar_width)
    yield LEGEND


def _line(rank: int, probability: float, tree: str, bar_width: int) -> str:
    bar = share_bar(probability, bar_width)
    return f"    {rank}  {probability:.3f} {bar}  {visible(tree)}"


def draw_partial_parses_svg(parses: PartialParses) -> str:
    """Return a picture: a row for each word, with its partial trees side by side.

    Examples:
        >>> draw_partial_parses_svg(PartialParses("hhmm", (), ())).startswith("<svg")
        True
    """
    title = f"Partial trees: {' '.join(parses.words)}"
    body = [text(MARGIN, TITLE_HEIGHT + 14, LEGEND, "tick")]
    y, width = TITLE_HEIGHT + 40.0, text_width(LEGEND) * 12 + 2 * MARGIN
    for place, step in enumerate(parses.steps):
        header = f"{place + 1}  {step.word}   {step.surprisal:.2f} bits, {winner_note(step)}"
        note = step_note(parses, place)
        header += f" ({note})" if note else ""
        body.append(text(MARGIN, y, header, "label"))
        width = max(width, text_width(header) * FONT_SIZE + 2 * MARGIN)
        shown = [(each.tree, each.probability, tree_marks(parses, place, each))
                 for each in step.trees]  # fmt: skip
        made, end, height = _row(shown, y + 12)
        body.extend(made)
        y, width = y + height + _HEADER, max(width, end)
    body.append(text(MARGIN, y, "Whole sentence", "label"))
    made, end, height = _row([(each.tree, each.probability, ()) for each in parses.whole], y + 12)
    body.extend(made)
    described = draw_partial_parses_text(parses)
    return page(title, described, max(width, end), y + height + MARGIN, body)


def _row(
    trees: list[tuple[Tree, float, tuple[str, ...]]], y: float
) -> tuple[list[str], float, float]:
    """Return trees side by side from `y` down, where the row ends and how high it is."""
    body: list[str] = []
    x, highest = float(MARGIN), 0.0
    for rank, (tree, probability, marks) in enumerate(trees, start=1):
        picture = draw_svg(tree, font_size=_TREE_FONT)
        size = _SIZE.search(picture)
        assert size is not None  # draw_svg writes it
        wide, high = float(size[1]), float(size[2])
        said = ", ".join(marks)
        caption = f"{rank}  {probability:.3f}"
        length = max(1.0, probability * _BAR_WIDTH)
        body.append(
            f'<rect class="{colour_class(0 if "wins" in marks else 2)}" x="{pixels(x)}" '
            f'y="{pixels(y)}" width="{pixels(length)}" height="8" rx="2">'
            f"{tip(f'{caption} {said}')}</rect>"
        )
        body.append(text(x, y + 24, f"{caption}  {said}", "value"))
        body.append(picture.replace("<svg ", f'<svg x="{pixels(x)}" y="{pixels(y + 30)}" ', 1))
        x += max(wide, _BAR_WIDTH, text_width(f"{caption}  {said}") * 12) + _GAP
        highest = max(highest, high)
    return body, x, highest + _CAPTION
