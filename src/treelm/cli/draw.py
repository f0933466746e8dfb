"""`treelm draw`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from treelm.cli.options import (
    CommonOptions,
    InputFile,
    Limit,
    OutputFile,
    TreeOptions,
    settle_reading,
)
from treelm.cli.ranges import at_least
from treelm.cli.terminal import is_terminal, picture_width
from treelm.corpus.brackets import ReadReport
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import UsageError
from treelm.tasks.draw import draw_trees


def draw(
    file: Annotated[InputFile, Parameter(show_default="standard input")] = "-",
    /,
    *,
    format: Literal["text", "svg", "latex"] = "text",  # noqa: A002 (the option's name)
    layout: Literal["auto", "vertical", "indented"] = "auto",
    heads: bool = False,
    raw: bool = False,
    ascii_only: Annotated[bool, Parameter(name="--ascii")] = False,
    width: Annotated[
        int | None, at_least(1), Parameter(show_default="that of the terminal, else unlimited")
    ] = None,
    limit: Limit = None,
    output: OutputFile = "-",
    trees: TreeOptions = TreeOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Draw trees as text, SVG or LaTeX.

    Args:
        file: File of trees, or of parses (.forest), whose best trees are drawn.
        format: text, svg (one picture, the trees below each other) or latex (package forest).
        layout: Text: vertical with the root on top, indented, or auto for whichever fits.
        heads: Mark the head child of every phrase.
        raw: Draw labels and empty elements as they are written.
        ascii_only: Text: draw lines with plain ASCII characters.
        width: Text: columns a picture may take.
        limit: Draw only this many trees.
    """
    if format != "text":
        for name, given in (
            ("--layout", layout != "auto"),
            ("--ascii", ascii_only),
            ("--width", width is not None),
        ):
            if given:
                raise UsageError(f"{name} goes with --format text, not with {format}.")
    report = ReadReport()
    at_once = output == "-" and is_terminal(sys.stdout)
    pictures = draw_trees(
        file,
        trees.read_options(strip=not raw),
        format=format,
        layout=layout,
        mark_heads=heads,
        ascii_only=ascii_only,
        width=picture_width() if width is None else width,
        on_error=trees.on_error,
        report=report,
        limit=limit,
        threads=trees.thread_count,
        line_buffered=at_once,
    )
    with write_atomically(output) as out:
        for picture in pictures:
            out.write(picture.encode())
            if at_once:
                out.flush()
        if limit != 0:
            settle_reading(report, common, source_name(file))
