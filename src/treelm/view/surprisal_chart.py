"""Surprisal as bars above the words, several series side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from treelm.view.axes import Axis, can_be_drawn, linear_axis, tick_text
from treelm.view.chart_page import (
    FONT_SIZE,
    MARGIN,
    TITLE_HEIGHT,
    colour_class,
    legend,
    line,
    page,
    pixels,
    text,
    tip,
    value_text,
)
from treelm.view.svg import text_width

_PLOT_HEIGHT = 180
#: The same where there are several rows.
_LOW_PLOT_HEIGHT = 110
SCALE_WIDTH = 34
BAR = 26
#: Values are written with one decimal place above bars of this width.
_VALUE_HEIGHT = 14
#: From here on a value has two digits before its point.
_TWO_DIGITS = 9.95
#: Stands after words that the model does not know.
_UNKNOWN = "†"
_GAP = 10
_WORD_HEIGHT = 26
#: The title is bold, and cut where it is wider than this.
_TITLE_SIZE, _WIDEST_TITLE = 17, 900


class WordBar(NamedTuple):
    """A word and its height, such as its surprisal in bits.

    Args:
        word: The word.
        value: The height.
        is_unknown: Whether the model does not know the word.
    """

    word: str
    value: float
    is_unknown: bool = False

    @property
    def shown(self) -> str:
        """The word as it is written below its bar."""
        return self.word + _UNKNOWN if self.is_unknown else self.word


def draw_surprisal(
    series: Sequence[tuple[str, Sequence[WordBar]]],
    *,
    title: str,
    axis: str = "surprisal in bits",
    highest: float | None = None,
    widest: float | None = None,
) -> str:
    """Return bars above the words of a sentence as SVG.

    Args:
        series: Names and bars, of the same number of words each: one model or condition beside
            the other. The words of the first are written, with those of others where they differ.
        title: Shown above the chart and read by screen readers.
        axis: What the heights mean.
        highest: Value that the axis reaches at least, the same for panels to be compared.
        widest: Width in pixels at which the words go on in another row of bars; None for one row.

    Raises:
        ValueError: if the series have different numbers of words.

    Examples:
        >>> bars = [WordBar("the", 3.5), WordBar("boat", 9.25)]
        >>> picture = draw_surprisal([("5-gram", bars)], title="the boat")
        >>> picture.count("<rect"), "boat: 9.25" in picture
        (3, True)
    """
    if len({len(bars) for _, bars in series}) != 1:
        raise ValueError("all series must have the same number of words")
    names = [name for name, _ in series] if len(series) > 1 else []
    words = list(zip(*(bars for _, bars in series), strict=True))
    shown = [list(dict.fromkeys(bar.shown for bar in column)) for column in words]
    widths = [column_width(forms, len(series)) for forms in shown]
    rows = rows_of_words(widths, widest)
    heading = min(text_width(title) * _TITLE_SIZE, _WIDEST_TITLE, widest or _WIDEST_TITLE)
    longest = max((sum(widths[row]) for row in rows), default=0.0)
    width = max(320.0, 2 * MARGIN + SCALE_WIDTH + longest, heading + 2 * MARGIN)
    has_unknown = any(bar.is_unknown for column in words for bar in column)
    notes = [f"{axis}; {_UNKNOWN} word unknown to the model" if has_unknown else axis]
    if widest is not None and has_unknown:
        notes = notes[0].split("; ")
    told = max(text_width(note) for note in notes) * FONT_SIZE
    width = max(width, MARGIN + SCALE_WIDTH + told + MARGIN)
    body, legend_height = legend(names, width, markers=False)
    drawable = [bar.value for column in words for bar in column if can_be_drawn(bar.value)]
    if highest is not None and can_be_drawn(highest):
        drawable.append(highest)
    axis_of_values = linear_axis(drawable or [1.0], zero=True)
    plot_height = _PLOT_HEIGHT if len(rows) < 2 else _LOW_PLOT_HEIGHT
    top = TITLE_HEIGHT + legend_height + 12.0
    for row in rows:
        scale = axis_of_values.on(top + _VALUE_HEIGHT + plot_height, top + _VALUE_HEIGHT)
        body += _row_of_bars(words[row], shown[row], widths[row], scale, width)
        lines = max(map(len, shown[row]), default=1)
        top = scale.start + _WORD_HEIGHT + 16 * (lines - 1)
    for note in notes:
        body.append(text(MARGIN + SCALE_WIDTH, top + 10, note, "tick"))
        top += 16
    height = top + 2
    described = "; ".join(
        f"{name or axis}: " + ", ".join(f"{b.shown} {value_text(b.value, 2)}" for b in bars)
        for name, bars in series
    )
    return page(title, described, width, height, body)


def rows_of_words(widths: Sequence[float], widest: float | None) -> list[slice]:
    """Return the words of each row of a chart that is not wider than so many pixels.

    Examples:
        >>> rows_of_words([100, 100, 100], 300)
        [slice(0, 2, None), slice(2, 3, None)]
    """
    room = math.inf if widest is None else widest - 2 * MARGIN - SCALE_WIDTH
    rows, first, used = [], 0, 0.0
    for place, width in enumerate(widths):
        if place > first and used + width > room:
            rows.append(slice(first, place))
            first, used = place, 0.0
        used += width
    return [*rows, slice(first, len(widths))]


def column_width(forms: Sequence[str], bars: int) -> float:
    """Return the room of a word, in all its forms, and of the bars above it."""
    return max(bars * BAR, *(text_width(word) * FONT_SIZE for word in forms)) + _GAP


def ticks_and_grid(scale: Axis, width: float) -> list[str]:
    """Return the axis of a row of bars."""
    left = MARGIN + SCALE_WIDTH
    body = []
    for tick in scale.ticks:
        y = scale.place(tick)
        body += [
            line(left, y, width - MARGIN, y, "grid"),
            text(left - 6, y + 4, tick_text(tick), "tick", anchor="end"),
        ]
    return body


def bar_of_word(bar: WordBar, place: int, x: float, scale: Axis, *, beside: bool) -> list[str]:
    """Return the bar of a word in the series at `place`, with its value on top.

    Args:
        bar: The word and its height.
        place: Of the series.
        x: Left edge.
        scale: Of the heights.
        beside: Whether other bars stand beside it, so that there is no room for many digits.
    """
    bottom = scale.start
    height = bottom - scale.place(min(bar.value, scale.high))
    note = f"{bar.word}: {value_text(bar.value, 2)}{' (unknown word)' * bar.is_unknown}"
    shown = value_text(bar.value, 0 if beside and bar.value >= _TWO_DIGITS else 1)
    return [
        f'<rect class="{colour_class(place)}" x="{pixels(x)}" '
        f'y="{pixels(bottom - height)}" width="{BAR - 2}" '
        f'height="{pixels(max(height, 0.5))}" rx="1.5">{tip(note)}</rect>',
        text(x + BAR / 2 - 1, bottom - height - 4, shown, "value", anchor="middle"),
    ]


def _row_of_bars(
    words: Sequence[tuple[WordBar, ...]],
    shown: Sequence[Sequence[str]],
    widths: Sequence[float],
    scale: Axis,
    width: float,
) -> list[str]:
    """Return the bars of some words, with their axis."""
    body = ticks_and_grid(scale, width)
    x = float(MARGIN + SCALE_WIDTH)
    for column, forms, room in zip(words, shown, widths, strict=True):
        start = x + (room - len(column) * BAR) / 2
        for place, bar in enumerate(column):
            body += bar_of_word(bar, place, start + place * BAR, scale, beside=len(column) > 1)
        for number, form in enumerate(forms):
            y = scale.start + 18 + number * 16
            body.append(text(x + room / 2, y, form, "label", anchor="middle"))
        x += room
    return body
