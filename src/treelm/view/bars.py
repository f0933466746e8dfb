"""Text bar charts: one line per word, as long as its value."""

from __future__ import annotations

from collections.abc import Sequence

from treelm.characters import visible

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"


def draw_bars(
    words: Sequence[str], values: Sequence[float], *, width: int = 80, unit: str = ""
) -> str:
    """Return a bar chart as text: word, value, and a bar that is as long as the value is large.

    Args:
        words: One per line.
        values: 0 or more; an infinite value fills the line.
        width: Width of the whole picture in columns.
        unit: Written after the values.

    Examples:
        >>> print(draw_bars(["the", "dog"], [1.0, 2.0], width=24, unit="bits"))
        the  1.00 bits ████
        dog  2.00 bits ████████
    """
    if len(words) != len(values):
        raise ValueError(f"there are {len(words)} words and {len(values)} values")
    shown = [visible(word) for word in words]
    name = max(map(len, shown), default=0)
    numbers = [f"{value:.2f}{' ' + unit if unit else ''}" for value in values]
    number = max(map(len, numbers), default=0)
    room = max(8, width - name - number - 4)
    finite = [value for value in values if value < float("inf")]
    scale = room / max([*finite, 1e-9])
    lines = []
    for word, text, value in zip(shown, numbers, values, strict=True):
        bar = _FULL * room + "…" if value == float("inf") else _bar(max(value, 0.0) * scale)
        lines.append(f"{word:<{name}}  {text:>{number}} {bar}".rstrip())
    return "\n".join(lines)


def _bar(length: float) -> str:
    whole = int(length)
    part = _EIGHTHS[int((length - whole) * len(_EIGHTHS))]
    return (_FULL * whole + part).rstrip()
