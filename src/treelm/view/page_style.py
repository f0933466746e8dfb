"""The style of our pictures for a page that shows many of them and chooses light or dark itself.

Pictures carry a style of their own and follow what the system prefers. A page with a switch takes
that style out of them and has this one instead.
"""

from __future__ import annotations

from treelm.view.chart_page import STYLE as CHART_STYLE
from treelm.view.svg import STYLE as TREE_STYLE

_DARK = "@media (prefers-color-scheme: dark) {"


def page_style(dark: str) -> str:
    """Return a style sheet for all pictures.

    Args:
        dark: Selector of an ancestor that pictures have on a dark page.

    Examples:
        >>> sheet = page_style("[data-theme=dark]")
        >>> "@media" in sheet, sheet.count("[data-theme=dark] {")
        (False, 2)
    """
    parts = []
    for style in (CHART_STYLE, TREE_STYLE):
        light, _, rest = style.partition(_DARK)
        parts += [light.strip(), f"{dark} {{{rest.rstrip()}"]
    return "\n".join(parts) + "\n"
