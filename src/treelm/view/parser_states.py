"""The states of an incremental parser, word by word: its best stacks, as text and as SVG."""

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
#: What the names of stacks mean.
_LEGEND = (
    "Bars: probability of a stack given the words so far.",
    "A/B: an A that still lacks a B. ; separates constituents, the outermost first.",
    "@...: a part of a phrase that binarization made.",
)
_BAR_WIDTH = 120


@dataclass(frozen=True, slots=True)
class ParserState:
    """The state of a parser after a word.

    Args:
        word: The word.
        surprisal: In bits.
        stacks: Names of stacks with their probabilities, the heaviest first.
    """

    word: str
    surprisal: float
    stacks: tuple[tuple[str, float], ...]


def draw_parser_states_text(states: Sequence[ParserState], *, bar_width: int = 10) -> str:
    """Return a line for each word and a line for each of its stacks.

    Examples:
        >>> stacks = (("S/VP; VB", 0.75), ("S/NP; NN", 0.25))
        >>> print(draw_parser_states_text([ParserState("meets", 1.0, stacks)], bar_width=4))
        meets  1.00 bits
           0.750 ███   S/VP; VB
           0.250 █     S/NP; NN
    """
    lines = []
    for state in states:
        lines.append(f"{state.word}  {state.surprisal:.2f} bits")
        for name, weight in state.stacks:
            lines.append(f"   {weight:.3f} {share_bar(weight, bar_width)}  {name}")
    return "\n".join(lines)


def share_bar(share: float, width: int) -> str:
    """Return a share as a bar of so many characters."""
    eighths = round(share * width * 8)
    whole, rest = divmod(min(eighths, width * 8), 8)
    return ("█" * whole + (_BLOCKS[rest] if rest else "")).ljust(width)


def draw_parser_states_svg(states: Sequence[ParserState], *, title: str) -> str:
    """Return the same as a picture: a block for each word, a bar for each stack.

    Examples:
        >>> picture = draw_parser_states_svg([ParserState("go", 2.5, (("S", 1.0),))], title="go")
        >>> "2.50 bits" in picture, picture.count("<rect")
        (True, 2)
    """
    names = [name for state in states for name, _ in state.stacks]
    widest = max((text_width(name) * FONT_SIZE for name in names), default=0.0)
    words = max((text_width(state.word) * FONT_SIZE for state in states), default=0.0)
    left = MARGIN + max(words, 60.0) + 16
    explained = max(text_width(each) * 12 for each in _LEGEND)
    width = max(360.0, left + _BAR_WIDTH + 60 + widest + MARGIN, explained + 2 * MARGIN)
    body = [
        text(MARGIN, TITLE_HEIGHT + 14 + 16 * place, each, "tick")
        for place, each in enumerate(_LEGEND)
    ]
    y = TITLE_HEIGHT + 18.0 + 16 * len(_LEGEND) + 12
    for state in states:
        body.append(text(MARGIN, y, state.word, "label"))
        body.append(text(MARGIN, y + 15, f"{state.surprisal:.2f} bits", "tick"))
        for place, (name, weight) in enumerate(state.stacks):
            row = y + place * _ROW
            length = max(1.0, weight * _BAR_WIDTH)
            body.append(
                f'<rect class="{colour_class(0)}" x="{pixels(left)}" y="{pixels(row - 11)}" '
                f'width="{pixels(length)}" height="13" rx="2">{tip(f"{name}: {weight:.4f}")}</rect>'
            )
            body.append(text(left + _BAR_WIDTH + 8, row, f"{weight:.3f}", "value"))
            body.append(text(left + _BAR_WIDTH + 56, row, name, "label"))
        y += max(2, len(state.stacks)) * _ROW + 8
    described = "; ".join(
        f"after {state.word}: " + ", ".join(f"{name} {weight:.3f}" for name, weight in state.stacks)
        for state in states
    )
    return page(title, described, width, y, body)
