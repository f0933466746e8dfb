"""The states of an incremental parser, word by word: its most likely ones, as text and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from treelm.view.svg import text_width

_BLOCKS = " ▏▎▍▌▋▊▉█"
_ROW = 22
_BAR_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Belief:
    """The parser states after a word.

    Args:
        word: The word.
        surprisal: In bits.
        stores: Names of parser states with their probabilities, the most likely first.
    """

    word: str
    surprisal: float
    stores: tuple[tuple[str, float], ...]


def draw_beliefs_text(beliefs: Sequence[Belief], *, bar_width: int = 10) -> str:
    """Return a line for each word and a line for each of its parser states.

    Examples:
        >>> stores = (("S/VP; VB", 0.75), ("S/NP; NN", 0.25))
        >>> print(draw_beliefs_text([Belief("meets", 1.0, stores)], bar_width=4))
        meets  1.00 bits
           0.750 ███   S/VP; VB
           0.250 █     S/NP; NN
    """
    lines = []
    for belief in beliefs:
        lines.append(f"{belief.word}  {belief.surprisal:.2f} bits")
        for name, weight in belief.stores:
            lines.append(f"   {weight:.3f} {_bar(weight, bar_width)}  {name}")
    return "\n".join(lines)


def _bar(share: float, width: int) -> str:
    eighths = round(share * width * 8)
    whole, rest = divmod(min(eighths, width * 8), 8)
    return ("█" * whole + (_BLOCKS[rest] if rest else "")).ljust(width)


def draw_beliefs_svg(beliefs: Sequence[Belief], *, title: str) -> str:
    """Return the same as a picture: a block for each word, a bar for each parser state.

    Examples:
        >>> picture = draw_beliefs_svg([Belief("go", 2.5, (("S", 1.0),))], title="go")
        >>> "2.50 bits" in picture, picture.count("<rect")
        (True, 2)
    """
    names = [name for belief in beliefs for name, _ in belief.stores]
    widest = max((text_width(name) * FONT_SIZE for name in names), default=0.0)
    words = max((text_width(belief.word) * FONT_SIZE for belief in beliefs), default=0.0)
    left = MARGIN + max(words, 60.0) + 16
    width = max(360.0, left + _BAR_WIDTH + 60 + widest + MARGIN)
    body = []
    y = TITLE_HEIGHT + 18.0
    for belief in beliefs:
        body.append(text(MARGIN, y, belief.word, "label"))
        body.append(text(MARGIN, y + 15, f"{belief.surprisal:.2f} bits", "tick"))
        for place, (name, weight) in enumerate(belief.stores):
            row = y + place * _ROW
            length = max(1.0, weight * _BAR_WIDTH)
            body.append(
                f'<rect class="{colour_class(0)}" x="{pixels(left)}" y="{pixels(row - 11)}" '
                f'width="{pixels(length)}" height="13" rx="2">{tip(f"{name}: {weight:.4f}")}</rect>'
            )
            body.append(text(left + _BAR_WIDTH + 8, row, f"{weight:.3f}", "value"))
            body.append(text(left + _BAR_WIDTH + 56, row, name, "label"))
        y += max(2, len(belief.stores)) * _ROW + 8
    described = "; ".join(
        f"after {belief.word}: "
        + ", ".join(f"{name} {weight:.3f}" for name, weight in belief.stores)
        for belief in beliefs
    )
    return page(title, described, width, y, body)
