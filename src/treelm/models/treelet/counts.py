"""Treelet counts as a folder: counted anywhere, merged, and turned into a model later."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from treelm.corpus.files import Source, read_lines
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import ModelFileError, TreelmError, UsageError
from treelm.events.counts import EventCounter, EventCounts, Ids, Places
from treelm.events.extract import EventSymbols
from treelm.models.interface.model import explain
from treelm.models.ngram.counts import union_of_words
from treelm.models.treelet.config import WIDTHS, TreeletConfig
from treelm.models.treelet.events import TreeletCounts
from treelm.parallel.memory import MemoryLimit
from treelm.store.folder import FolderWriter, open_folder, save_folder
from treelm.store.manifest import Description
from treelm.transforms.transform import transform_from_config
from treelm.transforms.treelet import Treelet

SYSTEM = "treelet_counts"
WORDS, LABELS, BASES, TABLES = "words.txt", "labels.txt", "categories.txt", "tables.safetensors"
_EVENTS = ("nonterminal", "terminal")
_ARRAYS: dict[str, tuple[type[np.generic], int]] = {
    "yield_labels": (np.uint32, 1),
    "yield_starts": (np.uint64, 1),
    "rules": (np.uint32, 2),
}


def save_treelet_counts(counts: TreeletCounts, variant: str, folder: Source) -> None:
    """Save counts as a folder that appears only when it is complete."""

    def write(writer: FolderWriter) -> None:
        tensors: dict[str, npt.NDArray[Any]] = {
            name: getattr(counts.symbols, name) for name in _ARRAYS
        }
        for name in _EVENTS:
            tensors |= getattr(counts, name).to_tensors(name)
        writer.tables(TABLES, tensors)
        writer.text(LABELS, "".join(f"{label}\n" for label in counts.symbols.labels))
        writer.text(BASES, "".join(f"{base}\n" for base in counts.symbols.bases))
        save_vocabulary(counts.vocabulary, writer.file(WORDS))

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
    opened = open_folder(Path(folder))

    def damaged(what: str) -> ModelFileError:
        return ModelFileError(f"{opened.path}: {what}. Count again.", code="E_MODEL_TABLES")

    manifest = opened.manifest
    sentences = manifest.config.get("sentences")
    try:
        transform = transform_from_config(manifest.transforms[0]) if manifest.transforms else None
    except TreelmError as error:
        raise damaged(str(error).rstrip(".")) from error
    if manifest.system != SYSTEM or not isinstance(sentences, int) or sentences < 0:
        raise ModelFileError(
            f"{opened.path}: this folder has no treelet counts; make some with "
            "`treelm counts build --treelets`.",
            code="E_MANIFEST",
        )
    if not isinstance(transform, Treelet):
        raise damaged("the manifest does not name the treelet transform")
    try:
        config = TreeletConfig.model_validate(
            {
                "variant": manifest.config.get("variant"),
                "transforms": sorted(transform.transforms),
                "vp_label": transform.vp_label,
                "marked_tags": manifest.config.get("marked_tags"),
                "temporal": sorted(transform.temporal or ()),
            }
        )
    except ValidationError as error:
        raise damaged(explain(error).rstrip(".")) from error
    vocabulary = load_vocabulary(opened.file(WORDS))
    if vocabulary.fingerprint != manifest.vocabulary:
        raise damaged(f"{WORDS} is not the one the manifest names")
    tensors = opened.tables(TABLES)
    for name, (kind, dimensions) in _ARRAYS.items():
        array = tensors.get(name)
        if array is None or array.dtype != kind or array.ndim != dimensions:
            raise damaged(f'the array "{name}" is missing or of the wrong type')
    labels, bases = (tuple(read_lines(opened.file(name))) for name in (LABELS, BASES))
    words = len(vocabulary)
    symbols = EventSymbols(
        labels,
        tensors["yield_labels"],
        tensors["yield_starts"],
        tensors["rules"],
        words,
        words,
        words + 1,
        bases,
    )
    largest = _largest(symbols, damaged)
    phrase_columns, word_columns = WIDTHS[config.variant]
    counts = TreeletCounts(
        EventCounts.from_tensors(tensors, "nonterminal", largest=largest[0][: phrase_columns + 1]),
        EventCounts.from_tensors(tensors, "terminal", largest=largest[1][: word_columns + 1]),
        symbols,
        vocabulary,
        transform,
        sentences,
        manifest.corpora,
        config.marked_tags,
    )
    return counts, config


def _largest(symbols: EventSymbols, damaged: Any) -> tuple[list[int], list[int]]:
    """Return the largest id of every column of both kinds of events, after checking all parts."""
    labels, starts, rules = len(symbols.labels), symbols.yield_starts, symbols.rules
    if (
        labels != len(symbols.bases)
        or not len(starts)
        or starts[0] != 0
        or starts[-1] != len(symbols.yield_labels)
        or (np.diff(starts.astype(np.int64)) < 1).any()
        or (symbols.yield_labels >= labels).any()
        or rules.shape[1] != 2
        or not len(rules)
        or (rules[1:, 0] >= labels).any()
        or (rules[1:, 1] >= len(starts) - 1).any()
    ):
        raise damaged("labels, right-hand sides and rules do not fit together")
    last_label, last_rule = labels - 1, len(rules) - 1
    phrase = [max(len(starts) - 2, 0), last_label, last_label, last_rule]
    word = [symbols.words - 1, last_label, last_label, last_rule, symbols.start, symbols.start]
    return phrase, word


class _Union:
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
            "same options, including --temporal and --mark-tags."
        )
    vocabulary = first.vocabulary
    if any(part.vocabulary.fingerprint != vocabulary.fingerprint for part in parts):
        vocabulary = union_of_words([part.vocabulary for part in parts])
    words = len(vocabulary)
    union = _Union(first.symbols)
    share = memory.divided(2) if memory is not None else None
    counters = [
        EventCounter(getattr(first, name).columns, threads=threads, memory=share)
        for name in _EVENTS
    ]
    for part in parts:
        labels, yields, rules = union.add(part.symbols)
        own = vocabulary.ids_of(part.vocabulary.symbols)
        word_ids = np.append(own, np.array([words, words + 1], dtype=np.uint32))
        columns: tuple[Sequence[Ids], ...] = (
            (yields, labels, labels, rules),
            (word_ids, labels, labels, rules, word_ids, word_ids),
        )
        for counter, name, maps in zip(counters, _EVENTS, columns, strict=True):
            for rows, counts in getattr(part, name).blocks():
                mapped = [maps[column][rows[:, column]] for column in range(rows.shape[1])]
                counter.add(np.stack(mapped, axis=1), _as_weights(counts))
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


def _as_weights(counts: Ids) -> Places:
    return counts.astype(np.uint64)
