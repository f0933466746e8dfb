"""Back-off tables with codes instead of floats: a third of the size, slightly less exact.

Every region of a table has a codebook of 2**bits values for its probabilities and one for its
weights. Bins balance the number of values and their range, half and half; what a value means
(impossible, absent, not a context) is never rounded away, so a quantised table leads through the
same contexts.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from treelm import _native
from treelm.estimation.backoff_table import BackoffTable
from treelm.kernel_errors import kernel_errors
from treelm.parallel.progress import SILENT, Progress, kernel_report

#: Sizes of codes in bits.
CodeBits = Literal[4, 5, 6, 7, 8, 16]
#: Those that only a compact table can store.
SMALL_CODES = frozenset({4, 5, 6, 7})


class ValueChange(NamedTuple):
    """How far stored values moved, in binary logarithms."""

    mean: float
    largest: float


class QuantizedTable(NamedTuple):
    """A table of codes, and how far the values moved."""

    table: BackoffTable
    probabilities: ValueChange
    weights: ValueChange


def quantize(
    table: BackoffTable, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT
) -> QuantizedTable:
    """Return a table whose probabilities and weights are codes.

    Args:
        table: A table of floats.
        bits: Number of bits per code; fewer than 8 still take one byte each, until the table
            is made compact. With no more distinct values than codes the table stays exact, to
            single precision.
        threads: Number of threads.
        progress: Progress callback.

    Raises:
        EstimationError: ``E_ARGUMENT`` if the table already has codes or is compact, or codes
            cannot have that many bits.
    """
    shape = table.shape
    # Rows are read once for the codebooks and once for the codes.
    total = 2 * sum(region[0] for region in (*shape.entries, *shape.contexts))
    with (
        progress.step("quantising", total=total, unit="rows") as step,
        kernel_errors("quantising a table"),
    ):
        native, probabilities, weights = _native.quantize_table(
            table.native, bits=bits, threads=threads, progress=kernel_report(step)
        )
    return QuantizedTable(BackoffTable(native), _change(probabilities), _change(weights))


def _change(numbers: tuple[int, float, float]) -> ValueChange:
    values, total, largest = numbers
    return ValueChange(total / values if values else 0.0, largest)
