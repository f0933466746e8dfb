"""Signatures: one line that says what made a number, in the manner of sacreBLEU."""

from __future__ import annotations


def signature(**parts: object) -> str:
    """Return ``treelm|key:value|...|v:VERSION`` for the given parts, in the order given.

    Booleans read yes and no; None is left out.

    Examples:
        >>> signature(task="parses", profile="english", strip=True).rpartition("|")[0]
        'treelm|task:parses|profile:english|strip:yes'
    """
    from treelm.version import __version__

    fields = ["treelm"]
    for key, value in parts.items():
        if value is None:
            continue
        shown = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        fields.append(f"{key}:{shown}")
    fields.append(f"v:{__version__}")
    return "|".join(fields)
