"""What all charts share: the page, its light and dark colours, the legend, the ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from treelm.view.axes import Axis, tick_text
from treelm.view.chart_data import Reference
from treelm.view.markup import escape, escape_attribute
from treelm.view.svg import text_width

WIDTH = 720
FONT_SIZE = 13
MARGIN = 20
TITLE_HEIGHT = 34
LEGEND_HEIGHT = 26
AXIS_HEIGHT = 30
AXIS_TITLE_HEIGHT = 20
_SWATCH = 12
_LEGEND_GAP = 22

#: Fill and line of the series, light and dark; their order distinguishes them too.
_COLOURS = (
    ("#0f766e", "#2dd4bf"),
    ("#c2410c", "#fb923c"),
    ("#2563eb", "#60a5fa"),
    ("#7c3aed", "#a78bfa"),
    ("#be185d", "#f472b6"),
    ("#4d7c0f", "#a3e635"),
    ("#b45309", "#fcd34d"),
    ("#475569", "#94a3b8"),
)

#: Class, property, light, dark.
_PAINT = (
    ("page", "fill", "#ffffff", "#111827"),
    ("title", "fill", "#0f172a", "#f8fafc"),
    ("label", "fill", "#1e293b", "#e2e8f0"),
    ("tick", "fill", "#64748b", "#94a3b8"),
    ("grid", "stroke", "#e2e8f0", "#273244"),
    ("axis", "stroke", "#94a3b8", "#64748b"),
    ("interval", "stroke", "#0f172a", "#f8fafc"),
    ("reference", "stroke", "#dc2626", "#f87171"),
    ("reference-text", "fill", "#b91c1c", "#fca5a5"),
    ("value", "fill", "#475569", "#cbd5e1"),
)

_PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" class="treelm-chart" role="img" aria-label="{label}" \
width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-size="{font_size}">
<title>{title}</title>
<desc>{description}</desc>
<style>{style}</style>
<rect class="c-page" width="{width}" height="{height}" rx="8"/>
{body}
</svg>
"""


def _rules(night: int) -> str:
    lines = [f".treelm-chart .c-{name} {{ {what}: {colour[night]}; }}"
             for name, what, *colour in _PAINT]  # fmt: skip
    for place, colours in enumerate(_COLOURS):
        lines.append(f".treelm-chart .c-fill-{place} {{ fill: {colours[night]}; }}")
        lines.append(f".treelm-chart .c-line-{place} {{ stroke: {colours[night]}; }}")
    return "\n".join(lines)


# Class names carry the prefix because an SVG set inside an HTML page shares its style sheet.
STYLE = f"""
.treelm-chart text {{ font-family: "Helvetica Neue", Helvetica, Arial, "Liberation Sans",
  "Noto Sans", "Noto Sans CJK SC", sans-serif; }}
.treelm-chart .c-title {{ font-size: 15px; font-weight: bold; }}
.treelm-chart .c-tick, .treelm-chart .c-value, .treelm-chart .c-reference-text {{
  font-size: 12px; }}
.treelm-chart .c-interval {{ stroke-width: 1.4; fill: none; }}
.treelm-chart .c-curve {{ stroke-width: 2.2; fill: none; stroke-linejoin: round; }}
.treelm-chart .c-reference {{ stroke-dasharray: 5 4; stroke-width: 1.4; }}
.treelm-chart .c-dense {{ fill-opacity: 0.7; }}
{_rules(0)}
@media (prefers-color-scheme: dark) {{
{_rules(1)}
}}
"""


def page(title: str, description: str, width: float, height: float, body: Sequence[str]) -> str:
    """Return a chart as an SVG element that refers to nothing outside itself."""
    heading = text(MARGIN, MARGIN + 6, fitted(title, width - 2 * MARGIN, 15), "title", full=title)
    return _PAGE.format(
        label=escape_attribute(title),
        title=escape(title),
        description=escape(description),
        width=pixels(width),
        height=pixels(height),
        font_size=FONT_SIZE,
        style=STYLE,
        body="\n".join([heading, *body]),
    )


def pixels(length: float) -> str:
    """Return a length as written: tenths of a pixel are enough."""
    shown = f"{length:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def colour_class(place: int, kind: str = "fill") -> str:
    """Return the class that paints the series at `place`; after eight the colours repeat."""
    return f"c-{kind}-{place % len(_COLOURS)}"


def fitted(content: str, room: float, font_size: float = FONT_SIZE) -> str:
    """Return `content`, cut with an ellipsis where it is wider than `room` pixels."""
    if text_width(content) * font_size <= room + 0.5:
        return content
    width = text_width("…")
    kept = []
    for character in content:
        width += text_width(character)
        if width * font_size > room:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def text(
    x: float, y: float, content: str, kind: str, *, anchor: str = "start", full: str | None = None
) -> str:
    """Return a line of text; `full` is shown when the pointer rests on it."""
    tip = "" if full is None or full == content else f"<title>{escape(full)}</title>"
    return (
        f'<text class="c-{kind}" x="{pixels(x)}" y="{pixels(y)}" text-anchor="{anchor}">'
        f"{escape(content)}{tip}</text>"
    )


