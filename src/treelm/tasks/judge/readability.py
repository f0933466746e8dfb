"""Readability: people say of each translation whether its grammar and its meaning are good.

A sheet has one row for each different translation of a sentence, without the name of the system, in
random order; some rows are there twice, to see whether raters agree with themselves. The four
classes are perfect, meaning only, grammar only, and wrong. Nothing automatic can stand for this.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from treelm.characters import visible
from treelm.corpus.files import Source, source_name, write_atomically
from treelm.errors import CorpusFormatError, UsageError
from treelm.seeds import random_bits
from treelm.tasks.evaluate.significance import holm, mcnemar
from treelm.tasks.judge.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from treelm.tasks.judge.export import (
    REPEATED,
    check_lengths,
    first_by_chance,
    key_beside,
    sha256_of_lines,
    stripped_lines,
)
from treelm.tasks.judge.key import read_json_key
from treelm.tasks.judge.sheet import SheetReader, table_bytes

#: Classes: grammar and meaning good, meaning only, grammar only, neither.
CLASSES = ("perfect", "meaning only", "grammar only", "wrong")

_REQUIRED = ("item", "grammar", "meaning")
_ALLOWED = ("item", "reference", "text", "grammar", "meaning", "rater", "comment")
_ANSWERS = {"good": True, "bad": False}
# Counters of random numbers: what they decide.
_CHOSEN, _ORDER, _REPEATED_ROWS, _ORDER_AGAIN = range(4)


class ReadabilityItem(BaseModel):
    """A row of the sheet.

    Args:
        item: Name of the row.
        line: Line of the files that it shows, counted from 1.
        systems: Numbers of the systems with this text, the first being 0.
        repeated: Whether the row is there a second time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    item: str = Field(min_length=1)
    line: int = Field(ge=1)
    systems: list[int] = Field(min_length=1)
    repeated: bool = False


