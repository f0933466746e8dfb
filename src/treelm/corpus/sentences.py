"""Sentences of raw text, found by rules and lists of abbreviations."""

from __future__ import annotations

import re

from treelm.corpus.abbreviations import (
    NEVER_FINAL,
    SENTENCE_STARTERS,
    after_joiner,
    is_listed,
    keeps_period,
)
from treelm.corpus.words import check_raw

_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_BOUNDARY = re.compile(
    r"""(?<![.!?…؟۔।॥])([.!?…؟۔।॥]++)["'”’»)\]}]*+(?=\ )|[。！？｡]++["'”’»)\]」』）》〉]*+\ ?""",
    re.VERBOSE,
)
#: An initial or the letter of a degree, as in "a B. A. or"; such letters belong together.
_INITIAL = re.compile(r"[A-Z]\.(?![\w.])")
#: What Windows wrote where Unicode has control characters: quotes, a bullet, dashes.
_WINDOWS_MARKS = {0x91 + place: mark for place, mark in enumerate("‘’“”•–—")}
_FOLLOWING = re.compile(r"(?:[-–—•*·]{1,3}+ )?+([^\w\s]{0,8}+)([^\W_]{0,32}+)")
_LIST_ITEM = re.compile(r"\(?(?:[a-z]|\d{1,3}+)\) ")
_LIST_MARKER = re.compile(r"\(?(?:\d{1,3}+(?:\.\d{1,3}+)*+|[A-Za-z]|[ivxIVX]{2,5}+)\.")


def drop_invisible(text: str) -> str:
    """Return the text without control characters, soft hyphens and direction marks."""
    if text.isprintable():
        return text
    return _INVISIBLE.sub("", text.translate(_WINDOWS_MARKS).replace("\u200b", " "))


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, by rules and lists of abbreviations.

    A sentence ends at a period, question or exclamation mark, with any closing quotes and brackets,
    when a space and something other than a lower case letter follow. A period after an
    abbreviation, an acronym or an initial ends it only before a word that commonly begins
    sentences; after a title or a list marker it never does. A Chinese or Japanese full stop always
    ends it.

    Args:
        text: One paragraph; newlines in it count as spaces.

    Returns:
        The sentences, stripped, with single spaces between words.

    Examples:
        >>> split_sentences("Dr. No left the U.S. in Jan. 1962. He didn't return.")
        ['Dr. No left the U.S. in Jan. 1962.', "He didn't return."]
        >>> split_sentences('"Stop!" he said. "Why?" She left.')
        ['"Stop!" he said.', '"Why?"', 'She left.']
    """
    check_raw(text)
    text = " ".join(drop_invisible(text).split())
    sentences: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if match[1] is None or _ends_sentence(text, start, match):
            sentences.append(text[start : match.end()].rstrip())
            start = match.end() + (match[1] is not None)
    return [*sentences, text[start:]] if start < len(text) else sentences


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    """Decide one candidate: marks, perhaps closing quotes, then a space."""
    marks = match[1]
    following = _FOLLOWING.match(text, match.end() + 1)
    punctuation, word = following.groups() if following else ("", "")
    if not word:
        return punctuation != "" and punctuation[0] not in ".,;:!?)]}'\"…”’»-–—*"
    if word[0].islower():
        return _LIST_ITEM.match(text, match.end() + 1) is not None
    if marks in ("...", "…"):
        return bool(word != "I")
    if marks != ".":
        return True
    chunk_start = max(start, text.rfind(" ", start, match.start()) + 1)
    chunk = text[chunk_start : match.end(1)]
    if chunk_start == start and _LIST_MARKER.fullmatch(chunk):
        return False
    abbreviation = after_joiner(chunk).lstrip("\"'“‘`([{«")
    if is_listed(abbreviation, NEVER_FINAL):
        return False
    if _INITIAL.fullmatch(abbreviation) and _INITIAL.match(text, match.end() + 1):
        return False
    if word in SENTENCE_STARTERS or not keeps_period(abbreviation, word):
        return True
    # A quotation, unless it is the nickname after an initial.
    return punctuation[:1] in ('"', "“") and len(abbreviation) > 2
