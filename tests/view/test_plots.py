"""Charts as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.view.axes import can_be_drawn, linear_axis, log_axis, tick_text
from treelm.view.plots import (
    Bar,
    Point,
    Reference,
    Series,
    draw_bar_chart,
    draw_grouped_bars,
    draw_line_chart,
    draw_scatter,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title><script>alert("1")</script> & \x00\x1b[31m \u202e\ud800 \'"'
NUMBERS = st.floats(allow_nan=False)


def parse(picture: str) -> ET.Element:
    return ET.fromstring(picture)


def marks(picture: str, tag: str, kind: str) -> list[ET.Element]:
    """Return the elements of a tag with a class."""
    return [e for e in parse(picture).iter(SVG + tag) if kind in e.get("class", "").split()]


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in parse(picture).iter(f"{SVG}text")]


def charts(label: str) -> dict[str, str]:
    """Return one chart of each kind in which every text is `label`."""
    bars = [Bar(label, 1.0, 0.5, 1.5), Bar(label + "2", math.inf)]
    series = [Series(label, (Point(1, 2, 1, 3, label), Point(3, 4))), Series("b", (Point(5, 6),))]
    mark = Reference(1.0, label)
    return {
        "bars": draw_bar_chart(bars, title=label, axis=label, reference=mark),
        "groups": draw_grouped_bars({label: bars}, title=label, axis=label, reference=mark),
        "lines": draw_line_chart(
            series, title=label, x_axis=label, y_axis=label, log_x=True, reference=mark
        ),
        "scatter": draw_scatter(series, title=label, x_axis=label, y_axis=label, reference=mark),
    }


# -- axes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "zero", "ticks"),
    [
        ([0.31, 0.87], True, (0, 0.2, 0.4, 0.6, 0.8, 1)),
        ([110, 230], False, (100, 125, 150, 175, 200, 225, 250)),
        ([-0.04, 0.03], True, (-0.04, -0.02, 0, 0.02, 0.04)),
        ([3], True, (0, 1, 2, 3)),
        ([], False, (-1, -0.5, 0, 0.5, 1)),
        ([math.inf, 2, 4], False, (2, 2.5, 3, 3.5, 4)),
    ],
)
def test_linear_axis_marks_round_numbers(
    values: list[float], zero: bool, ticks: tuple[float, ...]
) -> None:
    assert linear_axis(values, zero=zero).ticks == ticks


def test_log_axis_marks_and_places() -> None:
    axis = log_axis([1000, 40000]).on(0, 100)
    assert axis.ticks == (1000, 2000, 5000, 10000, 20000, 50000)
    assert axis.place(1000) == 0
    assert axis.place(math.sqrt(1000 * 50000)) == pytest.approx(50)
    assert log_axis([1, 1e6]).ticks == tuple(10.0**power for power in range(7))
    with pytest.raises(ValueError, match="0 or less"):
        log_axis([0, 1])


@given(st.lists(NUMBERS, max_size=8), st.booleans())
def test_linear_axis_holds_every_value(values: list[float], zero: bool) -> None:
    axis = linear_axis(values, zero=zero)
    assert axis.low < axis.high
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert 2 <= len(axis.ticks) <= 12
    room = (axis.high - axis.low) * 1e-6
    for value in filter(can_be_drawn, values):
        assert axis.low - room <= value <= axis.high + room


@given(st.lists(st.floats(1e-280, 1e280), max_size=8))
def test_log_axis_holds_every_value(values: list[float]) -> None:
    axis = log_axis(values)
    assert axis.low < axis.high
    assert all(axis.low * 0.999 <= value <= axis.high * 1.001 for value in values)
    assert len(axis.ticks) <= 12


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.25, "0.25"), (-2.0, "−2"), (50000.0, "50,000"), (1e12, "1e12"), (2e-7, "2e−7")],
)
def test_tick_text(value: float, shown: str) -> None:
    assert tick_text(value) == shown


# -- charts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", charts("x"))
@pytest.mark.parametrize("label", [HOSTILE, "", "a" * 500, "漢字" * 40, "%s {x} {{"])
def test_any_text_gives_wellformed_pictures(kind: str, label: str) -> None:
    picture = charts(label)[kind]
    root = parse(picture)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "text", "line", "path", "g", "circle",
    }  # fmt: skip
    assert not any(key.startswith("on") or "href" in key for e in root.iter() for key in e.attrib)
    assert root.get("role") == "img"
    assert root.get("aria-label") is not None
    assert root[0].tag == f"{SVG}title"
    width = float(root.attrib["width"])
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= width
    picture.encode()


@pytest.mark.parametrize("kind", charts("x"))
def test_pictures_are_the_same_each_time_and_know_the_night(kind: str) -> None:
    assert charts("x")[kind] == charts("x")[kind]
    assert "prefers-color-scheme: dark" in charts("x")[kind]
    assert "http" not in charts("x")[kind].replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_bar_lengths_are_proportional_and_start_at_zero() -> None:
    picture = draw_bar_chart([Bar("a", 1.0), Bar("b", 2.0), Bar("c", -1.0)], title="t")
    a, b, c = marks(picture, "rect", "c-fill-0")
    assert float(b.attrib["width"]) == pytest.approx(2 * float(a.attrib["width"]), abs=0.2)
    assert a.attrib["x"] == b.attrib["x"]
    left = float(c.attrib["x"]) + float(c.attrib["width"])
    assert left == pytest.approx(float(a.attrib["x"]), abs=0.11)


def test_bars_show_values_intervals_and_reference() -> None:
    picture = draw_bar_chart(
        [Bar("a", 0.75, 0.7, 0.8), Bar("b", math.inf)],
        title="t",
        axis="accuracy",
        reference=Reference(0.5, "chance"),
    )
    assert {"0.75", "∞", "chance", "accuracy", "a", "b"} <= set(texts(picture))
    assert len(marks(picture, "path", "c-interval")) == 1
    assert len(marks(picture, "line", "c-reference")) == 1
    description = parse(picture).find(f"{SVG}desc")
    assert description is not None
    assert description.text == "a: 0.75 (0.70 to 0.80); b: ∞"


def test_groups_give_a_series_the_same_colour_everywhere() -> None:
    picture = draw_grouped_bars(
        {"agreement": [Bar("m", 0.5), Bar("n", 0.6)], "polarity": [Bar("n", 0.7)]}, title="t"
    )
    # The legend has one of each, too.
    assert len(marks(picture, "rect", "c-fill-0")) == 2
    assert len(marks(picture, "rect", "c-fill-1")) == 3
    tips = [title.text for title in parse(picture).iter(f"{SVG}title")]
    assert "polarity, n: 0.70" in tips


def test_curves_are_sorted_and_interrupted_by_infinity() -> None:
    points = (Point(4, 1), Point(1, 1), Point(2, 2), Point(8, math.inf), Point(16, 3), Point(32, 3))
    picture = draw_line_chart([Series("a", points)], title="t", x_axis="x", y_axis="y", log_x=True)
    curves = marks(picture, "path", "c-line-0")
    assert [curve.attrib["d"].count("L") for curve in curves] == [2, 1]
    places = [float(circle.attrib["cx"]) for circle in marks(picture, "circle", "c-fill-0")]
    assert len(places) == 5
    assert places == sorted(places)
    description = parse(picture).find(f"{SVG}desc")
    assert description is not None
    assert "1 infinite points are not drawn" in (description.text or "")


def test_scatter_with_a_diagonal_has_equal_axes() -> None:
    series = [Series("a", (Point(-5, -50), Point(0, 10)))]
    picture = draw_scatter(series, title="t", x_axis="x", y_axis="y", diagonal=True)
    shown = texts(picture)
    for mark in ("−60", "−40", "−20", "0", "20"):
        assert shown.count(mark) == 2
    with pytest.raises(ValueError, match="diagonal"):
        draw_scatter(series, title="t", x_axis="x", y_axis="y", diagonal=True, log_x=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bar("a", math.nan),
        lambda: Bar("a", 1, 0, math.nan),
        lambda: Bar("a", 1, 0),
        lambda: Series("a", (Point(1, math.nan),)),
        lambda: Reference(math.inf, "x"),
        lambda: draw_line_chart(
            [Series("a", (Point(0, 1),))], title="t", x_axis="x", y_axis="y", log_x=True
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        make()


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=6))
def test_any_numbers_give_wellformed_pictures(pairs: list[tuple[float, float]]) -> None:
    series = [Series("a", tuple(Point(x, y) for x, y in pairs))]
    bars = [Bar(str(place), x, min(x, y), max(x, y)) for place, (x, y) in enumerate(pairs)]
    for picture in (
        draw_bar_chart(bars, title="t"),
        draw_scatter(series, title="t", x_axis="x", y_axis="y"),
        draw_line_chart(series, title="t", x_axis="x", y_axis="y"),
    ):
        assert "nan" not in picture
        assert 'inf"' not in picture
        parse(picture)
