"""What the kernels raise, as one of the package's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treelm import _native
from treelm.errors import (
    EngineError,
    EstimationError,
    ModelFileError,
    OutputFileError,
    TreelmError,
)

_FAMILIES: dict[str, type[TreelmError]] = {
    "E_CHAIN": EstimationError,
    "E_NO_DATA": EstimationError,
    "E_OVERFLOW": EstimationError,
    "E_ARGUMENT": EstimationError,
    "E_NAN": EstimationError,
    "E_MODEL_TABLES": ModelFileError,
    "E_TEMPORARY": OutputFileError,
}


@contextmanager
def kernel_errors(work: str) -> Iterator[None]:
    """Turn a kernel's error into one of ours, naming the work that was under way.

    Args:
        work: What was being done, such as ``counting events``.

    Examples:
        >>> with kernel_errors("counting events"):
        ...     raise _native.KernelError("E_NO_DATA", "no event was counted", 0, 0)
        Traceback (most recent call last):
        ...
        treelm.errors.EstimationError: counting events: no event was counted.
    """
    try:
        yield
    except _native.KernelError as error:
        code, message = str(error.args[0]), str(error.args[1])
        raise _FAMILIES.get(code, EngineError)(f"{work}: {message}.", code=code) from error
