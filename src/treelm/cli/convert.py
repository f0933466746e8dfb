"""`treelm convert`."""

from __future__ import annotations

from treelm.cli.options import CommonOptions, InputFile
from treelm.tasks import convert as task


def convert(
    source: InputFile, target: InputFile, /, *, common: CommonOptions | None = None
) -> None:
    """Write an n-gram model as an ARPA file, or an ARPA file as a model.

    Args:
        source: Model folder, or ARPA file (.arpa, .arpa.gz).
        target: ARPA file, or model folder.
        common: Common.
    """
    del common
    task.convert(source, target)
