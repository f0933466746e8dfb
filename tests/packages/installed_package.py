"""A package of models as an installer leaves it, without installing it."""

from __future__ import annotations

import tomllib
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2] / "packages"


def project(package: str) -> dict[str, object]:
    """Return what the pyproject file of a package says about it."""
    found: dict[str, object] = tomllib.loads((PACKAGES / package / "pyproject.toml").read_text())
    return dict(found["project"])  # type: ignore[call-overload]


def model_names(package: str) -> list[str]:
    """Return the names of the models of a package, sorted."""
    points: dict[str, dict[str, str]] = project(package)["entry-points"]  # type: ignore[assignment]
    return sorted(points["treelm.models"])


def as_installed(package: str, place: Path) -> Path:
    """Put a package into a folder, which is then for PYTHONPATH or `sys.path`."""
    module = package.replace("-", "_")
    version = project(package)["version"]
    about = place / f"{module}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    entries = "".join(f"{name} = {module}\n" for name in model_names(package))
    (about / "entry_points.txt").write_text(f"[treelm.models]\n{entries}")
    (place / module).symlink_to(PACKAGES / package / "src" / module)
    return place
