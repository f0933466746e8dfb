"""Making a blinded sheet of pairs: seeded, in random order, sides swapped at random."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treelm.characters import visible
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import (
    COMPRESSION,
    Source,
    can_be_read_twice,
    read_lines,
    source_name,
    write_atomically,
)
from treelm.errors import CorpusFormatError, UsageError
from treelm.seeds import random_bits
from treelm.tasks.judge.key import Key, KeyItem, System
from treelm.tasks.judge.sheet import Row, sheet_bytes

#: Share of the pairs that are shown twice, to see whether raters agree with themselves.
REPEATED = 0.05

# Counters of random numbers: what they decide.
_CHOSEN, _SIDE, _ORDER, _REPEATED, _SIDE_AGAIN, _ORDER_AGAIN = range(6)


@dataclass(frozen=True)
class Export:
    """What an export did.

    Args:
        sheet: The file for raters.
        key: The file that they must not see.
        pairs: Number of pairs on the sheet.
        repeated: Number of these that are on it twice.
        identical: Number of pairs left out because both texts are the same.
    """

    sheet: Path
    key: Path
    pairs: int
    repeated: int
    identical: int


def export_pairs(
    first: Source,
    second: Source,
    output: Source,
    *,
    seed: int,
    source: Source | None = None,
    number: int | None = None,
    repeated: float = REPEATED,
) -> Export:
    """Write a sheet of pairs for raters, and its key beside it.

    Pairs of equal texts are left out and counted: nobody can prefer one of them.

    Args:
        first: Texts of system A, one per line.
        second: Texts of system B for the same lines.
        output: Sheet to write; the key has the same name, ending in ``.key.json``.
        seed: Seed of choice, order and sides.
        source: What both were made from, one per line, shown beside them.
        number: Number of pairs to choose at random; None for all.
        repeated: Share of the pairs that are shown twice.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if the files have different numbers of lines,
            ``E_NO_DATA`` if no pair differs.
        UsageError: for more pairs than there are, or an output without room for a key.
    """
    key_path = key_beside(output)
    if not 0 <= repeated <= 1:
        raise UsageError("the share of repeated pairs must be between 0 and 1.")
    files: dict[str, Source] = {"A": first, "B": second}
    if source is not None:
        files["source"] = source
    for file in files.values():
        if os.path.realpath(file) in (os.path.realpath(output), os.path.realpath(key_path)):
            raise UsageError(f"{source_name(file)}: the sheet or its key would replace this input.")
    texts = {name: stripped_lines(file) for name, file in files.items()}
    check_lengths(files, texts)
    pairs = list(zip(texts["A"], texts["B"], strict=True))
    differing = [place for place, (a, b) in enumerate(pairs, 1) if a != b]
    chosen = _choose(differing, number, seed)
    again = first_by_chance(chosen, round(repeated * len(chosen)), seed, _REPEATED)
    shown = [(random_bits(seed, pair, _ORDER), pair, False) for pair in chosen]
    shown += [(random_bits(seed, pair, _ORDER_AGAIN), pair, True) for pair in again]
    shown.sort()
    hashes = {name: sha256_of_lines(lines) for name, lines in texts.items()}
    name = hashlib.sha256(repr((sorted(hashes.items()), seed, shown)).encode()).hexdigest()[:6]
    items = [
        KeyItem(
            item=f"{place}-{name}",
            pair=pair,
            left=_left(seed, pair, repeated=is_repeated),
            repeated=is_repeated,
        )
        for place, (_, pair, is_repeated) in enumerate(shown, 1)
    ]
    key = Key(
        export=name,
        seed=seed,
        systems={"A": Path(first).name, "B": Path(second).name},
        sha256=hashes,
        pairs=len(chosen),
        identical=len(pairs) - len(differing),
        items=items,
    )
    rows = [_row(item, pairs[item.pair - 1], texts.get("source")) for item in items]
    with write_atomically(key_path) as key_file, write_atomically(output) as sheet_file:
        key_file.write(key.to_json())
        sheet_file.write(sheet_bytes(rows, with_source=source is not None))
    return Export(Path(output), key_path, len(chosen), len(again), key.identical)


def key_beside(sheet: Source) -> Path:
    """Return the path of the key of a sheet.

    Examples:
        >>> key_beside("pairs.csv").name
        'pairs.key.json'
    """
    path = Path(sheet)
    if not can_be_read_twice(sheet) or path.suffix in COMPRESSION or not path.name:
        raise UsageError(
            f"{visible(os.fspath(sheet))}: the sheet must be a plain file such as pairs.csv, "
            "because its key is written beside it."
        )
    return path.with_suffix(".key.json")


def stripped_lines(file: Source) -> list[str]:
    """Return the lines of a file of texts."""
    return [line.strip() for line in read_lines(file, Wanted.RAW_TEXT)]


def check_lengths(files: Mapping[str, Source], texts: Mapping[str, Sequence[str]]) -> None:
    """Refuse files of different lengths.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH``, with both.
    """
    first = next(iter(texts))
    for name, lines in texts.items():
        if len(lines) != len(texts[first]):
            raise CorpusFormatError(
                f"{source_name(files[first])} has {len(texts[first])} lines and "
                f"{source_name(files[name])} has {len(lines)}. Line n of one must belong to line n "
                "of the other; where a system has no output, leave the line empty.",
                code="E_LENGTH_MISMATCH",
                path=source_name(files[name]),
            )


def _choose(differing: Sequence[int], number: int | None, seed: int) -> list[int]:
    if not differing:
        raise CorpusFormatError(
            "no pair differs, so there is nothing to judge. Are the two files the same?",
            code="E_NO_DATA",
        )
    if number is None:
        return list(differing)
    if not 1 <= number <= len(differing):
        raise UsageError(
            f"{number} pairs were requested; there are {len(differing)} whose texts differ."
        )
    return first_by_chance(differing, number, seed, _CHOSEN)


def first_by_chance(pairs: Sequence[int], number: int, seed: int, counter: int) -> list[int]:
    """Return some of the numbers, chosen at random, in ascending order."""
    return sorted(sorted(pairs, key=lambda pair: random_bits(seed, pair, counter))[:number])


def _left(seed: int, pair: int, *, repeated: bool) -> System:
    bits = random_bits(seed, pair, _SIDE_AGAIN if repeated else _SIDE)
    return "A" if bits >> 63 else "B"


def _row(item: KeyItem, texts: tuple[str, str], sources: Sequence[str] | None) -> Row:
    left, right = texts if item.left == "A" else texts[::-1]
    return Row(item.item, None if sources is None else sources[item.pair - 1], left, right)


def sha256_of_lines(lines: Sequence[str]) -> str:
    """Return a fingerprint of texts."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
