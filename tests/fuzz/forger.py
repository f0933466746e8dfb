"""Forged model folders: changed inside, and right again in every size, checksum and fingerprint.

What the door checks (the set of files, their sizes, SHA-256 and the fingerprint of the vocabulary)
is made anew after every change, so that readers and kernels meet what was changed. Mutant number i
of a system depends on the seed, on i and on the small models, and on nothing else.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
from tests.fuzz.mutation import EDGES, STRINGS, Random, mutate_bytes, mutate_json

from treelm.corpus.vocabulary import PlainEntries, Vocabulary
from treelm.corpus.vocabulary_file import MAGIC, VERSION
from treelm.errors import TreelmError
from treelm.models.registry import SYSTEMS
from treelm.store.folder import TABLES
from treelm.store.manifest import MANIFEST, PARTS
from treelm.store.schema import WORDS
from treelm.store.tables import DTYPES, open_tables

Array = np.ndarray[Any, Any]
Tensors = dict[str, Array]

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_TYPES = tuple(DTYPES.values())
_FLOATS = (
    np.nan, np.inf, -np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0000001, 2.0, 1e-320, 5e-324, 1e38, -1e38,
    1e308, -1e308, 1e16, -744.5, 709.9, 255.0, -1e-9,
)  # fmt: skip
_SMALL = (0, 1, 2, 3, 5, 8, 16, 17, 100, 1000, 65535, 65536, 1 << 20)
#: Most places of a tensor or a list that one change enlarges it to.
_LARGEST = 4096


@dataclass
class Folder:
    """A model folder in memory.

    Args:
        manifest: What its manifest says, but for the files and parts, which are listed when it is
            written.
        tables: Tensors by name, those of the only file of tables.
        texts: The other files.
        parts: The model folders inside.
    """

    manifest: dict[str, Any]
    tables: Tensors | None
    texts: dict[str, bytes]
    parts: dict[str, Folder] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Folder:
        """Return what is in a model folder."""
        manifest = json.loads((path / MANIFEST).read_bytes())
        names = set(manifest.pop("files"))
        tables: Tensors | None = None
        if TABLES in names:
            found = open_tables(path / TABLES)
            tables = {name: np.array(found[name]) for name in found}
        texts = {name: (path / name).read_bytes() for name in sorted(names - {TABLES})}
        parts = {name: cls.read(path / PARTS / name) for name in manifest.pop("parts")}
        return cls(manifest, tables, texts, parts)

    def copy(self) -> Folder:
        """Return a copy whose entries can be exchanged; arrays and values are not to be changed."""
        tables = None if self.tables is None else dict(self.tables)
        parts = {name: part.copy() for name, part in self.parts.items()}
        return Folder(dict(self.manifest), tables, dict(self.texts), parts)

    def every(self) -> Iterator[Folder]:
        """Yield this folder and all inside it."""
        yield self
        for part in self.parts.values():
            yield from part.every()

    def write(self, path: Path) -> None:
        """Write the folder, with sizes and checksums of what is written."""
        path.mkdir()
        files = dict(self.texts)
        if self.tables is not None:
            files[TABLES] = tables_bytes(self.tables)
        records = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        }
        manifest = {**self.manifest, "files": records, "parts": list(self.parts)}
        for name, data in files.items():
            (path / name).write_bytes(data)
        if self.parts:
            (path / PARTS).mkdir()
            for name, part in self.parts.items():
                part.write(path / PARTS / name)
        (path / MANIFEST).write_bytes(json.dumps(manifest).encode())


def tables_bytes(tables: Tensors) -> bytes:
    """Return the file of tables that `write_tables` would write, without a way to the disk."""
    arrays = {name: np.ascontiguousarray(array) for name, array in tables.items()}
    header: dict[str, object] = {}
    place = 0
    for name in sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize):
        array, shape = arrays[name], tables[name].shape
        offsets = [place, place + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": shape, "data_offsets": offsets}
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    data = b"".join(arrays[name].tobytes() for name in header)
    return len(text).to_bytes(8, "little") + text + data


# -- one system ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forger:
    """Makes the mutants of one system.

    Args:
        system: Its name.
        originals: Good folders of the system.
        others: Good folders of other systems, whose pieces get into the wrong place.
    """

    system: str
    originals: Sequence[Folder]
    others: Sequence[Folder]

    def mutant(self, seed: int, number: int) -> tuple[Folder, list[str]]:
        """Return a forged folder and what was changed in it."""
        random = Random(seed ^ zlib.crc32(self.system.encode()) << 32, number)
        made = random.pick(self.originals).copy()
        changes = [self._change(made, random) for _ in range(random.pick((1, 1, 1, 1, 2, 2, 3)))]
        return made, changes

    def _change(self, made: Folder, random: Random) -> str:
        folders = list(made.every())
        folder = made if random.chance(2) else random.pick(folders)
        moves: list[tuple[int, Callable[[Folder, Random], str]]] = [
            (2, _change_manifest),
            (6, self._change_config),
            (3, lambda folder, random: _change_text(folder, random, folders)),
            (2, self._exchange),
        ]
        if folder.tables:
            moves += [(9, _change_values), (4, _change_shape), (3, _change_set), (3, _resize)]
        drawn = random.below(sum(weight for weight, _ in moves))
        for weight, move in moves:
            drawn -= weight
            if drawn < 0:
                return move(folder, random)
        raise AssertionError("unreachable")

    def _change_config(self, folder: Folder, random: Random) -> str:
        """Change a field of the configuration to something that its type mostly allows."""
        config = folder.manifest.get("config")
        if not isinstance(config, dict) or not config or random.chance(5):
            folder.manifest["config"] = mutate_json(config, random)
            return "config: any change"
        name = random.pick(list(config))
        value = _other_option(folder.manifest.get("system"), name, config[name], random)
        folder.manifest["config"] = {**config, name: value}
        return f"config.{name}: {config[name]!r} becomes {value!r}"[:200]

    def _exchange(self, folder: Folder, random: Random) -> str:
        """Put a piece of another model into this one."""
        other = random.pick(self.originals if random.chance(2) else self.others)
        kind = random.below(5)
        if kind == 0 and folder.parts:
            name = random.pick(list(folder.parts))
            folder.parts[name] = other.copy()
            return f"part {name}: another {other.manifest['system']} model"
        if kind == 1 and folder.parts:
            name = random.pick(list(folder.parts))
            if random.chance(2):
                del folder.parts[name]
                return f"part {name}: removed"
            folder.parts[f"{name}2"] = folder.parts[name]
            return f"part {name}: there twice"
        if kind == 2 and other.tables and folder.tables:
            shared = sorted(set(other.tables) & set(folder.tables))
            if shared:
                name = random.pick(shared)
                folder.tables[name] = other.tables[name]
                return f"{name}: that of another {other.manifest['system']} model"
        if kind == 3:
            folder.manifest["system"] = other.manifest["system"]
            return f"system: {other.manifest['system']}"
        if kind == 4:
            folder.manifest["config"] = other.manifest["config"]
            return f"config: that of another {other.manifest['system']} model"
        if other.texts and folder.texts:
            name = random.pick(sorted(folder.texts))
            folder.texts[name] = other.texts.get(name) or random.pick(sorted(other.texts.values()))
            if name == WORDS:
                _seal_vocabulary(folder)
            return f"{name}: that of another {other.manifest['system']} model"
        folder.parts["extra"] = other.copy()
        return f"part extra: another {other.manifest['system']} model"


def _other_option(system: object, name: str, value: Any, random: Random) -> Any:
    """Return another value of an option, mostly of its type."""
    choices = _choices(system, name)
    if choices and random.below(4):
        return random.pick(choices)
    kind = random.below(6)
    if kind == 0:
        return mutate_json(value, random)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.pick((value + 1, value - 1, random.pick(_SMALL), random.pick(EDGES), None))
    if isinstance(value, float):
        return random.pick((value / 2, value * 2, 1e-300, 1 - 1e-16, 0.0, 1.0, 1e30, 1e308, None))
    if value is None:
        return random.pick((0, 1, 0.5, 1.0, *_SMALL))
    if isinstance(value, list):
        return random.pick((value[:-1], [*value, *value[-1:]], value[::-1], [0, *value[1:]], []))
    return mutate_json(value, random)


def _choices(system: object, name: str) -> tuple[Any, ...]:
    """Return the strings that an option may be, if it is one of a few."""
    if not isinstance(system, str) or system not in SYSTEMS:
        return ()
    declared = SYSTEMS[system].model_class.config_class.model_fields.get(name)
    return () if declared is None else tuple(_literals(declared.annotation))


def _literals(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for inner in get_args(annotation):
            yield from _literals(inner)


def _change_manifest(folder: Folder, random: Random) -> str:
    name = random.pick(list(folder.manifest) or ["format"])
    if random.chance(4) and folder.manifest.get("transforms"):
        name = "transforms"
    kind = random.below(6)
    if kind == 0:
        folder.manifest = {key: item for key, item in folder.manifest.items() if key != name}
    elif kind == 1:
        folder.manifest[random.pick(("extra", name.upper(), random.pick(STRINGS)))] = 1
    elif kind == 2:
        folder.manifest["exactness"] = random.pick(("exact", "beam", "lower_bound", "margin"))
        name = "exactness"
    else:
        folder.manifest[name] = mutate_json(folder.manifest.get(name), random)
    return f"manifest.{name}: {('removed', 'added', 'changed')[min(kind, 2)]}"


# -- lines ---------------------------------------------------------------------------------------


def _change_text(folder: Folder, random: Random, folders: Sequence[Folder]) -> str:
    """Change lines of a text file, sometimes the same in every part that has the same file."""
    if not folder.texts:
        return "nothing"
    name = random.pick(sorted(folder.texts))
    before = folder.texts[name]
    after, what = _changed_text(before, random, header=name == WORDS)
    together = random.chance(2)
    for each in folders:
        if each is folder or (together and each.texts.get(name) == before):
            each.texts[name] = after
            if name == WORDS and random.below(12):
                _seal_vocabulary(each)
    if random.chance(2):
        what += _follow(folder, before.count(b"\n"), after.count(b"\n"))
    return f"{name}: {what}"


def _changed_text(data: bytes, random: Random, *, header: bool) -> tuple[bytes, str]:
    lines = data.split(b"\n")[:-1]
    first = min(1, len(lines)) if header and random.below(8) else 0
    at = first + random.below(max(len(lines) - first, 1))
    to = first + random.below(max(len(lines) - first, 1))
    kind = random.below(11)
    if kind == 0:
        del lines[at : at + 1]
        what = "a line removed"
    elif kind == 1:
        lines[to:to] = lines[at : at + 1]
        what = "a line twice"
    elif kind == 2:
        lines[at : at + 1], lines[to : to + 1] = lines[to : to + 1], lines[at : at + 1]
        what = "two lines exchanged"
    elif kind in (3, 4):
        text = _odd_text(random)
        fields = lines[at].split(b"\t") if at < len(lines) else [b""]
        fields[random.below(len(fields)) if kind == 3 else 0] = text
        lines[at : at + 1] = [b"\t".join(fields)]
        what = f"{text[:20]!r} in a line"
    elif kind == 5:
        text = _odd_text(random)
        fields = lines[at].split(b"\t") if at < len(lines) else [b""]
        lines[to:to] = [b"\t".join([text, *fields[1:]])]
        what = f"a line {text[:20]!r} added"
    elif kind == 6:
        lines = lines[:first]
        what = "no lines"
    elif kind == 7:
        lines = lines[: first + random.below(max(len(lines) - first, 1))]
        what = "cut"
    elif kind == 8:
        lines += lines[first:]
        what = "twice"
    elif kind == 9:
        lines[first:] = lines[:first:-1] if first else lines[::-1]
        what = "reversed"
    else:
        return mutate_bytes(
            data, random, [b"\t", b"\n", b"\r\n", b"\xff", b" "], [data], 1 << 16
        ), "bytes"
    return b"".join(line + b"\n" for line in lines), what


def _odd_text(random: Random) -> bytes:
    kind = random.below(5)
    if kind == 0:
        return str(random.pick(EDGES)).encode()
    if kind == 1:
        return random.pick(
            (b"<unk>", b"<s>", b"</s>", b"ROOT", b"@S", b"NP^VP", b"NP@3", b"S|NP", b"-LRB-")
        )
    if kind == 2:
        return random.pick(
            (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"(", b")", b"( X", b"a b", b"#", b'"')
        )
    return random.pick(STRINGS).encode(errors="surrogatepass")


def _seal_vocabulary(folder: Folder) -> None:
    """Write the fingerprint of changed words into their first line and into the manifest."""
    try:
        first, _, rest = folder.texts[WORDS].decode().partition("\n")
        header = json.loads(first.removeprefix(f"{MAGIC} {VERSION} "))
        rows = [line.split("\t") for line in rest.split("\n")[:-1]]
        entries = PlainEntries(
            [row[0] for row in rows], [0] * len(rows), [row[2] == "signature" for row in rows]
        )
        vocabulary = Vocabulary(entries, header["profile"], header["style"])
        header["fingerprint"] = vocabulary.fingerprint
    except (ValueError, LookupError, TypeError, AttributeError, TreelmError):
        return  # nothing that has a fingerprint; it will be refused for that
    folder.texts[WORDS] = f"{MAGIC} {VERSION} {json.dumps(header)}\n{rest}".encode()
    if "vocabulary" in folder.manifest:
        folder.manifest["vocabulary"] = header["fingerprint"]


# -- tensors -------------------------------------------------------------------------------------


def _change_values(folder: Folder, random: Random) -> str:
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


def _change_shape(folder: Folder, random: Random) -> str:
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


def _change_set(folder: Folder, random: Random) -> str:
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


def _resize(folder: Folder, random: Random) -> str:
    """Give all tensors of some length another one, so that they still fit each other."""
    tables = folder.tables or {}
    lengths = sorted({length for array in tables.values() for length in array.shape if length})
    if not lengths:
        return "nothing"
    length = random.pick(lengths)
    new = random.pick((length - 1, length + 1, length + 1, length * 2, 1, 0))
    return _follow(folder, length, new).strip()


def _follow(folder: Folder, before: int, after: int) -> str:
    """Resize the tensors whose lengths depend on another one, such as the number of words."""
    tables = folder.tables or {}
    for name, array in tables.items():
        made = array
        for axis, length in enumerate(array.shape):
            if abs(length - before) <= 1 and length - before + after >= 0 and length > 0:
                made = _sized(made, axis, length - before + after)
        tables[name] = made
    return f" (lengths of {before} become {after})"
