"""`treelm demo`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from treelm.cli.options import CommonOptions, OptionalOutputPicture
from treelm.cli.terminal import picture_width
from treelm.models.ready import USUAL_PACKAGE, ready_models
from treelm.tasks.demo import demonstrate
from treelm.tasks.demo_models import ModelTour


def demo(
    *,
    output: OptionalOutputPicture = None,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Show what treelm does: with the ready models, if they are installed.

    Without them the tour goes through the treebank that comes with treelm.

    Args:
        output: With ready models: page (.html) or picture (.svg) to write, with the pictures of the
            tour.
    """
    width = picture_width() or 100
    english = {name: model for name, model in ready_models().items() if name.startswith("en-")}
    if not english:
        _show(demonstrate(width=width))
        common.note(
            f"ready models show more: `pip install {USUAL_PACKAGE}`"
            + ("; without them no page is written." if output is not None else ".")
        )
        return
    tour = ModelTour(english, width=width, progress=common.progress)
    _show(tour.paragraphs())
    if output is not None:
        tour.write_page(output)
    _show(iter(["Next: treelm --help, treelm models, or docs/start/first-steps.md"]))


def _show(paragraphs: Iterator[str]) -> None:
    for paragraph in paragraphs:
        sys.stdout.write(paragraph + "\n\n")
        sys.stdout.flush()
