"""How much memory work may use, and where it puts what does not fit."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from treelm.errors import UsageError, option

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

#: What kernels can count, and no machine has.
LARGEST_LIMIT = 1 << 60

#: The least a kernel gets, however much is already in use.
SMALLEST_SHARE = 32 << 20


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A memory limit for the whole program.

    Results do not depend on it: what does not fit is sorted in temporary files, which have no name
    and disappear when the program ends, however it ends.

    Args:
        bytes: The limit.
        folder: Where temporary files are made; it needs room for a few times the counts.
    """

    bytes: int
    folder: Path

    @classmethod
    def parse(cls, size: str, folder: str | os.PathLike[str] | None = None) -> MemoryLimit:
        """Return the limit given as a size such as ``4G`` or ``500M``.

        Args:
            size: A number with or without one of the units K, M, G and T (of 1024 each).
            folder: Where temporary files are made; default: the system's folder for them.

        Raises:
            UsageError: for anything else, for less than 64 MiB, for more than any machine has, or
                for a folder that does not exist.

        Examples:
            >>> MemoryLimit.parse("4G").bytes == 4 * 1024**3
            True
        """
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?\s*", size.lower())
        if not found or len(found[1]) > 20:
            raise UsageError(f"{option('memory')} {size}: give a size such as 500M or 4G.")
        limit = int(float(found[1]) * _UNITS[found[2]])
        if limit < 64 << 20:
            raise UsageError(f"{option('memory')} {size}: at least 64M is needed.")
        if limit > LARGEST_LIMIT:
            raise UsageError(
                f"{option('memory')} {size}: no machine has so much; give at most "
                f"{LARGEST_LIMIT >> 40}T."
            )
        import tempfile

        place = Path(folder) if folder is not None else Path(tempfile.gettempdir())
        if not place.is_dir():
            raise UsageError(f"{option('temporary')} {place}: there is no such folder.")
        return cls(limit, place)

    def divided(self, parts: int) -> MemoryLimit:
        """Return the limit of one of several kernels that run side by side."""
        used = resident_bytes()
        return MemoryLimit(used + max(self.bytes - used, SMALLEST_SHARE) // parts, self.folder)

    @property
    def share(self) -> int:
        """What a kernel may use in addition to what is in use now."""
        return max(self.bytes - resident_bytes(), SMALLEST_SHARE)


def resident_bytes() -> int:
    """Return how much memory the process uses now, or 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
