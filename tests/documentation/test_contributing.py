"""The map of the house in CONTRIBUTING.md names every room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def the_map() -> str:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.partition("\n## The house\n")[2].partition("\n## ")[0]


def rooms(folder: str) -> list[str]:
    """Return the names of the folders in a folder that hold code."""
    kinds = ("*.py", "*.cpp", "*.h")
    return sorted(
        path.name
        for path in (REPOSITORY / folder).iterdir()
        if path.is_dir() and any(found for kind in kinds for found in path.glob(kind))
    )


HOUSES = ["src/treelm", "src/treelm/models", "native/core", "native"]


@pytest.mark.parametrize("house", HOUSES)
def test_the_map_names_every_room(house: str) -> None:
    words = set(re.findall(r"[\w/]+", the_map()))
    missing = [room for room in rooms(house) if not {room, f"{house}/{room}"} & words]
    assert not missing


def test_rooms_are_folders_with_code() -> None:
    assert {"trees", "models", "cli"} <= set(rooms("src/treelm"))
    assert "__pycache__" not in rooms("src/treelm")
