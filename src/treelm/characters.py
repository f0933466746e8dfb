"""Characters as a terminal shows them: what is safe to print, and how wide it is."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    r"""Return `text` with everything escaped that is unsafe or unseen when printed.

    Escaped are control and bidirectional characters, lone surrogates, unassigned characters, and
    blanks at either end.

    Examples:
        >>> print(visible("red\x1b[31m "))
        red\x1b[31m\x20
    """
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    first = len(text) - len(text.lstrip())
    last = len(text.rstrip())
    return "".join(
        character if first <= place < last and _is_safe(character) else _escape(character)
        for place, character in enumerate(text)
    )


def printable(text: str) -> str:
    r"""Return a message of one or more lines with everything escaped that a terminal would obey.

    Examples:
        >>> print(printable("red\x1b[31m\nline"))
        red\x1b[31m
        line
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or _is_safe(c) else _escape(c) for c in text)


def _is_safe(character: str) -> bool:
    # The joiners are format characters, yet Persian and Indic words are misspelt without them.
    return (
        character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
    )


def _escape(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def display_width(text: str) -> int:
    r"""Return the number of terminal columns that `text` fills.

    Examples:
        >>> display_width("dog"), display_width("狗"), display_width("e\u0301")
        (3, 2, 1)
    """
    return len(text) if text.isascii() else sum(map(character_width, text))


@lru_cache(maxsize=4096)
def character_width(character: str) -> int:
    """Return the number of terminal columns that one character fills."""
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    # Medial and final jamo join the syllable that their initial has opened.
    joined = "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7fb"
    if joined or character in _JOINERS or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 1
