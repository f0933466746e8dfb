"""The native core keeps its rooms: includes point upwards, nothing goes round, and every file has an owner."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

#: A file may include from its own room and from those before it in this list.
ROOMS = (
    "base",
    "text",
    "trees",
    "backoff",
    "lattice",
    "chart",
    "latent",
    "hhmm",
    "topics",
    "slm",
    "headlex",
    "treelet",
    "translation",
)

#: Rooms that Python never sees by themselves.
UNBOUND = {"base"}

#: What stands beside the rooms.
LOOSE = {
    "core": set(),
    "bindings": {"bindings.h", "module.cpp"},
    "tests": {"harness.h", "CMakeLists.txt"},
}

NATIVE = Path(__file__).parents[2] / "native"
LISTS = (NATIVE.parent / "CMakeLists.txt", NATIVE / "tests" / "CMakeLists.txt")
INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)


def sources(part: str) -> list[Path]:
    """Return the C++ files of core, bindings or tests, relative to that folder."""
    root = NATIVE / part
    found = (path for path in root.rglob("*") if path.suffix in {".h", ".cpp", ".inc"})
    return sorted(path.relative_to(root) for path in found)


def includes(part: str, path: Path) -> list[str]:
    """Return the files that a file names in quotes."""
    return INCLUDE.findall((NATIVE / part / path).read_text(encoding="utf-8"))


def in_core(include: str) -> bool:
    """Return whether an include names a file of the core, room first."""
    return include.partition("/")[0] in ROOMS and (NATIVE / "core" / include).is_file()


def owner(path: Path) -> Path | None:
    """Return the header that a file of the core belongs to, without its suffix.

    It is the header of the same name, or the longest one whose name the file's begins with:
    ``search_parses.cpp`` implements a part of ``search.h``.
    """
    words = path.stem.split("_")
    for length in range(len(words), 0, -1):
        unit = path.with_name("_".join(words[:length]))
        if (NATIVE / "core" / unit.with_suffix(".h")).is_file():
            return unit
    return None


EVERYTHING = [(part, path) for part in LOOSE for path in sources(part) if len(path.parts) > 1]
IDS = [f"{part}/{path}" for part, path in EVERYTHING]


def test_there_are_native_files_to_check() -> None:
    assert len(sources("core")) > 150
    assert len(EVERYTHING) > 200


def test_native_folders_are_the_rooms() -> None:
    for part, loose in LOOSE.items():
        entries = [entry for entry in (NATIVE / part).iterdir() if entry.name != "__pycache__"]
        assert {entry.name for entry in entries if entry.is_file()} == loose, part
        rooms = {entry.name for entry in entries if entry.is_dir()}
        assert rooms == set(ROOMS) - (UNBOUND if part == "bindings" else set()), part


@pytest.mark.parametrize(("part", "path"), EVERYTHING, ids=IDS)
def test_native_includes_point_upwards(part: str, path: Path) -> None:
    here = ROOMS.index(path.parts[0])
    for include in includes(part, path):
        if part != "core" and include.startswith(f"{part}/"):
            assert (NATIVE / include).is_file(), include
            room = include.split("/")[1]
            wrong = room in ROOMS and ROOMS.index(room) > here
        else:
            assert in_core(include), f"{include} does not name its room, or does not exist"
            wrong = ROOMS.index(include.split("/")[0]) > here
        assert not wrong, f"{part}/{path} includes {include}, which is in a room below"


@pytest.mark.parametrize("path", sources("core"), ids=str)
def test_native_files_carry_the_name_of_their_owner(path: Path) -> None:
    unit = owner(path)
    assert unit is not None, f"{path} has no header of its name, and begins with that of none"
    if path.suffix == ".cpp":
        assert f"{unit.as_posix()}.h" in includes("core", path), f"{path} does not include {unit}.h"
    assert not path.stem.startswith(f"{path.parts[0]}_"), f"{path} says the room twice"


def test_native_includes_do_not_go_round() -> None:
    """A header and the source files that implement it count as one."""
    uses: dict[Path, set[Path]] = {}
    for path in sources("core"):
        unit = owner(path)
        assert unit is not None
        targets = {owner(Path(include)) for include in includes("core", path)}
        uses.setdefault(unit, set()).update(target for target in targets if target)
    done: set[Path] = set()

    def visit(unit: Path, way: tuple[Path, ...]) -> None:
        assert unit not in way, " -> ".join(map(str, (*way[way.index(unit) :], unit)))
        if unit not in done:
            for target in sorted(uses[unit] - {unit}):
                visit(target, (*way, unit))
            done.add(unit)

    for unit in sorted(uses):
        visit(unit, ())


def test_native_source_files_are_built() -> None:
    built = set(re.findall(r"native/(?:core|bindings)/([\w/]+\.cpp)", LISTS[0].read_text("utf-8")))
    assert built == {
        path.as_posix()
        for part in ("core", "bindings")
        for path in sources(part)
        if path.suffix == ".cpp"
    }
    tested = set(re.findall(r"[\w/]+_test\.cpp", LISTS[1].read_text("utf-8")))
    assert tested == {path.as_posix() for path in sources("tests") if path.suffix == ".cpp"}
