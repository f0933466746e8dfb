"""Charts of points: curves and scatter plots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from treelm.view.axes import Axis, can_be_drawn, linear_axis, log_axis, tick_text
from treelm.view.chart_data import Point, Reference, Series
from treelm.view.chart_page import (
    AXIS_HEIGHT,
    AXIS_TITLE_HEIGHT,
    MARGIN,
    TITLE_HEIGHT,
    WIDTH,
    colour_class,
    fitted,
    legend,
    line,
    marker,
    page,
    pixels,
    text,
    tick_row,
    vertical_grid,
)
from treelm.view.svg import text_width

_PLOT_HEIGHT = 300


def draw_line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    log_x: bool = False,
    reference: Reference | None = None,
    width: int = WIDTH,
) -> str:
    """Return curves through points, such as a learning curve.

    A point that is infinite interrupts its curve.

    Args:
        series: The curves; points are joined in the order of `x`.
        title: Shown above the chart and read by screen readers.
        x_axis: What `x` is.
        y_axis: What `y` is.
        log_x: Whether equal ratios of `x` have equal lengths.
        reference: A reference line, at a value of `y`.
        width: Width of the picture in pixels.

    Raises:
        ValueError: for 0 or less on a logarithmic axis.
    """
    ordered = [
        Series(one.name, tuple(sorted(one.points, key=lambda point: point.x))) for one in series
    ]
    return _draw_points(
        ordered,
        title=title,
        axes=(x_axis, y_axis),
        log_x=log_x,
        reference=reference,
        width=width,
        joined=True,
    )


def draw_scatter(
    series: Sequence[Series],
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    log_x: bool = False,
    diagonal: bool = False,
    reference: Reference | None = None,
    width: int = WIDTH,
) -> str:
    """Return points, such as the scores of two models for each sentence.

    Args:
        series: The points; each series has its colour and its shape.
        title: Shown above the chart and read by screen readers.
        x_axis: What `x` is.
        y_axis: What `y` is.
        log_x: Whether equal ratios of `x` have equal lengths.
        diagonal: Draw the line on which both are equal; both axes are then equal.
        reference: A reference line, at a value of `y`.
        width: Width of the picture in pixels.

    Raises:
        ValueError: for 0 or less on a logarithmic axis, or such an axis with a diagonal.
    """
    if diagonal and log_x:
        raise ValueError("a diagonal needs two axes of the same kind")
    return _draw_points(
        series,
        title=title,
        axes=(x_axis, y_axis),
        log_x=log_x,
        reference=reference,
        width=width,
        diagonal=diagonal,
    )


def _draw_points(
    series: Sequence[Series],
    *,
    title: str,
    axes: tuple[str, str],
    log_x: bool,
    reference: Reference | None,
    width: int,
    joined: bool = False,
    diagonal: bool = False,
) -> str:
    x_axis, y_axis = axes
    points = [point for one in series for point in one.points if _is_drawn(point)]
    xs = [point.x for point in points]
    ys = [y for point in points for y in point[1:4] if y is not None]
    if reference:
        ys.append(reference.value)
    x_scale = log_axis(xs) if log_x else linear_axis(xs + ys if diagonal else xs)
    y_scale = linear_axis(xs + ys if diagonal else ys)
    body, legend_height = legend(
        [one.name for one in series] if len(series) > 1 else [], width, markers=True
    )
    marks = max(text_width(tick_text(tick)) for tick in y_scale.ticks) * 12
    left, right = MARGIN + 22 + marks + 8, width - MARGIN - 10
    top = TITLE_HEIGHT + legend_height + 8
    bottom = top + _PLOT_HEIGHT
    x_scale, y_scale = x_scale.on(left, right), y_scale.on(bottom, top)
    body += vertical_grid(x_scale, top, bottom)
    body += _y_axis(y_scale, left, right, y_axis)
    if diagonal:
        body.append(line(left, bottom, right, top, "reference"))
    if reference:
        y = y_scale.place(reference.value)
        body.append(line(left, y, right, y, "reference"))
    for place, one in enumerate(series):
        body += _marks_of(one, place, x_scale, y_scale, joined=joined)
    if reference:  # over the curves
        y = y_scale.place(reference.value) - 6
        shown = fitted(reference.label, right - left - 8, 12)
        body.append(text(right - 4, y, shown, "reference-text", anchor="end", full=reference.label))
    body.append(line(left, bottom, right, bottom, "axis"))
    body += tick_row(x_scale, bottom, x_axis)
    height = bottom + AXIS_HEIGHT + (AXIS_TITLE_HEIGHT if x_axis else 0)
    return page(title, _description(series, x_axis, y_axis), width, height, body)


def _is_drawn(point: Point) -> bool:
    return can_be_drawn(point.x) and can_be_drawn(point.y)


def _y_axis(scale: Axis, left: float, right: float, title: str) -> list[str]:
    found = []
    for tick in scale.ticks:
        y = scale.place(tick)
        found.append(line(left, y, right, y, "grid"))
        found.append(text(left - 8, y + 4, tick_text(tick), "tick", anchor="end"))
    if title:
        middle = (scale.start + scale.end) / 2
        shown = fitted(title, abs(scale.end - scale.start), 12)
        label = text(0, 0, shown, "tick", anchor="middle", full=title)
        found.append(
            f'<g transform="translate({MARGIN + 8} {pixels(middle)}) rotate(-90)">{label}</g>'
        )
    return found


def _marks_of(
    series: Series, place: int, x_scale: Axis, y_scale: Axis, *, joined: bool
) -> list[str]:
    found = []
    for drawn, run in groupby(series.points, key=_is_drawn):
        points = list(run)
        if not drawn:
            continue
        if joined and len(points) > 1:
            path = "L".join(
                f"{pixels(x_scale.place(point.x))},{pixels(y_scale.place(point.y))}"
                for point in points
            )
            found.append(f'<path class="c-curve {colour_class(place, "line")}" d="M{path}"/>')
        for point in points:
            found += _point(series.name, point, place, x_scale, y_scale, joined=joined)
    return found


def _point(
    name: str, point: Point, place: int, x_scale: Axis, y_scale: Axis, *, joined: bool
) -> list[str]:
    x, y = x_scale.place(point.x), y_scale.place(point.y)
    found = []
    if point.low is not None and point.high is not None:
        low = y_scale.place(point.low) if can_be_drawn(point.low) else y_scale.start
        high = y_scale.place(point.high) if can_be_drawn(point.high) else y_scale.end
        found.append(
            f'<path class="c-curve {colour_class(place, "line")}" d="M{pixels(x)},{pixels(low)}'
            f"V{pixels(high)}M{pixels(x - 4)},{pixels(low)}H{pixels(x + 4)}"
            f'M{pixels(x - 4)},{pixels(high)}H{pixels(x + 4)}"/>'
        )
    named = ", ".join(filter(None, (name, point.label)))
    shown = f"{named}: {tick_text(point.x)}, {tick_text(point.y)}"
    found.append(marker(place, x, y, shown, size=4.5 if joined else 3.5, dense=not joined))
    return found


def _description(series: Sequence[Series], x_axis: str, y_axis: str) -> str:
    """Return in words what is shown; points that cannot be drawn are mentioned."""
    drawn = sum(_is_drawn(point) for one in series for point in one.points)
    missing = sum(len(one.points) for one in series) - drawn
    names = ", ".join(one.name for one in series)
    left_out = f" {missing} infinite points are not drawn." if missing else ""
    return f"{y_axis} against {x_axis} for {names}: {drawn} points.{left_out}"
