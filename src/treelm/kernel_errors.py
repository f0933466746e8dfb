"""What the kernels raise, as one of the package's own errors."""

from __future__ import annotations

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


class kernel_errors:  # noqa: N801 (used like the functions of contextlib)
    """Turns a kernel's error into one of ours, naming the work that was under way.

    A class, because a generator would take as long as the fastest kernel that it surrounds.

    Args:
        work: What was being done, such as ``counting events``.

    Examples:
        >>> with kernel_errors("counting events"):
        ...     raise _native.KernelError("E_NO_DATA", "no event was counted", 0, 0)
        Traceback (most recent call last):
        ...
        treelm.errors.EstimationError: counting events: no event was counted.
    """

    __slots__ = ("_work",)

    def __init__(self, work: str) -> None:
        self._work = work

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, _native.KernelError):
            code, message = str(error.args[0]), str(error.args[1])
            family = _FAMILIES.get(code, EngineError)
            raise family(f"{self._work}: {message}.", code=code) from error
