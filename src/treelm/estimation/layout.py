"""How a back-off table lies in memory and in its file: in the order of hashes, or compact.

Both layouts give the same numbers. In the order of hashes a word takes one look-up for each
context that is tried, and every row has a link to the next context. A compact table is sorted, has
no links, and stores rows in as few bits as they need: it is smaller, and look-ups take longer.
"""

from __future__ import annotations

from typing import Literal

from treelm import _native
from treelm.errors import option
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.quantize import SMALL_CODES, CodeBits
from treelm.kernel_errors import kernel_errors
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress, kernel_report

#: How tables lie in memory.
Layout = Literal["hashed", "compact"]


def make_compact(
    table: BackoffTable,
    bits: CodeBits | None = None,
    *,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> BackoffTable:
    """Return a table as a compact one: the same rows and the same numbers.

    Args:
        table: A table in the order of hashes.
        bits: Number of bits per code, where the table has codes.
        memory: Where a table that is in a temporary file goes: to another one.
        progress: Progress callback.

    Raises:
        EstimationError: ``E_ARGUMENT`` if the table is compact already.
    """
    shape = table.shape
    total = sum(region[0] for region in (*shape.entries, *shape.contexts))
    spill = memory is not None and table.native.spilled
    with (
        progress.step("sorting the table", total=total, unit="rows") as step,
        kernel_errors("making a table compact"),
    ):
        native = _native.compact_table(
            table.native,
            code_bits=bits or shape.value_bits,
            folder=str(memory.folder) if memory is not None and spill else "",
            progress=kernel_report(step),
        )
    return BackoffTable(native)


def check_layout(bits: CodeBits | None, layout: Layout) -> None:
    """Refuse codes of fewer bits than a layout can store.

    Raises:
        ValueError: for such a pair.
    """
    if bits in SMALL_CODES and layout != "compact":
        raise ValueError(
            f"{option('bits')} {bits} needs {option('layout')} compact; tables that are hashed "
            "store 8 or 16 bits"
        )
