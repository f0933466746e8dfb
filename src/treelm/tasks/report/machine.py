"""The machine an experiment ran on, without its name: only what times depend on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def machine() -> dict[str, object]:
    """Return processor, cores and memory in bytes, None where the system does not say.

    Examples:
        >>> list(machine())
        ['processor', 'cores', 'memory']
    """
    return {"processor": _processor(), "cores": os.cpu_count(), "memory": _memory()}


def _processor() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine() or None


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
