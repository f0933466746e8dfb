"""What the subcategories of a grammar have learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from treelm.corpus.files import Source
from treelm.grammar.subcategories import Subcategory, Typical
from treelm.models.interface.abilities import HasSubcategories, ask_for
from treelm.models.registry import load


def inspect_subcategories(path: Source, symbol: str, *, limit: int = 8) -> list[Subcategory]:
    """Return the subcategories of a symbol, the most frequent first.

    Args:
        path: A model folder with a grammar.
        symbol: A label, such as ``NP``.
        limit: Maximum number of words and of rules of each.

    Raises:
        UnsupportedTask: if the model has no grammar.
        UsageError: if its grammar has no such symbol.
    """
    grammar = ask_for(load(Path(path)), HasSubcategories, "split labels into subcategories")
    return grammar.subcategories(symbol, limit=limit)


def subcategory_record(items: list[Subcategory]) -> dict[str, object]:
    """Return subcategories as a JSON object."""
    return {"subcategories": [asdict(item) for item in items]}


def subcategory_lines(items: list[Subcategory]) -> Iterator[str]:
    """Yield subcategories as readable lines."""
    for item in items:
        yield f"{item.name}  {item.share:.1%}"
        if item.words:
            yield f"  {'begins with' if item.last_words else 'words'}: {_shown(item.words)}"
        if item.last_words:
            yield f"  ends with: {_shown(item.last_words)}"
        for rule in item.rules:
            yield f"  {rule.share:7.2%}  {item.name} -> {rule.name}"


def _shown(items: tuple[Typical, ...]) -> str:
    return ", ".join(f"{item.name} {item.share:.1%}" for item in items)
