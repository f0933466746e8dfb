"""Pictures of the trees in a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from treelm.corpus.brackets import OnError, ReadOptions, ReadReport, read_packed
from treelm.corpus.files import Source
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree
from treelm.view.latex import draw_latex
from treelm.view.svg import draw_svg, stack_svg
from treelm.view.text import draw_text

PictureFormat = Literal["text", "svg", "latex"]


def draw_trees(
    source: Source,
    options: ReadOptions,
    *,
    format: PictureFormat = "text",  # noqa: A002 (the option's name everywhere)
    layout: str = "auto",
    mark_heads: bool = False,
    ascii_only: bool = False,
    width: int | None = None,
    on_error: OnError = "raise",
    report: ReadReport | None = None,
    limit: int | None = None,
    threads: int = 1,
    line_buffered: bool = False,
) -> Iterator[str]:
    """Yield pictures of the trees of a file: one per tree for text and LaTeX, one of all for SVG.

    Args:
        source: File name, or ``-``.
        options: How brackets are read.
        format: ``text``, ``svg`` or ``latex``.
        layout: Layout of text pictures.
        mark_heads: Mark head children by the rules of the profile.
        ascii_only: Draw text with plain ASCII lines.
        width: Maximum width of a text picture in columns.
        on_error: What to do with malformed trees.
        report: Filled with counts and problems.
        limit: Draw only the first trees.
        threads: Number of threads.
        line_buffered: Draw every tree as soon as it is read.
    """
    profile = load_profile(options.profile).native

    def trees() -> Iterator[Tree]:
        for batch in read_packed(
            source,
            options,
            on_error=on_error,
            report=report,
            threads=threads,
            line_buffered=line_buffered,
        ):
            yield from batch.trees(batch.native.find_heads(profile))

    chosen = islice(trees(), limit)
    if format == "svg":
        pictures = [draw_svg(tree, mark_heads=mark_heads) for tree in chosen]
        if pictures:
            yield stack_svg(pictures) + "\n"
        return
    for index, tree in enumerate(chosen):
        separator = "\n" if index else ""
        if format == "latex":
            yield f"{separator}{draw_latex(tree, mark_heads=mark_heads)}\n"
        else:
            picture = draw_text(
                tree, width=width, ascii_only=ascii_only, layout=layout, mark_heads=mark_heads
            )
            yield f"{separator}{picture}\n"
