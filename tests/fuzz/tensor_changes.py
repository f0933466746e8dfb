"""Changes of the tensors of a folder: numbers, shapes, types, lengths, names."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.fuzz.forged_folder import Array, Folder, Tensors
from tests.fuzz.mutation import EDGES, STRINGS, Random

from treelm.store.tables import DTYPES

_TYPES = tuple(DTYPES.values())
_FLOATS = (
    np.nan, np.inf, -np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0000001, 2.0, 1e-320, 5e-324, 1e38, -1e38,
    1e308, -1e308, 1e16, -744.5, 709.9, 255.0, -1e-9,
)  # fmt: skip
#: Most places of a tensor that one change enlarges it to.
_LARGEST = 4096


@np.errstate(over="ignore", invalid="ignore")  # what does not fit becomes infinite, or anything
def change_values(folder: Folder, random: Random) -> str:
    """Change numbers of a tensor; type and shape stay."""
    tables = folder.tables or {}
    name = random.pick(list(tables))
    array = tables[name].copy()
    tables[name] = array
    kind = random.below(12)
    flat = array.reshape(-1)
    if not array.size:
        return f"{name}: empty"
    at, to = random.below(array.size), random.below(array.size)
    rows = array if array.ndim else flat
    if kind == 0:
        flat[at], flat[to] = flat[to].copy(), flat[at].copy()
        return f"{name}: {at} and {to} exchanged"
    if kind == 1:
        order = np.argsort(
            [random.below(1 << 16) for _ in range(min(len(rows), 4096))], kind="stable"
        )
        rows[: len(order)] = rows[order]
        return f"{name}: shuffled"
    if kind == 2:
        rows[:] = rows[::-1].copy()
        return f"{name}: reversed"
    if kind == 3:
        rows[random.below(len(rows))] = rows[random.below(len(rows))]
        return f"{name}: a row over another"
    if kind == 4:
        same = [other for other in tables if tables[other].dtype == array.dtype]
        other = random.pick(same)
        if tables[other].shape == array.shape and random.chance(2):
            tables[name], tables[other] = tables[other], array
            return f"{name}: exchanged with {other}"
        block = tables[other].reshape(-1)[: array.size - at]
        flat[at : at + len(block)] = block
        return f"{name}: a block of {other} at {at}"
    if kind == 5:
        value = _odd_number(array, at, tables, random)
        flat[:] = value
        return f"{name}: all {value}"
    if kind == 6 and array.dtype != np.bool_:
        with np.errstate(all="ignore"):
            factor = random.pick((2, -1, 3)) if array.dtype.kind == "f" else 2
            flat[:] = flat * np.array(factor).astype(array.dtype)
        return f"{name}: times {factor}"
    if kind == 7 and array.dtype.kind == "f":  # sums stay as they are, whatever is summed
        with np.errstate(all="ignore"):
            moved = random.pick(
                (flat[to], flat[to] / 2, flat[to] * 2, -flat[at], array.dtype.type(1))
            )
            flat[at] += moved
            flat[to] -= moved
        return f"{name}: {moved} moved from {to} to {at}"
    count = random.pick((1, 1, 1, 2, 5))
    said = []
    for _ in range(count):
        at = random.pick((0, array.size - 1, random.below(array.size), random.below(array.size)))
        value = _odd_number(array, at, tables, random)
        flat[at] = value
        said.append(f"{at} becomes {value}")
    return f"{name}: {', '.join(said)}"[:200]


def _odd_number(array: Array, at: int, tables: Tensors, random: Random) -> Any:
    """Return a number that fits the type of an array, and perhaps nothing else."""
    now = array.reshape(-1)[at]
    if array.dtype == np.bool_:
        return np.bool_(random.chance(2))
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            other = random.pick((now * 2, -now, now + 1, now / 2, 1 / now))
            return random.pick((*_FLOATS, other, other, other)) if random.below(4) else other
    limits = np.iinfo(array.dtype)
    length = len(
        random.pick([each for each in tables.values() if each.ndim] or [array.reshape(-1)])
    )
    near = (int(now) + 1, int(now) - 1, length, length - 1, length + 1)
    number = random.pick((0, 1, -1, limits.min, limits.max, limits.max - 1, random.pick(EDGES)))
    number = random.pick(near) if random.chance(2) else number
    if not limits.min <= number <= limits.max:
        number %= int(limits.max) + 1
    return array.dtype.type(number)


def change_shape(folder: Folder, random: Random) -> str:
    """Change the shape or the type of a tensor."""
    tables = folder.tables or {}
    name = random.pick(list(tables))
    array = tables[name]
    kind = random.below(9)
    if kind == 0:
        made: Array = array.T
    elif kind == 1:
        made = array.reshape(-1)
    elif kind == 2:
        made = array.reshape(
            random.pick(((-1, 1), (1, -1), (*array.shape, 1), (1, *array.shape)))
            if array.size
            else (0, 1, 0)
        )
    elif kind == 3:
        with np.errstate(all="ignore"):
            made = array.astype(random.pick(_TYPES))
    elif kind == 4:
        fitting = [dtype for dtype in _TYPES if dtype.itemsize == array.dtype.itemsize]
        made = np.ascontiguousarray(array).view(random.pick(fitting))
    elif kind == 5:
        made = array[tuple(slice(0, 0) for _ in array.shape)]
    else:
        axis = random.below(max(array.ndim, 1))
        length = array.shape[axis] if array.ndim else 1
        made = _sized(
            array, axis, random.pick((length - 1, length + 1, length // 2, length * 2, 1))
        )
    tables[name] = made
    return f"{name}: {array.dtype}{array.shape} becomes {made.dtype}{made.shape}"


def _sized(array: Array, axis: int, length: int) -> Array:
    """Return an array cut, or continued with its first values, along an axis."""
    if not array.ndim:
        return array
    length = min(max(length, 0), _LARGEST)
    if length <= array.shape[axis] or not array.shape[axis]:
        return np.take(array, range(min(length, array.shape[axis])), axis)
    return np.take(array, np.arange(length) % array.shape[axis], axis)


def change_set(folder: Folder, random: Random) -> str:
    """Remove, rename, add or exchange tensors."""
    tables = folder.tables or {}
    name = random.pick(list(tables))
    other = random.pick(list(tables))
    kind = random.below(5)
    if kind == 0:
        del tables[name]
        return f"{name}: removed"
    if kind == 1:
        new = random.pick((name + "2", name.upper(), f"x.{name}", random.pick(STRINGS) or "x"))
        tables[new.encode(errors="replace").decode()] = tables.pop(name)
        return f"{name}: renamed"
    if kind == 2:
        tables[random.pick(("extra", "levels.9.keys", "fixed", name + ".0"))] = tables[other]
        return f"{other}: there twice"
    tables[name], tables[other] = tables[other], tables[name]
    return f"{name}: exchanged with {other}"


def resize(folder: Folder, random: Random) -> str:
    """Give all tensors of some length another one, so that they still fit each other."""
    tables = folder.tables or {}
    lengths = sorted({length for array in tables.values() for length in array.shape if length})
    if not lengths:
        return "nothing"
    length = random.pick(lengths)
    new = random.pick((length - 1, length + 1, length + 1, length * 2, 1, 0))
    return follow(folder, length, new).strip()


def follow(folder: Folder, before: int, after: int) -> str:
    """Resize the tensors whose lengths depend on another one, such as the number of words."""
    tables = folder.tables or {}
    for name, array in tables.items():
        made = array
        for axis, length in enumerate(array.shape):
            if abs(length - before) <= 1 and length - before + after >= 0 and length > 0:
                made = _sized(made, axis, length - before + after)
        tables[name] = made
    return f" (lengths of {before} become {after})"
