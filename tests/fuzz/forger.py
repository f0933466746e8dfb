"""Forged model folders: changed inside, and right again in every size, checksum and fingerprint.

What the door checks (the set of files, their sizes, SHA-256 and the fingerprint of the vocabulary)
is made anew after every change, so that readers and kernels meet what was changed. Mutant number i
of a system depends on the seed, on i and on the small models, and on nothing else.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from tests.fuzz.forged_folder import Checkpoint, Folder
from tests.fuzz.mutation import EDGES, STRINGS, Random, mutate_bytes, mutate_json
from tests.fuzz.tensor_changes import change_set, change_shape, change_values, follow, resize

from treelm.corpus.vocabulary import PlainEntries, Vocabulary
from treelm.corpus.vocabulary_file import MAGIC, VERSION
from treelm.errors import TreelmError
from treelm.models.registry import SYSTEMS
from treelm.store.schema import WORDS

_SMALL = (0, 1, 2, 3, 5, 8, 16, 17, 100, 1000, 65535, 65536, 1 << 20)


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
        if isinstance(folder, Checkpoint):
            moves = [(1, _change_notes)]
        if folder.tables:
            moves += [(9, change_values), (4, change_shape), (3, change_set), (3, resize)]
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


def _change_notes(folder: Folder, random: Random) -> str:
    """Change what a checkpoint says besides its tables."""
    assert isinstance(folder, Checkpoint)
    # Mostly not the key, by which another training is refused at once.
    others = [name for name in folder.notes if name != "training"]
    name = random.pick(others if others and random.below(4) else list(folder.notes) or ["training"])
    text = folder.notes.get(name, "")
    kind = random.below(4)
    if kind == 0:
        folder.notes.pop(name, None)
        return f"note {name}: removed"
    new = random.pick((text[:-1], text + text[-1:], str(random.pick(EDGES)), random.pick(STRINGS)))
    if kind == 1 and text:
        try:
            new = json.dumps(mutate_json(json.loads(text), random))
        except ValueError:
            new = text.upper()
    folder.notes[name] = new.encode(errors="replace").decode()
    return f"note {name}: {new!r}"[:200]


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
        what += follow(folder, before.count(b"\n"), after.count(b"\n"))
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
