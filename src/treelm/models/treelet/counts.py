"""Treelet counts as a folder: counted anywhere, merged, and turned into a model later."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from treelm.corpus.files import Source
from treelm.errors import ModelFileError, UsageError, option
from treelm.events.counts import EventCounter, EventCounts, Ids
from treelm.events.extract import EventSymbols
from treelm.models.interface.config import explain
from treelm.models.interface.packed_tree_model import only_transform
from treelm.models.ngram.counts import union_of_words
from treelm.models.run import Run
from treelm.models.treelet.config import WIDTHS, TreeletConfig
from treelm.models.treelet.events import TreeletCounts
from treelm.parallel.memory import MemoryLimit
from treelm.store.folder import TABLES, FolderWriter, ModelFolder, read_folder, save_folder
from treelm.store.manifest import Description
from treelm.store.schema import (
    Tensor,
    Tensors,
    columns,
    damage_in,
    ids,
    offsets,
    read_tensors,
    read_words,
    write_words,
)
from treelm.transforms.treelet import Treelet

SYSTEM = "treelet_counts"
LABELS, BASES = "labels.txt", "categories.txt"
EVENTS = ("nonterminal", "terminal")


def _rows_after_the_first(array: npt.NDArray[Any], found: Tensors) -> str | None:
    return columns("labels", "yields")(array[1:], found)  # rule 0 is what stands above a root


_SCHEMA = (
    Tensor("yield_labels", np.uint32, ("symbols of yields",), ids("labels")),
    Tensor("yield_starts", np.uint64, ("yields+1",), offsets("symbols of yields", step=1)),
    Tensor("rules", np.uint32, ("rules+1", 2), _rows_after_the_first),
)


def save_treelet_counts(counts: TreeletCounts, variant: str, folder: Source) -> None:
    """Save counts as a folder that appears only when it is complete."""

    def write(writer: FolderWriter) -> None:
        tensors: dict[str, npt.NDArray[Any]] = {
            item.name: getattr(counts.symbols, item.name) for item in _SCHEMA
        }
        for name in EVENTS:
            tensors |= getattr(counts, name).to_tensors(name)
        writer.tables(TABLES, tensors)
        writer.lines(LABELS, counts.symbols.labels)
        writer.lines(BASES, counts.symbols.bases)
        write_words(writer, counts.vocabulary)

    description = Description(
        system=SYSTEM,
        config={
            "variant": variant,
            "sentences": counts.sentences,
            "marked_tags": list(counts.marked_tags),
        },
        vocabulary=counts.vocabulary.fingerprint,
        corpora=counts.corpora,
        transforms=(counts.transform.to_config(),),
    )
    save_folder(Path(folder), description, write)


def load_treelet_counts(folder: Source) -> tuple[TreeletCounts, TreeletConfig]:
    """Return the counts of a folder, mapped and not copied, and their options.

    Raises:
        ModelFileError: if the folder has no treelet counts, or they were changed.
    """
    return read_folder(Path(folder), _read_counts)


def _read_counts(opened: ModelFolder) -> tuple[TreeletCounts, TreeletConfig]:
    manifest = opened.manifest
    sentences = manifest.config.get("sentences")
    if manifest.system != SYSTEM or not isinstance(sentences, int) or sentences < 0:
        raise ModelFileError(
            f"{opened.path}: this folder has no treelet counts; make some with "
            "`treelm counts build --treelets`.",
            code="E_MANIFEST",
        )
    with damage_in(opened, again="count again"):
        transform = only_transform(opened, Treelet)
        config = _options(manifest.config, transform)
        vocabulary = read_words(opened)
        words, tensors = len(vocabulary), opened.tables()
        labels, bases = opened.lines(LABELS), opened.lines(BASES)
        if len(labels) != len(bases):
            raise ModelFileError(
                f"{LABELS} and {BASES} have different numbers of lines", code="E_MODEL_TABLES"
            )
        found = read_tensors(tensors, _SCHEMA, labels=len(labels))
        rows = (found["yield_labels"], found["yield_starts"], found["rules"])
        symbols = EventSymbols(labels, *rows, words, words, words + 1, bases)
        nonterminal, terminal = (
            EventCounts.from_tensors(tensors, name, largest=largest[: columns + 1])
            for name, largest, columns in zip(
                EVENTS, largest_ids(symbols), WIDTHS[config.variant], strict=True
            )
        )
    counts = TreeletCounts(
        nonterminal,
        terminal,
        symbols,
        vocabulary,
        transform,
        sentences,
        manifest.corpora,
        config.marked_tags,
    )
    return counts, config


#: Options that counts have settled.
_SETTLED = ("variant", "transforms", "vp_label", "temporal", "marked_tags")


@dataclass(frozen=True, eq=False)
class CountedTreelets:
    """Counts, and the options they were made with.

    Args:
        counts: The counts.
        config: Options; those of the counting matter.
    """

    counts: TreeletCounts
    config: TreeletConfig

    @classmethod
    def from_folders(cls, folders: Sequence[Source], run: Run) -> CountedTreelets:
        """Return the counts of folders, merged where there are several."""
        parts = [load_treelet_counts(folder) for folder in folders]
        counts, config = parts[0]
        if len(parts) > 1:
            counts = merge_treelet_counts(
                [part for part, _ in parts], threads=run.threads, memory=run.memory
            )
        counts.check()
        return cls(counts, config)

    def config_with(self, options: TreeletConfig) -> TreeletConfig:
        """Return options with those that the counts have settled.

        Raises:
            UsageError: if one of these was given.
        """
        given = sorted(set(_SETTLED) & options.model_fields_set)
        if given:
            raise UsageError(
                f"counts cannot be combined with what says how trees are counted: {given[0]}."
            )
        settled = {name: getattr(self.config, name) for name in _SETTLED}
        return options.model_copy(update=settled)


def _options(config: Mapping[str, object], transform: Treelet) -> TreeletConfig:
    """Return the options that counts go with."""
    try:
        return TreeletConfig.model_validate(
            {
                "variant": config.get("variant"),
                "transforms": sorted(transform.transforms),
                "vp_label": transform.vp_label,
                "marked_tags": config.get("marked_tags"),
                "temporal": sorted(transform.temporal or ()),
            }
        )
    except ValidationError as error:
        raise ModelFileError(explain(error), code="E_MODEL_TABLES") from error


def largest_ids(symbols: EventSymbols) -> tuple[list[int], list[int]]:
    """Return the largest id of every column of both kinds of events."""
    label, rule = len(symbols.labels) - 1, len(symbols.rules) - 1
    phrase = [max(len(symbols.yield_starts) - 2, 0), label, label, rule]
    word = [symbols.words - 1, label, label, rule, symbols.start, symbols.start]
    return phrase, word


class SymbolUnion:
    """Symbols of several counts, in order of first occurrence."""

    def __init__(self, first: EventSymbols) -> None:
        reserved = 4
        self.labels = {label: i for i, label in enumerate(first.labels[:reserved])}
        self.bases = list(first.bases[:reserved])
        self.yields: dict[tuple[int, ...], int] = {}
        self.rules: dict[tuple[int, int], int] = {}

    def add(self, symbols: EventSymbols) -> tuple[Ids, Ids, Ids]:
        """Return the new ids of the labels, right-hand sides and rules of a part."""
        for label, base in zip(symbols.labels, symbols.bases, strict=True):
            if label not in self.labels:
                self.labels[label] = len(self.labels)
                self.bases.append(base)
        labels = np.array([self.labels[label] for label in symbols.labels], dtype=np.uint32)
        mapped = labels[symbols.yield_labels].tolist()
        starts = symbols.yield_starts.tolist()
        yields = np.array(
            [
                self.yields.setdefault(tuple(mapped[first:last]), len(self.yields))
                for first, last in itertools.pairwise(starts)
            ],
            dtype=np.uint32,
        )
        rules = np.zeros(len(symbols.rules), dtype=np.uint32)
        for number, (label, right) in enumerate(symbols.rules[1:].tolist(), 1):
            key = (int(labels[label]), int(yields[right]))
            rules[number] = self.rules.setdefault(key, len(self.rules) + 1)
        return labels, yields, rules

    def symbols(self, words: int) -> EventSymbols:
        """Return all symbols."""
        lengths = [len(right) for right in self.yields]
        none = 0xFFFFFFFF
        return EventSymbols(
            tuple(self.labels),
            np.array([label for right in self.yields for label in right], dtype=np.uint32),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64),
            np.array([(none, none), *self.rules], dtype=np.uint32),
            words,
            words,
            words + 1,
            tuple(self.bases),
        )


class NewIds(NamedTuple):
    """What the ids of some counts are called where they are added up."""

    labels: Ids
    yields: Ids
    rules: Ids
    words: Ids
    """With the end of a sentence and the padding before it."""

    def columns(self, name: str) -> tuple[Ids, ...]:
        """Return the new ids of every column of one kind of events."""
        phrase = (self.yields, self.labels, self.labels, self.rules)
        word = (self.words, self.labels, self.labels, self.rules, self.words, self.words)
        return {"nonterminal": phrase, "terminal": word}[name]

    def add(self, events: EventCounts, name: str, counter: EventCounter) -> None:
        """Add events of one kind to a counter under their new ids.

        Args:
            events: The events.
            name: Their kind.
            counter: Adds them up.
        """
        columns = self.columns(name)
        for rows, counts in events.blocks():
            mapped = [columns[column][rows[:, column]] for column in range(rows.shape[1])]
            counter.add(np.stack(mapped, axis=1), counts.astype(np.uint64))


def merge_treelet_counts(
    parts: Sequence[TreeletCounts], *, threads: int = 1, memory: MemoryLimit | None = None
) -> TreeletCounts:
    """Return the counts of several treebanks as if they had been counted together.

    Args:
        parts: Counts of the same variant and transforms.
        threads: Number of threads.
        memory: Memory limit.

    Raises:
        UsageError: if there are none, or their options differ.
        VocabularyError: ``E_VOCABULARY_MISMATCH`` if vocabularies differ and some are closed.
    """
    if not parts:
        raise UsageError("there are no counts to merge.")
    first = parts[0]
    ways = {
        (
            part.nonterminal.columns,
            part.terminal.columns,
            str(part.transform.to_config()),
            part.marked_tags,
        )
        for part in parts
    }
    if len(ways) > 1:
        raise UsageError(
            "counts of different variants or transforms cannot be merged: count all trees with the "
            f"same options, including {option('temporal')} and {option('mark_tags')}."
        )
    vocabulary = first.vocabulary
    if any(part.vocabulary.fingerprint != vocabulary.fingerprint for part in parts):
        vocabulary = union_of_words([part.vocabulary for part in parts])
    words = len(vocabulary)
    union = SymbolUnion(first.symbols)
    share = memory.divided(2) if memory is not None else None
    counters = [
        EventCounter(getattr(first, name).columns, threads=threads, memory=share) for name in EVENTS
    ]
    for part in parts:
        own = vocabulary.ids_of(part.vocabulary.symbols)
        ends = np.array([words, words + 1], dtype=np.uint32)
        maps = NewIds(*union.add(part.symbols), np.append(own, ends))
        for counter, name in zip(counters, EVENTS, strict=True):
            maps.add(getattr(part, name), name, counter)
    nonterminal, terminal = (counter.finish() for counter in counters)
    return TreeletCounts(
        nonterminal,
        terminal,
        union.symbols(words),
        vocabulary,
        first.transform,
        sum(part.sentences for part in parts),
        tuple(record for part in parts for record in part.corpora),
        first.marked_tags,
    )