class ReadabilityKey(BaseModel):
    """Everything raters must not see."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["treelm-readability-key"] = "treelm-readability-key"
    version: Literal[1] = 1
    export: str
    seed: int
    systems: list[str] = Field(min_length=1)
    sha256: list[str]
    items: list[ReadabilityItem]


@dataclass(frozen=True)
class ReadabilityExport:
    """What an export did.

    Args:
        sheet: The file for raters.
        key: The file that they must not see.
        sentences: Number of sentences on the sheet.
        rows: Number of different translations of these.
        repeated: Number of rows that are there twice.
    """

    sheet: Path
    key: Path
    sentences: int
    rows: int
    repeated: int

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return asdict(self) | {"sheet": str(self.sheet), "key": str(self.key)}


def export_readability(
    systems: Sequence[Source],
    output: Source,
    *,
    seed: int,
    references: Source | None = None,
    number: int | None = None,
    repeated: float = REPEATED,
) -> ReadabilityExport:
    """Write a blinded sheet of translations for raters, and its key beside it.

    Args:
        systems: Files of translations of the same sentences, one per line.
        output: Sheet to write; the key has the same name, ending in ``.key.json``.
        seed: Seed of choice and order.
        references: Right translations, shown beside the others.
        number: Number of sentences to choose at random; None for all.
        repeated: Share of the rows that are shown twice.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if the files have different numbers of lines.
        UsageError: for more sentences than there are, or an output without room for a key.
    """
    key_path = key_beside(output)
    if not 0 <= repeated <= 1:
        raise UsageError("the share of repeated rows must be between 0 and 1.")
    files = {f"system {place}": file for place, file in enumerate(systems, 1)}
    if references is not None:
        files["references"] = references
    for file in files.values():
        if os.path.realpath(file) in (os.path.realpath(output), os.path.realpath(key_path)):
            raise UsageError(f"{source_name(file)}: the sheet or its key would replace this input.")
    texts = {name: stripped_lines(file) for name, file in files.items()}
    check_lengths(files, texts)
    right = texts.pop("references", None)
    translations = list(texts.values())
    lines = range(1, len(translations[0]) + 1)
    if number is not None and not 1 <= number <= len(lines):
        raise UsageError(f"{number} sentences were requested; there are {len(lines)}.")
    chosen = list(lines) if number is None else first_by_chance(lines, number, seed, _CHOSEN)
    rows = [
        (line, text, [place for place, each in enumerate(translations) if each[line - 1] == text])
        for line in chosen
        for text in dict.fromkeys(each[line - 1] for each in translations)
    ]
    again = first_by_chance(range(len(rows)), round(repeated * len(rows)), seed, _REPEATED_ROWS)
    shown = [(random_bits(seed, place, _ORDER), place, False) for place in range(len(rows))]
    shown += [(random_bits(seed, place, _ORDER_AGAIN), place, True) for place in again]
    shown.sort()
    hashes = [sha256_of_lines(each) for each in translations]
    name = hashlib.sha256(repr((hashes, seed, shown)).encode()).hexdigest()[:6]
    items = [
        ReadabilityItem(
            item=f"{number}-{name}",
            line=rows[place][0],
            systems=rows[place][2],
            repeated=is_repeated,
        )
        for number, (_, place, is_repeated) in enumerate(shown, 1)
    ]
    key = ReadabilityKey(
        export=name,
        seed=seed,
        systems=[Path(source_name(each)).name for each in systems],
        sha256=hashes,
        items=items,
    )
    cells = [
        [item.item, *([] if right is None else [right[item.line - 1]]), rows[place][1]]
        for item, (_, place, _) in zip(items, shown, strict=True)
    ]
    columns = [column for column in _ALLOWED if column != "reference" or right is not None]
    with write_atomically(key_path) as key_file, write_atomically(output) as sheet_file:
        key_file.write(key.model_dump_json(indent=1).encode() + b"\n")
        sheet_file.write(table_bytes(columns, cells))
    return ReadabilityExport(Path(output), key_path, len(chosen), len(rows), len(again))


class Judgement(NamedTuple):
    """What one rater said about one row, and where it was read."""

    item: str
    rater: str
    grammar: bool
    meaning: bool
    place: str

    @property
    def kind(self) -> str:
        """The class."""
        return class_of(grammar=self.grammar, meaning=self.meaning)


def class_of(*, grammar: bool, meaning: bool) -> str:
    """Return the class of a translation.

    Examples:
        >>> class_of(grammar=False, meaning=True)
        'meaning only'
    """
    return CLASSES[2 * (not meaning) + (not grammar)]


def read_readability(source: Source) -> Iterable[Judgement]:
    """Yield the judgements in a sheet that was filled in.

    Raises:
        CorpusFormatError: ``E_JUDGEMENTS`` with file and line for anything malformed.
    """
    reading = SheetReader(source, required=_REQUIRED, allowed=_ALLOWED)
    for row in reading.rows():
        grammar = reading.answer(row, "grammar", _ANSWERS)
        meaning = reading.answer(row, "meaning", _ANSWERS)
        if grammar is None and meaning is None:
            continue
        if grammar is None or meaning is None:
            reading.fail("one of grammar and meaning is empty; rate both or none.")
        yield Judgement(row["item"], reading.rater(row), grammar, meaning, reading.place)


@dataclass(frozen=True, kw_only=True)
class Readability:
    """What people said about systems.

    Args:
        counts: For each system the number of sentences of each class; of several raters more than
            half must call something good.
        differences: Pairs of systems, and for each of grammar, meaning and perfect the two-sided
            p-value of McNemar's test; those of one aspect are corrected by Holm's method.
        sentences: Number of sentences of which every system's translation was rated.
        ratings: Number of ratings, without those of repeated rows.
        raters: Number of raters.
        alpha: Krippendorff's alpha of the classes; None where it is not defined.
        fleiss: Fleiss' kappa; None where not all rows were rated equally often.
        cohen: Cohen's kappa; None unless there are two raters.
        repeated: Number of second ratings of a row by the same rater.
        self_agreement: Share of these that agree with the first; None if there are none.
    """

    counts: dict[str, dict[str, int]]
    differences: dict[str, dict[str, float]]
    sentences: int
    ratings: int
    raters: int
    alpha: float | None
    fleiss: float | None
    cohen: float | None
    repeated: int
    self_agreement: float | None

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return asdict(self)


def import_readability(sheets: Sequence[Source], key: Source) -> Readability:
    """Return what the raters of filled-in sheets said.

    Raises:
        CorpusFormatError: ``E_JUDGEMENTS`` with file and line for a malformed sheet, an item of
            another sheet, or a row rated twice by the same rater; ``E_JUDGE_KEY`` for an invalid
            key; ``E_NO_DATA`` if nothing was rated.
    """
    known = read_json_key(key, ReadabilityKey)
    items = {item.item: item for item in known.items}
    if any(place >= len(known.systems) for item in known.items for place in item.systems):
        raise CorpusFormatError(
            f"{source_name(key)}: this key names a system that it does not list.",
            code="E_JUDGE_KEY",
        )
    seen: dict[tuple[str, str], Judgement] = {}
    for sheet in sheets:
        for each in read_readability(sheet):
            if each.item not in items:
                _refuse(
                    each,
                    f'the item "{visible(each.item[:40])}" is not in the key; its items end in '
                    f"-{visible(known.export[:40])}. Does the key belong to this sheet?",
                )
            if (each.rater, each.item) in seen:
                _refuse(
                    each,
                    f'"{visible(each.rater[:40])}" already rated the item {visible(each.item)}, in '
                    f"{seen[each.rater, each.item].place}.",
                )
            seen[each.rater, each.item] = each
    first = {key: each for key, each in seen.items() if not items[each.item].repeated}
    if not first:
        raise CorpusFormatError("nothing was rated.", code="E_NO_DATA")
    return _measured(known, items, list(first.values()), list(seen.values()))


def _measured(
    key: ReadabilityKey,
    items: dict[str, ReadabilityItem],
    first: Sequence[Judgement],
    everything: Sequence[Judgement],
) -> Readability:
    by_item: dict[str, list[Judgement]] = {}
    for each in first:
        by_item.setdefault(each.item, []).append(each)
    good: dict[tuple[int, int], tuple[bool, bool]] = {}
    for name, found in by_item.items():
        grammar = 2 * sum(each.grammar for each in found) > len(found)
        meaning = 2 * sum(each.meaning for each in found) > len(found)
        for system in items[name].systems:
            good[items[name].line, system] = grammar, meaning
    places = range(len(key.systems))
    lines = sorted(
        line for line in {line for line, _ in good} if all((line, each) in good for each in places)
    )
    counts = {}
    for place, system_name in enumerate(_distinct(key.systems)):
        found_classes = Counter(
            class_of(grammar=grammar, meaning=meaning)
            for grammar, meaning in (good[line, place] for line in lines)
        )
        counts[system_name] = {name: found_classes[name] for name in CLASSES}
    classes: dict[str, list[str]] = {
        name: [each.kind for each in found] for name, found in by_item.items()
    }
    second = {
        (each.rater, items[each.item].line, tuple(items[each.item].systems)): each.kind
        for each in everything
        if items[each.item].repeated
    }
    again = [
        second[who] == each.kind
        for each in first
        if (who := (each.rater, items[each.item].line, tuple(items[each.item].systems))) in second
    ]
    return Readability(
        counts=counts,
        differences=_differences(_distinct(key.systems), good, lines),
        sentences=len(lines),
        ratings=len(first),
        raters=len({each.rater for each in everything}),
        alpha=krippendorff_alpha(list(classes.values())),
        fleiss=fleiss_kappa(list(classes.values())),
        cohen=_cohen(first),
        repeated=len(again),
        self_agreement=sum(again) / len(again) if again else None,
    )


def _differences(
    systems: Sequence[str],
    good: dict[tuple[int, int], tuple[bool, bool]],
    lines: Sequence[int],
) -> dict[str, dict[str, float]]:
    """Return the p-values of all pairs of systems, aspect by aspect."""
    aspects = {
        "grammar": lambda answers: answers[0],
        "meaning": lambda answers: answers[1],
        "perfect": all,
    }
    pairs = list(combinations(range(len(systems)), 2))
    found: dict[str, dict[str, float]] = {f"{systems[a]} - {systems[b]}": {} for a, b in pairs}
    for aspect, is_good in aspects.items():
        p_values = []
        for a, b in pairs:
            answers = [(is_good(good[line, a]), is_good(good[line, b])) for line in lines]
            p_values.append(
                mcnemar(
                    sum(ours and not theirs for ours, theirs in answers),
                    sum(theirs and not ours for ours, theirs in answers),
                )
            )
        for name, p_value in zip(found, holm(p_values), strict=True):
            found[name][aspect] = p_value
    return found


def _cohen(first: Sequence[Judgement]) -> float | None:
    raters = sorted({each.rater for each in first})
    if len(raters) != 2:
        return None
    answers: dict[str, dict[str, str]] = {}
    for each in first:
        answers.setdefault(each.item, {})[each.rater] = each.kind
    both = [found for found in answers.values() if len(found) == 2]
    return cohen_kappa([(found[raters[0]], found[raters[1]]) for found in both])


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names of systems, numbered where some are the same."""
    if len(set(names)) == len(names):
        return list(names)
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


def _refuse(each: Judgement, message: str) -> None:
    path, _, line = each.place.rpartition(":")
    raise CorpusFormatError(
        f"{each.place}: {message}", code="E_JUDGEMENTS", path=path, line=int(line)
    )
