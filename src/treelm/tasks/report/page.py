"""The report as one self-contained HTML page: no network, no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET  # nosec B405

from treelm.errors import UsageError
from treelm.tasks.report.tables import NUMBERS, TextTable
from treelm.view.markup import escape, escape_attribute

_SVG = "{http://www.w3.org/2000/svg}"
#: What pictures may contain; anything else could run or load something.
_PICTURE_ELEMENTS = frozenset(
    {"svg", "title", "desc", "style", "g", "rect", "circle", "line", "path", "text", "tspan"}
)

#: The look of all pages of reports.
STYLE = """
:root { color-scheme: light dark; --page: #f8fafc; --card: #ffffff; --text: #1e293b;
  --quiet: #64748b; --line: #e2e8f0; --accent: #0f766e; --alert: #fef3c7; --alert-text: #78350f; }
@media (prefers-color-scheme: dark) { :root { --page: #0b1120; --card: #111827; --text: #e2e8f0;
  --quiet: #94a3b8; --line: #273244; --accent: #5eead4; --alert: #422006; --alert-text: #fde68a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); line-height: 1.5;
  font-family: system-ui, "Helvetica Neue", Helvetica, Arial, "Noto Sans", sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 2rem 1.2rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .7rem; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .86em;
  overflow-wrap: anywhere; }
.signature { color: var(--quiet); margin: 0; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; margin: 0 0 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .7rem .65rem .4rem; }
th, td { padding: .4rem .65rem; text-align: left; border-top: 1px solid var(--line);
  vertical-align: top; overflow-wrap: break-word; max-width: 36rem; }
thead th { color: var(--quiet); font-weight: 600; white-space: nowrap; border-top: 0; }
tbody th { font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.note { color: var(--quiet); font-size: .9rem; margin: .2rem 0; }
.warning { background: var(--alert); color: var(--alert-text); border-radius: 8px;
  padding: .6rem .9rem; margin: .5rem 0; overflow-wrap: anywhere; }
.human { border-left: 4px solid var(--accent); padding: .3rem .9rem; font-weight: 600; }
figure { margin: 0 0 1.4rem; }
figure svg { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 8px; }
figcaption { color: var(--quiet); font-size: .92rem; margin-top: .3rem; }
"""

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class Figure:
    """A picture and what it shows.

    Raises:
        UsageError: if the picture is not SVG, or could run or load something.
    """

    svg: str
    caption: str

    def __post_init__(self) -> None:
        # Entities are declared before the first element, so nothing can be expanded here.
        if not self.svg.startswith("<svg"):
            raise UsageError("a picture of the report is not SVG.")
        try:
            root = ET.fromstring(self.svg)  # nosec B314
        except ET.ParseError as error:
            raise UsageError(f"a picture of the report is not SVG ({error}).") from error
        if root.tag != f"{_SVG}svg":
            raise UsageError("a picture of the report is not SVG.")
        for element in root.iter():
            name = str(element.tag).removeprefix(_SVG)
            active = [key for key in element.attrib if "href" in key or key.startswith("on")]
            styles = [*element.attrib.values(), *(element.itertext() if name == "style" else ())]
            loads = any(map(_loads_something, styles))
            if name not in _PICTURE_ELEMENTS or active or loads:
                raise UsageError(
                    f"a picture of the report contains {escape(name)} {' '.join(active)}; pictures "
                    "must not run or load anything. Draw them with treelm.view.plots."
                )


def _loads_something(style: str) -> bool:
    return any(word in style.lower() for word in ("@import", "url(", "image-set("))


@dataclass
class Section:
    """A part of the page: a heading, and what follows it, in this order."""

    heading: str
    human: str | None = None
    warnings: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[TextTable] = ()
    notes: Sequence[str] = field(default=())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.human or self.warnings or self.figures or self.tables or self.notes)


def html_page(title: str, signature: str, sections: Sequence[Section]) -> str:
    """Return the page; texts are shown as they are, whatever they contain."""
    shown = [_section(section) for section in sections if not section.is_empty]
    named = f'<p class="signature"><code>{escape(signature)}</code></p>'
    return page_of(title, [named, *shown])


def page_of(title: str, parts: Sequence[str], style: str = "") -> str:
    """Return a page in the look of reports, which loads nothing.

    Args:
        title: Its title.
        parts: What it shows, as HTML.
        style: What is added to the style of reports.
    """
    return _PAGE.format(title=escape(title), style=STYLE + style, body="\n".join(parts))


def _section(section: Section) -> str:
    parts = [f"<section>\n<h2>{escape(section.heading)}</h2>"]
    parts += [f'<p class="warning" role="note">{escape(one)}</p>' for one in section.warnings]
    if section.human:
        parts.append(f'<p class="human">{escape(section.human)}</p>')
    parts += map(_table, section.tables)
    parts += map(_figure, section.figures)
    parts += [f'<p class="note">{escape(note)}</p>' for note in section.notes]
    return "\n".join([*parts, "</section>"])


def _figure(figure: Figure) -> str:
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    return f"<figure>\n{figure.svg.strip()}\n{caption}\n</figure>"


def _table(table: TextTable) -> str:
    kinds = [' class="number"' if column in NUMBERS else "" for column in table.columns]
    head = "".join(
        f'<th scope="col"{kind}>{escape(column)}</th>'
        for column, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "\n".join(f"<tr>{_cells(row, kinds)}</tr>" for row in table.rows)
    label = escape_attribute(table.title)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">\n<table>\n'
        f"<caption>{escape(table.title)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _cells(row: Sequence[str], kinds: Sequence[str]) -> str:
    first = f'<th scope="row"{kinds[0]}>{escape(row[0])}</th>'
    rest = (f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True))
    return first + "".join(rest)
