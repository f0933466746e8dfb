"""Bar charts with intervals, alone or in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from treelm.view.axes import Axis, can_be_drawn, linear_axis
from treelm.view.chart_data import Bar, Reference
from treelm.view.chart_page import (
    AXIS_HEIGHT,
    AXIS_TITLE_HEIGHT,
    FONT_SIZE,
    MARGIN,
    TITLE_HEIGHT,
    WIDTH,
    colour_class,
    fitted,
    legend,
    line,
    page,
    pixels,
    reference_line,
    text,
    tick_row,
    tip,
    value_text,
    vertical_grid,
)
from treelm.view.svg import text_width

_BAR = 20
_BAR_IN_GROUP = 14
_ROW_GAP = 10
_GROUP_GAP = 16
_WIDEST_LABEL = 0.34


def draw_bar_chart(
    bars: Sequence[Bar],
    *,
    title: str,
    axis: str = "",
    digits: int = 2,
    reference: Reference | None = None,
    width: int = WIDTH,
) -> str:
    """Return horizontal bars with their values and intervals, one below the other.

    Args:
        bars: From top to bottom.
        title: Shown above the chart and read by screen readers.
        axis: What the values are.
        digits: Decimal places of the values.
        reference: A reference line.
        width: Width of the picture in pixels.

    Examples:
        >>> picture = draw_bar_chart([Bar("5-gram", 0.75, 0.7, 0.8)], title="Accuracy")
        >>> "<title>Accuracy</title>" in picture, picture.count('class="c-interval"')
        (True, 1)
    """
    rows = [_Row(bar.label, [(0, bar)]) for bar in bars]
    return _draw_rows(
        rows, (), title=title, axis=axis, digits=digits, reference=reference, width=width
    )


def draw_grouped_bars(
    groups: Mapping[str, Sequence[Bar]],
    *,
    title: str,
    axis: str = "",
    digits: int = 2,
    reference: Reference | None = None,
    width: int = WIDTH,
) -> str:
    """Return horizontal bars in groups, such as the accuracy of each model by phenomenon.

    Args:
        groups: For each group its bars, labelled by series; a series may be missing from a group.
        title: Shown above the chart and read by screen readers.
        axis: What the values are.
        digits: Decimal places of the values.
        reference: A reference line.
        width: Width of the picture in pixels.
    """
    names = list(dict.fromkeys(bar.label for bars in groups.values() for bar in bars))
    place = {name: number for number, name in enumerate(names)}
    rows = [
        _Row(group, sorted(((place[bar.label], bar) for bar in bars), key=lambda pair: pair[0]))
        for group, bars in groups.items()
    ]
    return _draw_rows(
        rows, names, title=title, axis=axis, digits=digits, reference=reference, width=width
    )


class _Row(NamedTuple):
    """A label at the left and the bars beside it, each with the number of its series."""

    label: str
    bars: list[tuple[int, Bar]]


def _draw_rows(
    rows: Sequence[_Row],
    names: Sequence[str],
    *,
    title: str,
    axis: str,
    digits: int,
    reference: Reference | None,
    width: int,
) -> str:
    thickness, gap = (_BAR_IN_GROUP, _GROUP_GAP) if names else (_BAR, _ROW_GAP)
    body, legend_height = legend(names, width, markers=False)
    bars = [bar for row in rows for _, bar in row.bars]
    ends = [end for bar in bars for end in bar.ends]
    room = max((text_width(row.label) * FONT_SIZE for row in rows), default=0.0)
    left = MARGIN + min(room, width * _WIDEST_LABEL) + 10
    values = [text_width(value_text(bar.value, digits)) * FONT_SIZE for bar in bars]
    scale = linear_axis([*ends, *((reference.value,) if reference else ())], zero=True)
    scale = scale.on(left, width - MARGIN - max(values, default=0.0) - 14)
    top = TITLE_HEIGHT + legend_height + (14 if reference else 0)
    heights = [max(len(row.bars), 1) * thickness + gap for row in rows]
    bottom = top + sum(heights) + gap / 2
    body += vertical_grid(scale, top, bottom)
    body += reference_line(reference, scale, top, bottom)
    y = top + gap / 2 + 2
    for row, height in zip(rows, heights, strict=True):
        middle = y + (height - gap) / 2
        shown = fitted(row.label, left - 10 - MARGIN)
        body.append(text(left - 10, middle + 4.5, shown, "label", anchor="end", full=row.label))
        for number, (place, bar) in enumerate(row.bars):
            name = bar.label if bar.label == row.label else f"{row.label}, {bar.label}"
            body += _bar(
                scale,
                bar,
                y=y + number * thickness,
                thickness=thickness,
                paint=colour_class(place),
                name=name,
                digits=digits,
            )
        y += height
    body.append(line(scale.place(0), top, scale.place(0), bottom, "axis"))
    body += tick_row(scale, bottom, axis)
    full_height = bottom + AXIS_HEIGHT + (AXIS_TITLE_HEIGHT if axis else 0)
    description = "; ".join(
        f"{row.label}, {bar.label}: {_with_interval(bar, digits)}"
        if names
        else f"{bar.label}: {_with_interval(bar, digits)}"
        for row in rows
        for _, bar in row.bars
    )
    return page(title, description, width, full_height, body)


def _bar(
    scale: Axis, bar: Bar, *, y: float, thickness: float, paint: str, name: str, digits: int
) -> list[str]:
    found = []
    reach = [scale.place(0)]
    middle = y + thickness / 2
    if can_be_drawn(bar.value):
        start, end = sorted((scale.place(0), scale.place(bar.value)))
        reach.append(end)
        found.append(
            f'<rect class="{paint}" x="{pixels(start)}" y="{pixels(y + 1)}" '
            f'width="{pixels(end - start)}" height="{pixels(thickness - 2)}" rx="2">'
            f"{tip(f'{name}: {_with_interval(bar, digits)}')}</rect>"
        )
    if bar.low is not None and bar.high is not None:
        low = scale.place(bar.low) if can_be_drawn(bar.low) else scale.start
        high = scale.place(bar.high) if can_be_drawn(bar.high) else scale.end
        reach.append(high)
        cap = thickness * 0.22
        found.append(
            f'<path class="c-interval" d="M{pixels(low)},{pixels(middle)}H{pixels(high)}'
            f"M{pixels(low)},{pixels(middle - cap)}V{pixels(middle + cap)}"
            f'M{pixels(high)},{pixels(middle - cap)}V{pixels(middle + cap)}"/>'
        )
    shown = value_text(bar.value, digits)
    found.append(text(max(reach) + 6, middle + 4.5, shown, "value"))
    return found


def _with_interval(bar: Bar, digits: int) -> str:
    shown = value_text(bar.value, digits)
    if bar.low is None or bar.high is None:
        return shown
    return f"{shown} ({value_text(bar.low, digits)} to {value_text(bar.high, digits)})"
