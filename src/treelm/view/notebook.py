"""How notebooks show models, scores, parser states, grammars and topics: small HTML tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from treelm.view.markup import escape
from treelm.view.surprisal_chart import WordBar, draw_surprisal

#: Rows of a table that are shown.
MOST_ROWS = 12


def html_table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], *, note: str = ""
) -> str:
    """Return a table whose cells are text.

    Examples:
        >>> html_table("Tags", ["tag", "share"], [["NN", 0.5]]).count("<td>")
        2
    """
    heads = "".join(f"<th scope='col'>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    said = f"<p>{escape(note)}</p>" if note else ""
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>{said}"
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_cell, value))
    return "" if value is None else str(value)


def model_html(system: str, details: Mapping[str, object], tasks: Iterable[str]) -> str:
    """Return what tells a model from others, and what it can do."""
    rows = [*details.items(), ("can", ", ".join(tasks))]
    return html_table(f"{system} model", ["", ""], rows)


def score_html(
    log_prob: float, kind: str, words: Sequence[tuple[str, float, bool]], end: float | None
) -> str:
    """Return a score, with a bar for the surprisal of each word where there are words.

    Args:
        log_prob: The score.
        kind: What kind of number it is.
        words: Words with their surprisal in bits, and whether they are unknown.
        end: Surprisal of the end.
    """
    name = "margin" if kind == "margin" else "log probability"
    told = f"<p>{name} {log_prob:.4f} ({escape(kind.replace('_', ' '))})</p>"
    bars = [WordBar(word, value, is_unknown=unknown) for word, value, unknown in words]
    if end is not None and bars:
        bars.append(WordBar("</s>", end))
    if not bars or not all(math.isfinite(bar.value) for bar in bars):
        return told
    return told + draw_surprisal([("surprisal", bars)], title="Surprisal of each word in bits")


def ranked_html(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[object]], what: str
) -> str:
    """Return the first rows of a table, and how many there are."""
    more = len(rows) - MOST_ROWS
    note = f"and {more} more {what}" if more > 0 else ""
    return html_table(caption, header, rows[:MOST_ROWS], note=note)
