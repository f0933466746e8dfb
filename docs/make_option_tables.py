"""Write the table of options into the page of every system: ``make reference``.

The options of a system are the fields of its configuration, and are described nowhere else.
"""

from __future__ import annotations

import re
from pathlib import Path

from treelm.models.interface.config import Option, options_of
from treelm.models.registry import SYSTEMS, System

PAGES = Path(__file__).resolve().parent / "systems"
START, END = "<!-- options: made by `make reference` -->", "<!-- end of options -->"

_REGION = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
_BOUNDS = {"least": "at least", "above": "above", "most": "at most", "below": "below"}


def page_of(system: System) -> Path:
    """Return the page of a system."""
    return PAGES / f"{system.name.replace('_', '-')}.md"


def table(system: System) -> str:
    """Return the options of a system as a table between two marks."""
    rows = [f"| `{each.name}` | {_default(each)} | {_meaning(each)} |" for each in options(system)]
    head = ("| option | default | meaning |", "|---|---|---|")
    return "\n".join((START, "", *head, *rows, "", END))


def options(system: System) -> tuple[Option, ...]:
    """Return the options of a system."""
    return options_of(system.config_class)


def _default(option: Option) -> str:
    if option.is_required:
        return "required"
    value = option.default
    if isinstance(value, tuple):
        return f"`{' '.join(map(str, value))}`"
    return "" if value is None else f"`{value}`"


def _meaning(option: Option) -> str:
    limits = " and ".join(
        f"{_BOUNDS[name]} {end if isinstance(end, int) else format(end, 'g')}"
        for name, end in option.bounds.items()
    )
    text = option.help.replace("|", "\\|")
    return f"{text} ({limits[0].upper()}{limits[1:]}.)" if limits else text


def with_table(text: str, system: System) -> str:
    """Return a page with the table of today."""
    return _REGION.sub(lambda _: table(system), text)


def main() -> None:
    """Write all pages."""
    for system in SYSTEMS.values():
        page = page_of(system)
        page.write_text(with_table(page.read_text(encoding="utf-8"), system), encoding="utf-8")


if __name__ == "__main__":
    main()
