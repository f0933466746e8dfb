"""Minimal pairs: a good and a bad sentence that differ slightly, from two files or from one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.corpus import hashed_blocks
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import COMPRESSION, Source, lines_of, source_name
from treelm.corpus.tables import read_table, text_of
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate.measured_text import MeasuredText

#: Keys that group pairs in a JSON Lines file, from coarse to fine.
GROUP_KEYS = ("field", "linguistics_term", "UID")


@dataclass(frozen=True, eq=False)
class MinimalPairs:
    """Pairs of sentences.

    Args:
        good: The good sentences.
        bad: The bad ones, in the same order.
        groups: Names of groups -> the group of each pair.
        ids: The name of each pair; None where they have none but their line.
    """

    good: MeasuredText
    bad: MeasuredText
    groups: Mapping[str, tuple[str, ...]]
    ids: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.good)

    @property
    def identical(self) -> int:
        """Number of pairs whose sentences are the same."""
        pairs = zip(self.good.sentences, self.bad.sentences, strict=True)
        return sum(good == bad for good, bad in pairs)

    def without_identical(self) -> MinimalPairs:
        """Return the pairs whose sentences differ.

        Raises:
            CorpusFormatError: ``E_NO_DATA`` if there are none.
        """
        pairs = zip(self.good.sentences, self.bad.sentences, strict=True)
        kept = [place for place, (good, bad) in enumerate(pairs) if good != bad]
        if not kept:
            raise CorpusFormatError(
                f"{self.good.name}: the sentences of every pair are the same.", code="E_NO_DATA"
            )
        return MinimalPairs(
            _taken(self.good, kept),
            _taken(self.bad, kept),
            {name: tuple(names[place] for place in kept) for name, names in self.groups.items()},
            None if self.ids is None else tuple(self.ids[place] for place in kept),
        )

    def names(self) -> tuple[str, ...]:
        """Return the name of each pair: its id, or its line."""
        return self.ids if self.ids is not None else tuple(map(str, self.good.lines))

    def with_unknown_words(self, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
        """Return for each pair whether one of its words is unknown."""
        pairs = zip(self.good.sentences, self.bad.sentences, strict=True)
        known = vocabulary.__contains__
        return np.array([not all(map(known, chain(*pair))) for pair in pairs], np.bool_)


def _taken(text: MeasuredText, places: list[int]) -> MeasuredText:
    return MeasuredText(
        tuple(text.sentences[place] for place in places),
        tuple(text.lines[place] for place in places),
        text.documents[places],
        text.name,
        text.sha256,
    )


def holds_json_lines(source: Source) -> bool:
    """Whether the name of a file says that it has JSON lines."""
    return _suffix(source) in (".jsonl", ".ndjson")


def holds_table(source: Source) -> bool:
    """Whether the name of a file says that it is a table."""
    return _suffix(source) in (".tsv", ".csv", ".parquet")


def _suffix(source: Source) -> str:
    path = Path(source)
    while path.suffix in COMPRESSION:
        path = path.with_suffix("")
    return path.suffix


def read_pair_files(
    good: Source,
    bad: Source,
    *,
    tokenizing: bool = False,
    tokenize: Tokenizing = tokenize_words,
) -> MinimalPairs:
    """Return the pairs of two files with one sentence per line, in the same order.

    Args:
        good: File of the good sentences.
        bad: File of the bad ones.
        tokenizing: Whether they are raw text, which is tokenized first.
        tokenize: What takes raw text apart.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if they do not match, ``E_NO_DATA`` if there is
            no pair.
    """
    if str(good) == str(bad) == "-":
        raise UsageError("only one of the two files can be standard input.")
    split = _splitter(tokenize if tokenizing else None)
    wanted = Wanted.RAW_TEXT if tokenizing else Wanted.TEXT
    names, checksums, lines = [], [], []
    for source in (good, bad):
        digest = hashlib.sha256()
        found = [split(line) for line in lines_of(hashed_blocks(source, digest, wanted), source)]
        while found and not found[-1]:
            found.pop()
        names.append(source_name(source))
        checksums.append(digest.hexdigest())
        lines.append(found)
    if len(lines[0]) != len(lines[1]):
        raise _unpaired(names, f"{names[0]} has {len(lines[0])} lines, {names[1]} {len(lines[1])}")
    kept = []
    for number, (first, second) in enumerate(zip(*lines, strict=True), 1):
        if bool(first) != bool(second):
            blank = names[0] if second else names[1]
            raise _unpaired(names, f"line {number} is blank in {blank} only")
        if first:
            kept.append(number)
    first_text, second_text = (
        _text([found[number - 1] for number in kept], kept, name, checksum)
        for found, name, checksum in zip(lines, names, checksums, strict=True)
    )
    return MinimalPairs(first_text, second_text, groups={})


def read_pair_table(
    source: Source, *, tokenizing: bool = False, tokenize: Tokenizing = tokenize_words
) -> MinimalPairs:
    """Return the pairs of a table with the columns ``good`` and ``bad``.

    A column ``condition``, or ``UID``, ``linguistics_term`` and ``field`` as BLiMP names them,
    groups the pairs, and the column ``id`` or ``item`` names them.

    Args:
        source: The table: tab-separated without quotes, or named .csv or .parquet.
        tokenizing: Whether sentences are raw text, which is tokenized first.
        tokenize: What takes raw text apart.

    Raises:
        CorpusFormatError: ``E_PAIRS`` with file and line for anything but a pair, ``E_NO_DATA`` if
            there is none.
    """
    split = _splitter(tokenize if tokenizing else None)
    name = source_name(source)
    digest = hashlib.sha256()
    table = read_table(source, "E_PAIRS", digest)
    header = [str(each) for each in table[0][1]] if table else []
    if not {"good", "bad"} <= set(header):
        found = ", ".join(map(visible, header)) or "none"
        raise _no_row(name, 1, f"the first line must name the columns good and bad; it has {found}")
    sides: dict[str, list[tuple[str, ...]]] = {"good": [], "bad": []}
    numbers: list[int] = []
    others: dict[str, list[str]] = {each: [] for each in header if each not in sides}
    for number, row in table[1:]:
        if len(row) != len(header):
            raise _no_row(name, number, f"it has {len(row)} cells for {len(header)} columns")
        cells = dict(zip(header, map(text_of, row), strict=True))
        for side, sentences in sides.items():
            sentences.append(split(cells[side]))
            if not sentences[-1]:
                raise _no_row(name, number, f'the cell "{side}" has no sentence')
        for each, values in others.items():
            values.append(cells[each])
        numbers.append(number)
    key = next((each for each in ("id", "item") if each in others), None)
    if key is not None and len(set(others[key])) < len(others[key]):
        key = None  # an item in several conditions: rows have no names of their own
    groups = {each: tuple(others[each]) for each in GROUP_KEYS if each in others}
    if "UID" not in groups and "condition" in others:
        groups["UID"] = tuple(others["condition"])
    checksum = digest.hexdigest()
    return MinimalPairs(
        _text(sides["good"], numbers, name, checksum),
        _text(sides["bad"], numbers, name, checksum),
        groups,
        None if key is None else tuple(others[key]),
    )


def _no_row(name: str, number: int, what: str) -> CorpusFormatError:
    return CorpusFormatError(
        f"{name}:{number}: {what}. A table of pairs has the columns good and bad, with tabs "
        "between columns, or is named .csv or .parquet.",
        code="E_PAIRS",
        path=name,
        line=number,
    )


def read_json_pairs(
    source: Source, *, tokenizing: bool = True, tokenize: Tokenizing = tokenize_words
) -> MinimalPairs:
    """Return the pairs of a JSON Lines file with the keys of BLiMP.

    Each line is an object with ``sentence_good`` and ``sentence_bad``; ``field``,
    ``linguistics_term`` and ``UID`` group the pairs, where every line has them.

    Args:
        source: The file.
        tokenizing: Whether sentences are raw text, which is tokenized first.
        tokenize: What takes raw text apart.

    Raises:
        CorpusFormatError: ``E_PAIRS`` with file and line for anything but a pair, ``E_NO_DATA`` if
            there is none.
    """
    split = _splitter(tokenize if tokenizing else None)
    name = source_name(source)
    digest = hashlib.sha256()
    good: list[tuple[str, ...]] = []
    bad: list[tuple[str, ...]] = []
    numbers: list[int] = []
    groups: dict[str, list[str]] = {key: [] for key in GROUP_KEYS}
    for number, line in enumerate(lines_of(hashed_blocks(source, digest), source), 1):
        if not line.strip():
            continue
        record = _record(line, name, number)
        for key, sentences in (("sentence_good", good), ("sentence_bad", bad)):
            text = record.get(key)
            words = split(text) if isinstance(text, str) else ()
            if not words:
                raise _no_pair(name, number, f'it has no sentence "{key}"')
            sentences.append(words)
        for key, names in groups.items():
            value = record.get(key)
            if isinstance(value, str):
                names.append(value)
        numbers.append(number)
    checksum = digest.hexdigest()
    return MinimalPairs(
        _text(good, numbers, name, checksum),
        _text(bad, numbers, name, checksum),
        {key: tuple(names) for key, names in groups.items() if len(names) == len(good)},
    )


def _splitter(tokenize: Tokenizing | None) -> Callable[[str], tuple[str, ...]]:
    """Return what takes a sentence apart: at spaces, without a tokenizer."""
    return split_words if tokenize is None else (lambda line: tokenize(line).tokens)


def _record(line: str, name: str, number: int) -> dict[str, object]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        shown = visible(line[:40])
        raise _no_pair(name, number, f'"{shown}" is not JSON') from error
    if not isinstance(found, dict):
        raise _no_pair(name, number, "it is not a JSON object")
    return found


def _no_pair(name: str, number: int, what: str) -> CorpusFormatError:
    return CorpusFormatError(
        f"{name}:{number}: {what}. Every line must be a JSON object with the sentences "
        '"sentence_good" and "sentence_bad".',
        code="E_PAIRS",
        path=name,
        line=number,
    )


def _unpaired(names: list[str], what: str) -> CorpusFormatError:
    return CorpusFormatError(
        f"{what}, so the sentences do not form pairs. Line n of one file belongs to line n of the "
        "other.",
        code="E_LENGTH_MISMATCH",
        path=names[1],
    )


def _text(
    sentences: list[tuple[str, ...]], lines: list[int], name: str, checksum: str
) -> MeasuredText:
    if not sentences:
        raise CorpusFormatError(
            f"{name}: contains no sentence. Is it the right file?", code="E_NO_DATA", path=name
        )
    documents = np.zeros(len(sentences), dtype=np.int64)
    return MeasuredText(tuple(sentences), tuple(lines), documents, name, checksum)
