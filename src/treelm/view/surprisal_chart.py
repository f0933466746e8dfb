"""Surprisal as bars above the words, several series side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treelm.view.axes import can_be_drawn, linear_axis, tick_text
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
_SCALE_WIDTH = 34
_BAR = 26
#: Values are written with one decimal place above bars of this width.
_VALUE_HEIGHT = 14
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
) -> str:
    """Return bars above the words of a sentence as SVG.

    Args:
        series: Names and bars, of the same number of words each: one model or condition beside
            the other. The words of the first are written, with those of others where they differ.
        title: Shown above the chart and read by screen readers.
        axis: What the heights mean.
        highest: Value that the axis reaches at least, the same for panels to be compared.

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
    widths = [
        max(
            len(series) * _BAR,
            *(text_width(word) * FONT_SIZE for word in forms),
        )
        + _GAP
        for forms in shown
    ]
    heading = min(text_width(title) * _TITLE_SIZE, _WIDEST_TITLE) + 2 * MARGIN
    width = max(320.0, 2 * MARGIN + _SCALE_WIDTH + sum(widths), heading)
    marks, legend_height = legend(names, width, markers=False)
    top = TITLE_HEIGHT + legend_height + 12 + _VALUE_HEIGHT
    bottom = top + _PLOT_HEIGHT
    drawable = [bar.value for column in words for bar in column if can_be_drawn(bar.value)]
    if highest is not None and can_be_drawn(highest):
        drawable.append(highest)
    scale = linear_axis(drawable or [1.0], zero=True).on(bottom, top)
    left = MARGIN + _SCALE_WIDTH
    body = [*marks]
    for tick in scale.ticks:
        y = scale.place(tick)
        body += [
            line(left, y, width - MARGIN, y, "grid"),
            text(left - 6, y + 4, tick_text(tick), "tick", anchor="end"),
        ]
    x = float(left)
    for column, forms, room in zip(words, shown, widths, strict=True):
        start = x + (room - len(column) * _BAR) / 2
        for place, bar in enumerate(column):
            height = bottom - scale.place(min(bar.value, scale.high))
            note = f"{bar.word}: {value_text(bar.value, 2)}{' (unknown word)' * bar.is_unknown}"
            middle = start + place * _BAR + _BAR / 2 - 1
            body.append(
                f'<rect class="{colour_class(place)}" x="{pixels(start + place * _BAR)}" '
                f'y="{pixels(bottom - height)}" width="{_BAR - 2}" '
                f'height="{pixels(max(height, 0.5))}" rx="1.5">{tip(note)}</rect>'
            )
            shown_value = value_text(bar.value, 1)
            body.append(text(middle, bottom - height - 4, shown_value, "value", anchor="middle"))
        for number, form in enumerate(forms):
            y = bottom + 18 + number * 16
            body.append(text(x + room / 2, y, form, "label", anchor="middle"))
        x += room
    lines = max(map(len, shown), default=1)
    height = bottom + _WORD_HEIGHT + 16 * (lines - 1) + 18
    has_unknown = any(bar.is_unknown for column in words for bar in column)
    note = f"{axis}; {_UNKNOWN} word unknown to the model" if has_unknown else axis
    width = max(width, left + text_width(note) * FONT_SIZE + MARGIN)
    body.append(text(left, height - 8, note, "tick"))
    described = "; ".join(
        f"{name or axis}: " + ", ".join(f"{b.shown} {value_text(b.value, 2)}" for b in bars)
        for name, bars in series
    )
    return page(title, described, width, height, body)
