"""Unknown-word signatures (spec 9.1)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

UNKNOWN = "<unk>"
SUFFIXES = ("ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al")


def is_letter(char: str) -> bool:
    """Letter as Python knows it."""
    return char.isalpha()


def is_lower(char: str) -> bool:
    """A lower-case letter: circled and Roman numerals of lower case are no letters."""
    return char.isalpha() and char.islower()


def is_upper_or_title(char: str) -> bool:
    """Upper or title case as Python knows them."""
    return char.isupper() or char.istitle()


def count_capitals(word: str) -> int:
    """Capitals are letters that are not lower case."""
    return sum(is_letter(char) and not is_lower(char) for char in word)


def has_digit(word: str) -> bool:
    """Any ASCII digit."""
    return any(char in "0123456789" for char in word)


def case_part(word: str, position: int, vocabulary: Collection[str]) -> str:
    """-INITC[-KNOWNLC], -CAPS, -LC or nothing."""
    capitals = count_capitals(word)
    if is_upper_or_title(word[0]):
        if position == 0 and capitals == 1:
            return "-INITC-KNOWNLC" if word.lower() in vocabulary else "-INITC"
        return "-CAPS"
    if not is_letter(word[0]) and capitals > 0:
        return "-CAPS"
    if any(is_lower(char) for char in word):
        return "-LC"
    return ""


def suffix_part(word: str) -> str:
    """English suffix; endings are compared in lower case, lengths are code points."""
    lowered = word.lower()
    if lowered.endswith("s") and len(word) >= 3:
        return "" if lowered[-2] in "siu" else "-s"
    digit_and_capital = has_digit(word) and count_capitals(word) > 0
    if len(word) >= 5 and "-" not in word and not digit_and_capital:
        for suffix in SUFFIXES:
            if lowered.endswith(suffix):
                return "-" + suffix
    return ""


def sig(
    word: str,
    position: int,
    vocabulary: Collection[str] = frozenset(),
    *,
    sig_style: Literal["full", "paper"] = "full",
    language_neutral: bool = False,
) -> str:
    """Signature of a word at a position (0 = first of the sentence)."""
    if not word:
        return UNKNOWN
    case = case_part(word, position, vocabulary)
    if sig_style == "paper" and case == "-LC":
        case = ""
    digit = "-NUM" if has_digit(word) else ""
    dash = "-DASH" if "-" in word else ""
    ending = "-" + word[-1] if language_neutral else suffix_part(word)
    parts = case + digit + dash + ending
    return "UNK" + parts if parts else UNKNOWN
