"""The tables of a model in shards, of which workers ask for what their sentences need.

A model may then be larger than the memory of a worker. All contexts and words that a search can ask
about consist of words of its sentences, those before a word as they stand there. So a worker names
words and pairs of neighbours, and every shard answers with the counts of what is made of them. What
a context has counted besides is added up under one outcome that nobody asks about: totals, and so
all probabilities, are those of the whole tables, to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.estimation.lattice import Ids, LatticeTables
from treelm.estimation.lattice_weights import LatticeModel, LatticeWeights
from treelm.models.composite.parsed_text import ParsedText
from treelm.models.composite.parts import CompositeParts, CompositeShape
from treelm.models.run import Run
from treelm.parallel.holders import Holders
from treelm.parallel.key_shards import KeyShards
from treelm.store.shared_folder import SharedFolder
from treelm.store.tables import Tables

Arrays = dict[str, npt.NDArray[Any]]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Stem(NamedTuple):
    """One table of a part: its place, and what its columns are."""

    part: str
    number: int
    words: tuple[tuple[int, int], ...]
    """Columns with words in them, and what their ids are divided by to get the word."""
    neighbours: tuple[tuple[int, int], ...]
    """Columns with neighbouring words in them, the earlier one first; -1 is the outcome."""
    is_filtered: bool
    """Whether its outcomes are words, of which only some are asked for."""

    @property
    def prefix(self) -> str:
        """How the names of its arrays begin."""
        return f"{self.part}.{self.number}"


def stems_of(shape: CompositeShape, parts: Sequence[str]) -> Iterator[Stem]:
    """Yield the tables of the parts of a model."""
    heads, before = shape.config.heads, shape.config.order - 1
    divisor = shape.native.labels if heads and shape.config.head_labels else 1
    kinds = {
        "predictor": {
            **dict.fromkeys(range(before), 1),
            **dict.fromkeys(range(before, before + heads), divisor),
        },
        "tagger": {0: 1},
        "constructor": dict.fromkeys(range(heads, 2 * heads), 1),
    }
    for part in parts:
        for number, columns in enumerate(shape.lattices[part].native.stems):
            words = tuple(
                (place, kinds[part][column])
                for place, column in enumerate(columns)
                if column in kinds[part]
            )
            is_filtered = part == "predictor"
            last = [place for place, column in enumerate(columns) if column < before]
            places = [-1, *last] if is_filtered else []
            pairs = tuple((earlier, later) for later, earlier in itertools.pairwise(places))
            yield Stem(part, number, words, pairs, is_filtered)


@dataclass(frozen=True, eq=False)
class Asked:
    """What a worker needs to know about.

    Args:
        size: Number of words; ids from here on are ends of sentences, which belong to all of them.
        words: Words of its sentences, ascending.
        pairs: Neighbours in its sentences, ascending: the earlier one times `size`, and the later.
            None for all, where no word is left for what is not asked about.
    """

    size: int
    words: Ids
    pairs: Places | None

    @classmethod
    def by(cls, text: ParsedText, size: int) -> Asked:
        """Return what a search of some sentences can ask about."""
        ids = text.ids.astype(np.int64)
        is_inside = np.ones(max(len(ids) - 1, 0), np.bool_)
        ends = text.starts[1:-1].astype(np.int64)
        is_inside[ends[(ends > 0) & (ends < len(ids))] - 1] = False
        pairs = ids[:-1][is_inside] * size + ids[1:][is_inside]
        words = np.unique(text.ids)
        return cls(size, words, np.unique(pairs) if len(words) < size else None)

    @cached_property
    def known(self) -> Flags:
        """Whether each word is asked about."""
        flags = np.zeros(self.size + 2, np.bool_)
        flags[self.words] = True
        flags[self.size :] = True
        return flags

    def are_neighbours(
        self, earlier: npt.NDArray[Any], later: npt.NDArray[Any]
    ) -> npt.NDArray[np.bool_]:
        """Return which pairs of words stand side by side somewhere; an end does with all."""
        if self.pairs is None:
            return np.ones(len(earlier), np.bool_)
        codes = earlier.astype(np.int64) * self.size + later
        found = np.searchsorted(self.pairs, codes)
        inside = found < len(self.pairs)
        are = np.zeros(len(codes), np.bool_)
        are[inside] = self.pairs[found[inside]] == codes[inside]
        return are | (earlier >= self.size) | (later >= self.size)


class _Table:
    """Some contexts of a table with all they have counted.

    Args:
        stem: What it is.
        arrays: As `LatticeTables.to_tensors` names them, without the prefix, and the number of
            columns of a context, which keys alone do not tell.
    """

    def __init__(self, stem: Stem, arrays: Mapping[str, npt.NDArray[Any]], width: int) -> None:
        self.stem = stem
        self.arrays = arrays
        contexts = len(arrays["begin"]) - 1
        self.keys = arrays["keys"].reshape(contexts, width)
        # By the word that is asked for first: that of the last column with one changes most.
        self._word = self._words(stem.words[0]) if stem.words else np.zeros(contexts, np.int64)
        self._order = np.argsort(self._word, kind="stable")
        self._sorted = self._word[self._order]

    def _words(self, column: tuple[int, int]) -> npt.NDArray[np.int64]:
        place, divisor = column
        return self.keys[:, place].astype(np.int64) // divisor

    def contexts_of(self, asked: Asked) -> Places:
        """Return the contexts that consist of words as asked, in ascending order."""
        if not self.stem.words:
            return np.arange(len(self.keys))
        words, known = np.flatnonzero(asked.known), asked.known
        firsts = np.searchsorted(self._sorted, words)
        lasts = np.searchsorted(self._sorted, words, side="right")
        found = self._order[_ranges(firsts, lasts)]
        for place, divisor in self.stem.words[1:]:
            found = found[known[self.keys[found, place] // divisor]]
        for earlier, later in self.stem.neighbours:
            if later >= 0:
                rows = self.keys[found]
                found = found[asked.are_neighbours(rows[:, earlier], rows[:, later])]
        return np.sort(found)

    def answer(self, asked: Asked) -> Arrays:
        """Return contexts and outcomes that consist of words as asked, and sums of all others."""
        contexts = self.contexts_of(asked)
        firsts, lasts = _bounds(self.arrays["begin"], contexts)
        entries = _ranges(firsts, lasts)
        owner = np.repeat(np.arange(len(contexts)), lasts - firsts)
        outcomes, counts = self.arrays["outcomes"][entries], self.arrays["counts"][entries]
        kept = np.ones(len(entries), np.bool_)
        if self.stem.is_filtered:
            kept = asked.known[outcomes]
            if (0, -1) in self.stem.neighbours:
                last = self.keys[contexts[owner[kept]], 0]
                kept[kept] = asked.are_neighbours(last, outcomes[kept])
        others = _sums(owner[~kept], counts[~kept], len(contexts))
        made: Arrays = {
            "keys": self.keys[contexts],
            "owner": owner[kept].astype(np.uint32),
            "outcomes": outcomes[kept],
            "counts": counts[kept],
            "others": others,
            "has_others": np.bincount(owner[~kept], minlength=len(contexts)) > 0,
        }
        if len(self.arrays["topic_begin"]):
            made |= self._topics(entries, owner, kept)
        return made

    def _topics(self, entries: Places, owner: Places, kept: Flags) -> Arrays:
        firsts, lasts = _bounds(self.arrays["topic_begin"], entries)
        own, rest = np.flatnonzero(kept), np.flatnonzero(~kept)
        places = _ranges(firsts[rest], lasts[rest])
        contexts = np.repeat(owner[rest], lasts[rest] - firsts[rest])
        topics = self.arrays["topics"][places].astype(np.int64)
        pairs, place_of = np.unique(contexts << 16 | topics, return_inverse=True)
        sums = _sums(place_of, self.arrays["topic_counts"][places], len(pairs))
        kept_places = _ranges(firsts[own], lasts[own])
        return {
            "topic_sizes": (lasts[own] - firsts[own]).astype(np.uint32),
            "topics": self.arrays["topics"][kept_places],
            "topic_counts": self.arrays["topic_counts"][kept_places],
            "other_contexts": (pairs >> 16).astype(np.uint32),
            "other_topics": (pairs & 0xFFFF).astype(np.uint16),
            "other_counts": sums,
        }


def _bounds(begin: npt.NDArray[Any], places: Places) -> tuple[Places, Places]:
    """Return where what belongs to some places begins, and where it ends."""
    return begin[places].astype(np.int64), begin[places + 1].astype(np.int64)


def _sums(places: Places, numbers: npt.NDArray[Any], size: int) -> npt.NDArray[np.int64]:
    """Return the sum of the numbers of every place; whole numbers, however large."""
    sums = np.zeros(size, np.int64)
    order = np.argsort(places, kind="stable")
    found, firsts = np.unique(places[order], return_index=True)
    if len(found):
        sums[found] = np.add.reduceat(numbers[order], firsts)
    return sums


def _distinct(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Places]:
    """Return the distinct rows in ascending order, and which of them each row is."""
    if not keys.shape[1] or not len(keys):
        return keys[:1], np.zeros(len(keys), np.int64)
    order = np.lexsort(keys.T[::-1])
    rows = keys[order]
    is_new = np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)]
    place_of = np.empty(len(keys), np.int64)
    place_of[order] = np.cumsum(is_new) - 1
    return rows[is_new], place_of


def _ranges(firsts: Places, lasts: Places) -> Places:
    """Return all numbers from each first one to before its last one."""
    sizes = lasts - firsts
    ends = np.cumsum(sizes)
    inside = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
    numbers: Places = np.repeat(firsts, sizes) + inside
    return numbers


@dataclass(frozen=True)
class OpenShard:
    """Makes the holder of one shard.

    Args:
        folder: Where its file is.
        name: Name of the file.
        shape: The sizes of everything.
        parts: The parts in it.
    """

    folder: SharedFolder
    name: str
    shape: CompositeShape
    parts: tuple[str, ...]

    def __call__(self) -> HeldShard:
        """Map the file."""
        return HeldShard(self.folder.open(self.name), self.shape, self.parts)


class HeldShard:
    """One shard, mapped from its file, that answers what it has about words."""

    def __init__(self, tensors: Tables, shape: CompositeShape, parts: Sequence[str]) -> None:
        self._tables = [
            _Table(
                stem,
                {name: tensors[f"{stem.prefix}.{name}"] for name in _STORED},
                len(shape.lattices[stem.part].native.stems[stem.number]),
            )
            for stem in stems_of(shape, parts)
        ]

    def __call__(self, asked: Asked) -> list[Arrays]:
        """Return, for every table, what it has about what is asked."""
        return [table.answer(asked) for table in self._tables]


_STORED = ("keys", "begin", "outcomes", "counts", "topic_begin", "topics", "topic_counts")


def write_shards(
    parts: CompositeParts, shards: KeyShards, folder: SharedFolder, name: str
) -> tuple[OpenShard, ...]:
    """Write the tables of a model to a file for every shard.

    Args:
        parts: The model.
        shards: Where contexts are.
        folder: Where files are written.
        name: How their names begin.
    """
    shape, names = parts.shape, tuple(parts.models)
    tensors: list[Arrays] = [{} for _ in range(shards.count)]
    for stem in stems_of(shape, names):
        native = parts.models[stem.part].tables.native
        arrays = native.stem_arrays(stem.number)
        for number, own in enumerate(_divided(stem, arrays, shards)):
            tensors[number] |= {f"{stem.prefix}.{kind}": array for kind, array in own.items()}
    made = []
    for number, own in enumerate(tensors):
        file = f"{name}-{number}.safetensors"
        folder.write(file, own)
        made.append(OpenShard(folder, file, shape, names))
    return tuple(made)


def _divided(
    stem: Stem, arrays: Mapping[str, npt.NDArray[Any]], shards: KeyShards
) -> Iterator[Arrays]:
    """Yield the part of a table that each shard has; frequent words are divided by outcome."""
    begin = arrays["begin"].astype(np.int64)
    contexts = len(begin) - 1
    keys = arrays["keys"].reshape(contexts, -1) if contexts else arrays["keys"].reshape(0, 0)
    owner = np.repeat(np.arange(contexts), np.diff(begin))
    words = np.zeros(contexts, np.int64)
    if stem.words and contexts:
        place, divisor = stem.words[0]
        words = keys[:, place].astype(np.int64) // divisor
    places = shards.places(words[owner], arrays["outcomes"].astype(np.int64))
    topic_begin = arrays["topic_begin"].astype(np.int64)
    for shard in range(shards.count):
        own = np.flatnonzero(places == shard)
        here, sizes = np.unique(owner[own], return_counts=True)
        made: Arrays = {
            "keys": keys[here].reshape(-1),
            "begin": np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64),
            "outcomes": arrays["outcomes"][own],
            "counts": arrays["counts"][own],
            "topic_begin": np.zeros(0, np.uint32),
            "topics": np.zeros(0, np.uint16),
            "topic_counts": np.zeros(0, np.int64),
        }
        if len(topic_begin):
            topic_sizes = topic_begin[own + 1] - topic_begin[own]
            chosen = _ranges(topic_begin[own], topic_begin[own + 1])
            made["topic_begin"] = np.concatenate([[0], np.cumsum(topic_sizes)]).astype(np.uint32)
            made["topics"] = arrays["topics"][chosen]
            made["topic_counts"] = arrays["topic_counts"][chosen]
        yield made


@dataclass(frozen=True, eq=False)
class ShardedParts:
    """A model whose tables others hold.

    Args:
        shape: The sizes of everything.
        weights: The weights of each part, which are few.
        holders: The tables.
    """

    shape: CompositeShape
    weights: Mapping[str, LatticeWeights]
    holders: Holders[Asked, list[Arrays]]

    def of_text(self, text: ParsedText) -> CompositeParts:
        """Return the parts with all that a search of some sentences can ask about."""
        asked = Asked.by(text, self.shape.words)
        answers = self.holders.ask(asked)
        spare = _spare_outcome(asked)
        tensors: dict[str, Arrays] = {part: {} for part in self.weights}
        for place, stem in enumerate(stems_of(self.shape, tuple(self.weights))):
            found = [answer[place] for answer in answers]
            for name, array in _joined(found, spare).items():
                tensors[stem.part][f"{stem.prefix}.{name}"] = array
        models = {
            part: LatticeModel(
                LatticeTables.from_tensors(self.shape.lattices[part], tensors[part], part), weights
            )
            for part, weights in self.weights.items()
        }
        return CompositeParts(self.shape, models)


def _spare_outcome(asked: Asked) -> int:
    """Return an outcome that is not asked about; where all are, nothing is left over for it."""
    return int(np.argmin(asked.known))


def _joined(found: Sequence[Arrays], spare: int) -> Arrays:
    """Return a table as the kernel takes it, from what all shards have of it.

    Args:
        found: The answers.
        spare: Outcome under which everything is added up that was not asked for.
    """
    distinct, place_of = _distinct(np.concatenate([each["keys"] for each in found]))
    starts = np.concatenate([[0], np.cumsum([len(each["keys"]) for each in found])])
    others = _sums(place_of, np.concatenate([each["others"] for each in found]), len(distinct))
    has_others = np.concatenate([each["has_others"] for each in found])
    left = np.unique(place_of[has_others])
    owner = np.concatenate(
        [
            place_of[first + each["owner"].astype(np.int64)]
            for first, each in zip(starts, found, strict=False)
        ]
        + [left]
    )
    outcomes = np.concatenate(
        [each["outcomes"] for each in found] + [np.full(len(left), spare, np.uint32)]
    )
    counts = np.concatenate([each["counts"] for each in found] + [others[left]])
    order = np.lexsort((outcomes, owner))
    made: Arrays = {
        "keys": distinct.reshape(-1).astype(np.uint32),
        "begin": _offsets(np.bincount(owner, minlength=len(distinct))).astype(np.uint64),
        "outcomes": outcomes[order].astype(np.uint32),
        "counts": counts[order],
        "topic_begin": np.zeros(0, np.uint32),
        "topics": np.zeros(0, np.uint16),
        "topic_counts": np.zeros(0, np.int64),
    }
    if "topics" not in found[0]:
        return made
    # Topics of entries, one after the other: those of the shards, then those of what is left over.
    rest = np.concatenate(
        [
            place_of[first + each["other_contexts"].astype(np.int64)]
            for first, each in zip(starts, found, strict=False)
        ]
    )
    pairs = rest << 16 | np.concatenate([each["other_topics"] for each in found]).astype(np.int64)
    merged, where = np.unique(pairs, return_inverse=True)
    sums = _sums(where, np.concatenate([each["other_counts"] for each in found]), len(merged))
    left_sizes = (
        np.bincount(np.searchsorted(left, merged >> 16), minlength=len(left))
        if len(merged)
        else np.zeros(len(left), np.int64)
    )
    sizes = np.concatenate([each["topic_sizes"] for each in found] + [left_sizes]).astype(np.int64)
    topics = np.concatenate(
        [each["topics"] for each in found] + [(merged & 0xFFFF).astype(np.uint16)]
    )
    topic_counts = np.concatenate([each["topic_counts"] for each in found] + [sums])
    begin = _offsets(sizes)
    chosen = _ranges(begin[order], begin[order + 1])
    made["topic_begin"] = _offsets(sizes[order]).astype(np.uint32)
    made["topics"] = topics[chosen]
    made["topic_counts"] = topic_counts[chosen]
    return made


def _offsets(sizes: npt.NDArray[Any]) -> Places:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@contextmanager
def as_searched(
    parts: CompositeParts, run: Run, name: str = "parameters"
) -> Iterator[CompositeParts | ShardedParts]:
    """Give a model as workers get it: whole, or held in shards until the end of the context.

    Args:
        parts: The model.
        run: How the training is run.
        name: How the names of files of shards begin.
    """
    folder = run.round_folder
    if not run.shard_parameters or run.shards is None or folder is None:
        yield parts
        return
    folder.make()
    makers = write_shards(parts, KeyShards(run.shards), folder, name)
    weights = {part: model.weights for part, model in parts.models.items()}
    with run.executor.hold(makers) as holders:
        yield ShardedParts(parts.shape, weights, holders)
