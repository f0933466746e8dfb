"""Two sentences side by side: their bars, and below them the difference of each pair of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treelm.view.axes import Axis, can_be_drawn, linear_axis
from treelm.view.chart_page import (
    MARGIN,
    TITLE_HEIGHT,
    colour_class,
    legend,
    line,
    page,
    pixels,
    text,
    tip,
)
from treelm.view.surprisal_chart import (
    BAR,
    SCALE_WIDTH,
    WordBar,
    bar_of_word,
    column_width,
    rows_of_words,
    ticks_and_grid,
)
from treelm.view.svg import text_width

_UPPER, _LOWER = 130, 90
#: A smaller difference is not drawn.
_NOTHING = 0.005
#: Colours of more and of less, as series: the second is orange, the first green.
_MORE, _LESS = 1, 0


class Pair(NamedTuple):
    """Words that stand at the same place; None where one of the sentences has no such word."""

    first: WordBar | None
    second: WordBar | None

    @property
    def difference(self) -> float | None:
        """How much higher the second is; None where a word is missing, or has no finite height."""
        if self.first is None or self.second is None:
            return None
        value = self.second.value - self.first.value
        return value if can_be_drawn(value) else None

    @property
    def shown(self) -> list[str]:
        """What is written below: one word if both are the same."""
        words = ["–" if bar is None else bar.shown for bar in self]
        return words[:1] if words[0] == words[1] else words


def draw_difference(
    names: tuple[str, str],
    pairs: Sequence[Pair],
    *,
    title: str,
    axis: str = "surprisal in bits",
    widest: float | None = None,
) -> str:
    """Return the bars of two sentences and the difference of each pair of words as SVG.

    Args:
        names: What the sentences are called.
        pairs: Their words, in order.
        title: Shown above the chart and read by screen readers.
        axis: What the heights mean.
        widest: Width in pixels at which the words go on in another row; None for one row.

    Examples:
        >>> pairs = [Pair(WordBar("the", 3.0), WordBar("the", 3.0)),
        ...          Pair(WordBar("boat", 9.0), WordBar("goat", 10.5)), Pair(None, WordBar("!", 4))]
        >>> picture = draw_difference(("A", "B"), pairs, title="boat, goat")
        >>> "boat → goat: +1.50" in picture, picture.count("<title>")
        (True, 7)
    """
    widths = [column_width(pair.shown, 2) for pair in pairs]
    rows = rows_of_words(widths, widest)
    longest = max((sum(widths[row]) for row in rows), default=0.0)
    note = f"above: {axis}; below: second minus first"
    width = max(
        320.0,
        2 * MARGIN + SCALE_WIDTH + longest,
        MARGIN + SCALE_WIDTH + text_width(note) * 12 + MARGIN,
    )
    body, legend_height = legend(names, width, markers=False)
    heights = [bar.value for pair in pairs for bar in pair if bar and can_be_drawn(bar.value)]
    changes = [pair.difference for pair in pairs if pair.difference is not None]
    upper = linear_axis(heights or [1.0], zero=True)
    # The same distance to both sides, so that more and less can be compared.
    most = max((abs(change) for change in changes), default=0.0) or 1.0
    lower = linear_axis([-most, most], zero=True, marks=3)
    top = TITLE_HEIGHT + legend_height + 26.0
    for row in rows:
        above = upper.on(top + _UPPER, top)
        words = max((len(pair.shown) for pair in pairs[row]), default=1)
        middle = top + _UPPER + 22 + 16 * words
        below = lower.on(middle + _LOWER, middle)
        body += [*ticks_and_grid(above, width), *ticks_and_grid(below, width)]
        zero = below.place(0.0)
        x = float(MARGIN + SCALE_WIDTH)
        body.append(line(x, zero, width - MARGIN, zero, "axis"))
        for pair, room in zip(pairs[row], widths[row], strict=True):
            start = x + room / 2 - BAR
            for place, bar in enumerate(pair):
                if bar is not None:
                    body += bar_of_word(bar, place, start + place * BAR, above, beside=True)
            for number, word in enumerate(pair.shown):
                y = above.start + 18 + number * 16
                body.append(text(x + room / 2, y, word, "label", anchor="middle"))
            if pair.difference is not None:
                body += _bar_of_change(pair, x + room / 2, below)
            x += room
        top = middle + _LOWER + 40
    height = top
    body.append(text(MARGIN + SCALE_WIDTH, height - 10, note, "tick"))
    described = "; ".join(
        f"{' → '.join(pair.shown)}: "
        + ("no pair" if pair.difference is None else f"{pair.difference:+.2f}")
        for pair in pairs
    )
    return page(title, described, width, height, body)


def _bar_of_change(pair: Pair, middle: float, scale: Axis) -> list[str]:
    """Return the bar of a difference: up for more, down for less."""
    change = pair.difference
    assert change is not None  # else nobody asks
    y, zero = scale.place(change), scale.place(0.0)
    place = _MORE if change > 0 else _LESS
    note = f"{' → '.join(pair.shown)}: {change:+.2f}"
    beside = min(y, zero) - 4 if change > 0 else max(y, zero) + 13
    if abs(change) < _NOTHING:
        return []
    return [
        f'<rect class="{colour_class(place)}" x="{pixels(middle - BAR / 2)}" '
        f'y="{pixels(min(y, zero))}" width="{BAR}" height="{pixels(max(abs(y - zero), 0.5))}" '
        f'rx="1.5">{tip(note)}</rect>',
        text(middle, beside, f"{change:+.1f}".replace("-", "−"), "value", anchor="middle"),
    ]
