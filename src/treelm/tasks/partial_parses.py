"""Partial trees of sentences, as files: text, SVG, JSON, or a page with a slider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from treelm.corpus.files import Source
from treelm.models.interface.abilities import GivesPartialParses, ask_for, has_ability
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.partial_parses import PartialParses
from treelm.view.partial_parses import draw_partial_parses_svg, draw_partial_parses_text
from treelm.view.partial_parses_page import partial_parses_page
from treelm.view.picture_files import check_picture_or_text
from treelm.view.svg import stack_svg

PartialFormat = Literal["text", "svg", "html", "json"]


def partial_parser(model: LanguageModel) -> GivesPartialParses:
    """Return the model, or the first part of a mixture, that gives partial trees.

    Raises:
        UnsupportedTask: if there is none.
    """
    return next(_partial_parsers(model), None) or ask_for(
        model, GivesPartialParses, "give the partial trees of sentences"
    )


def _partial_parsers(model: LanguageModel) -> Iterator[GivesPartialParses]:
    if has_ability(model, GivesPartialParses):
        yield ask_for(model, GivesPartialParses, "give partial trees")
    for part in model.mixed_models:
        yield from _partial_parsers(part)


def partial_format(path: Source) -> PartialFormat:
    """Return the format that the name of a file asks for.

    Raises:
        UsageError: ``E_PICTURE_FORMAT`` for a picture that is not written.
    """
    check_picture_or_text(path)
    suffix = Path(path).suffix.lower()
    formats: dict[str, PartialFormat] = {".svg": "svg", ".html": "html", ".json": "json"}
    return formats.get(suffix, "text")


def partial_parses_content(found: Sequence[PartialParses], form: PartialFormat) -> bytes:
    """Return partial trees of sentences as a file has them."""
    if form == "html":
        return partial_parses_page(found).encode()
    if form == "svg":
        pictures = [draw_partial_parses_svg(each) for each in found]
        return stack_svg(pictures, title="Partial trees").encode() if pictures else b""
    if form == "json":
        content = json.dumps([each.to_dict() for each in found], ensure_ascii=False, indent=1)
        return (content + "\n").encode()
    return "".join(draw_partial_parses_text(each) + "\n\n" for each in found).encode()
