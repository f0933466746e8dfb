"""The version of the package, and of what it runs on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """Return the version when it is first asked for: looking for it takes a while."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        globals()[name] = version("treelm")
        return globals()[name]


def versions() -> dict[str, str]:
    """Return the versions that matter for a bug report.

    Examples:
        >>> list(versions())[:3]
        ['treelm', 'native core', 'python']
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from treelm import _native

    found = {
        "treelm": version("treelm"),
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
