"""`treelm demo`."""

from __future__ import annotations

import sys

from treelm.cli.options import CommonOptions
from treelm.cli.terminal import picture_width
from treelm.tasks.demo import demonstrate


def demo(*, common: CommonOptions = CommonOptions()) -> None:
    """Show what treelm does, on the treebank that comes with it."""
    del common
    for paragraph in demonstrate(width=picture_width() or 100):
        sys.stdout.write(paragraph + "\n\n")
        sys.stdout.flush()
