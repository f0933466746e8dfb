"""The version of the package, and of what it runs on."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

__version__ = version("treelm")


def versions() -> dict[str, str]:
    """Return the versions that matter for a bug report.

    Examples:
        >>> list(versions())[:3]
        ['treelm', 'native core', 'python']
    """
    from treelm import _native

    found = {
        "treelm": __version__,
        "native core": _native.CORE_VERSION,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
    }
    for package in ("numpy", "safetensors", "pydantic", "cyclopts", "rich"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
