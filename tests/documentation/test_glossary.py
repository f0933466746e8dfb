"""The glossary has every term once, explained, and every system that people may meet."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def terms() -> dict[str, str]:
    """Return the explanation of each term; a row may name several."""
    found: dict[str, str] = {}
    rows = re.findall(r"^\| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for names, explanation in rows:
        if names == "term":
            continue
        for name in re.split(r", (?![^(]*\))", names):
            assert name not in found, f"{name} is explained twice"
            found[name] = explanation
    return found


def test_every_term_is_explained_in_a_sentence() -> None:
    found = terms()
    assert len(found) >= 90
    assert [name for name, text in found.items() if len(text) < 20] == []
    assert [name for name, text in found.items() if not re.search(r"[.)]$", text.strip())] == []


def test_terms_of_the_pages_are_there() -> None:
    found = {name.lower() for name in terms()}
    assert {
        "surprisal",
        "perplexity",
        "beam",
        "head",
        "treelet",
        "hhmm",
        "topic",
        "back-off",
    } <= found
    assert {"k-best list", "n-best list", "model folder", "parser state", "lower bound"} <= found


def test_terms_stand_in_no_other_spelling_of_the_house() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert not re.search(r"\bkbest\b|\bnbest\b(?!\.md)|n-best lists? of parses", text)