def line(x: float, y: float, end_x: float, end_y: float, kind: str) -> str:
    """Return a straight line."""
    return (
        f'<line class="c-{kind}" x1="{pixels(x)}" y1="{pixels(y)}" '
        f'x2="{pixels(end_x)}" y2="{pixels(end_y)}"/>'
    )


def marker(
    place: int, x: float, y: float, tip: str, *, size: float = 4.5, dense: bool = False
) -> str:
    """Return the mark of a point: each series has its own shape, not only its own colour."""
    paint = f"c-dense {colour_class(place)}" if dense else colour_class(place)
    left, right, top, bottom = (pixels(v) for v in (x - size, x + size, y - size, y + size))
    middle_x, middle_y = pixels(x), pixels(y)
    shapes = (
        f'<circle class="{paint}" cx="{middle_x}" cy="{middle_y}" r="{pixels(size)}">',
        f'<rect class="{paint}" x="{left}" y="{top}" width="{2 * size:g}" height="{2 * size:g}">',
        f'<path class="{paint}" d="M{middle_x},{top}L{right},{bottom}H{left}Z">',
        f'<path class="{paint}" d="M{middle_x},{top}L{right},{middle_y}L{middle_x},{bottom}'
        f'L{left},{middle_y}Z">',
    )
    opening = shapes[place % len(shapes)]
    tag = opening[1 : opening.index(" ")]
    return f"{opening}<title>{escape(tip)}</title></{tag}>"


def legend(names: Sequence[str], width: float, *, markers: bool) -> tuple[list[str], float]:
    """Return the legend below the title, in as many rows as it needs, and its height."""
    found: list[str] = []
    x, row = float(MARGIN), 0
    for place, name in enumerate(names):
        shown = fitted(name, width - 2 * MARGIN - _SWATCH - 8)
        length = _SWATCH + 7 + text_width(shown) * FONT_SIZE
        if x > MARGIN and x + length > width - MARGIN:
            x, row = float(MARGIN), row + 1
        y = TITLE_HEIGHT + row * LEGEND_HEIGHT + 16
        if markers:
            found.append(marker(place, x + _SWATCH / 2, y - 4.5, name, size=5))
        else:
            found.append(
                f'<rect class="{colour_class(place)}" x="{pixels(x)}" y="{pixels(y - 10.5)}" '
                f'width="{_SWATCH}" height="{_SWATCH}" rx="2"/>'
            )
        found.append(text(x + _SWATCH + 7, y, shown, "label", full=name))
        x += length + _LEGEND_GAP
    return found, (row + 1) * LEGEND_HEIGHT if names else 0.0


def vertical_grid(scale: Axis, top: float, bottom: float) -> list[str]:
    """Return the grid lines of a horizontal axis."""
    return [line(scale.place(tick), top, scale.place(tick), bottom, "grid") for tick in scale.ticks]


def tick_row(scale: Axis, y: float, title: str) -> list[str]:
    """Return the ticks below a horizontal axis at `y`, and its title."""
    found, taken = [], -math.inf
    for tick in scale.ticks:
        x, shown = scale.place(tick), tick_text(tick)
        half = text_width(shown) * 12 / 2
        if x - half > taken + 4:  # ticks that would touch are left out
            found.append(text(x, y + 18, shown, "tick", anchor="middle"))
            taken = x + half
    if title:
        middle = (scale.start + scale.end) / 2
        y += 18 + AXIS_TITLE_HEIGHT
        shown = fitted(title, scale.end - scale.start, 12)
        found.append(text(middle, y, shown, "tick", anchor="middle", full=title))
    return found


def reference_line(
    reference: Reference | None, scale: Axis, top: float, bottom: float
) -> list[str]:
    """Return the reference line across a bar chart, its name on top of it."""
    if reference is None:
        return []
    x = scale.place(reference.value)
    shown = fitted(reference.label, scale.end - scale.start, 12)
    half = text_width(shown) * 12 / 2
    middle = min(max(x, scale.start + half), max(scale.end - half, scale.start + half))
    return [
        line(x, top, x, bottom, "reference"),
        text(middle, top - 5, shown, "reference-text", anchor="middle", full=reference.label),
    ]


def tip(content: str) -> str:
    """Return what is shown when the pointer rests on an element."""
    return f"<title>{escape(content)}</title>"


def value_text(value: float, digits: int) -> str:
    """Return a value as written beside its bar."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    shown = f"{value:,.{digits}f}" if abs(value) < 1e9 else f"{value:.3g}"
    return shown.replace("-", "−")
