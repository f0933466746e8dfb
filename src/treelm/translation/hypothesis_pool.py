"""The hypotheses on which weights are tuned: features and statistics as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.nbest import FeatureTable, NBestColumns, numbered_lists
from treelm.errors import CorpusFormatError
from treelm.translation.bleu import check_line_counts
from treelm.translation.metrics import BLEU, Metric, Statistics

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
#: Names of features, and how many values each has.
Layout = tuple[tuple[str, int], ...]
#: Bytes by which a hypothesis is known again.
KEY_BYTES = 16


@dataclass(frozen=True, eq=False)
class HypothesisPool:
    """Hypotheses for sentences.

    Args:
        layout: Names of the features, and how many values each has.
        starts: Where the hypotheses of each sentence begin, and their number.
        features: A row per hypothesis.
        statistics: A row per hypothesis; they are added over sentences.
        metric: What is computed from the sums.
    """

    layout: Layout
    starts: Places
    features: Numbers
    statistics: Statistics
    metric: Metric = BLEU

    def __post_init__(self) -> None:
        empty = np.flatnonzero(np.diff(self.starts) < 1)
        if len(empty):
            raise CorpusFormatError(
                f"sentence {empty[0]} has no hypothesis; weights are tuned on lists of all "
                "sentences.",
                code="E_NBEST",
            )

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.starts) - 1

    def best(self, scores: Numbers) -> Places:
        """Return the hypothesis with the highest score of each sentence; the first of equal ones.

        Args:
            scores: Score of every hypothesis.
        """
        return first_highest(scores, self.starts)

    def chosen(self, weights: Numbers) -> Places:
        """Return the hypothesis that weights choose for each sentence."""
        return self.best(self.features @ weights)

    def value(self, hypotheses: Places) -> float:
        """Return the figure of some hypotheses, one for each sentence; more is better."""
        return float(self.metric.value(self.statistics[hypotheses].sum(axis=0)))

    def part(self, sentences: Sequence[int] | Places) -> HypothesisPool:
        """Return the pool of some sentences."""
        rows = [np.arange(self.starts[each], self.starts[each + 1]) for each in sentences]
        places = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        return HypothesisPool(
            self.layout,
            np.cumsum([0, *map(len, rows)]),
            self.features[places],
            self.statistics[places],
            self.metric,
        )


def first_highest(scores: Numbers, starts: Places) -> Places:
    """Return the place of the highest score of each group, the first of equal ones."""
    highest = np.maximum.reduceat(scores, starts[:-1])
    places = np.flatnonzero(scores == np.repeat(highest, np.diff(starts)))
    return places[np.searchsorted(places, starts[:-1])]


def pool_of_lists(
    lists: Iterable[NBestColumns], references: Sequence[Sequence[str]], metric: Metric = BLEU
) -> HypothesisPool:
    """Return the hypotheses of lists, row for row.

    Args:
        lists: One for each sentence; their ids are the numbers of sentences.
        references: One or more translations of the sentences, words separated by white space.
        metric: What they are measured by.

    Raises:
        CorpusFormatError: as `PoolBuilder.add` and `PoolBuilder.pool`.
    """
    right = _all_references(references, metric)
    layout: Layout | None = None
    sizes = np.zeros(len(right), dtype=np.int64)
    tables, statistics = [], []
    for number, each in numbered_lists(lists, len(right)):
        table = each.feature_table()
        layout = _same_layout(layout, table, each)
        sizes[number] = len(each)
        tables.append(table)
        statistics.append(metric.statistics(each.texts, right[number]))
    features = _same_width(tables, layout or ())
    return HypothesisPool(
        layout or (),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([np.zeros((0, sum(count for _, count in layout or ()))), *features]),
        np.concatenate([np.zeros((0, metric.columns), dtype=np.int64), *statistics]),
        metric,
    )


def _all_references(references: Sequence[Sequence[str]], metric: Metric) -> list[Any]:
    check_line_counts(len(references[0]) if references else 0, map(len, references))
    return [metric.reference(each) for each in zip(*references, strict=True)]


def _same_width(tables: Iterable[FeatureTable], layout: Layout) -> list[Numbers]:
    """Return features of lists as columns of the same layout, which has all of them."""
    return [(table if table.layout == layout else table.widened(layout)).values for table in tables]


def _same_layout(layout: Layout | None, table: FeatureTable, each: NBestColumns) -> Layout:
    """Return the features that all lists have; refuse a list with others, unless it is sparse."""
    if each.sparse:
        known = dict(layout or ())
        return (*(layout or ()), *(item for item in table.layout if item[0] not in known))
    if layout is not None and table.layout != layout:
        raise CorpusFormatError(
            f"{each.source}:{each.lines[0]}: sentence {each.id} has other features than those "
            "before; all lists need the same.",
            code="E_NBEST",
            path=each.source,
            line=each.lines[0],
        )
    return table.layout


class _Seen(NamedTuple):
    """What is known about the hypotheses of one sentence."""

    keys: dict[bytes, None]
    features: list[Numbers]
    statistics: list[Statistics]


class PoolBuilder:
    """Collects lists of the same sentences; a hypothesis with the same features counts once.

    Args:
        references: One or more translations of the sentences, words separated by white space.
        metric: What hypotheses are measured by.
    """

    def __init__(self, references: Sequence[Sequence[str]], metric: Metric = BLEU) -> None:
        self.metric = metric
        self._references = _all_references(references, metric)
        self._seen = [_Seen({}, [], []) for _ in self._references]
        self.layout: Layout | None = None

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self._references)

    def add(self, lists: Iterable[NBestColumns]) -> int:
        """Add lists, whose ids are the numbers of sentences; return how many hypotheses are new.

        Raises:
            CorpusFormatError: ``E_NBEST`` with the line, for other features than before, or for a
                sentence that is not there.
        """
        new = 0
        for number, each in numbered_lists(lists, self.sentences):
            table = each.feature_table()
            self.layout = _same_layout(self.layout, table, each)
            new += self._add(number, each.texts, table.values)
        return new

    def _add(self, number: int, texts: Sequence[str], values: Numbers) -> int:
        seen = self._seen[number]
        before = len(seen.keys)
        kept = []
        for place, text in enumerate(texts):
            key = _key(text, values[place])
            if key not in seen.keys:
                seen.keys[key] = None
                kept.append(place)
        if kept:
            seen.features.append(values[kept])
            new = [texts[place] for place in kept]
            seen.statistics.append(self.metric.statistics(new, self._references[number]))
        return len(seen.keys) - before

    def pool(self) -> HypothesisPool:
        """Return everything that was added.

        Raises:
            CorpusFormatError: ``E_NBEST`` for a sentence without a hypothesis.
        """
        layout = self.layout or ()
        width = sum(count for _, count in layout)
        features = [row for each in self._seen for row in each.features]
        statistics = [row for each in self._seen for row in each.statistics]
        return HypothesisPool(
            layout,
            np.cumsum([0, *(len(each.keys) for each in self._seen)]),
            np.concatenate([np.zeros((0, width)), *features]),
            np.concatenate([np.zeros((0, self.metric.columns), dtype=np.int64), *statistics]),
            self.metric,
        )

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return everything that was added, as a checkpoint keeps it."""
        pool = self.pool()
        keys = b"".join(key for each in self._seen for key in each.keys)
        return {
            "starts": pool.starts,
            "keys": np.frombuffer(keys, dtype=np.uint8).reshape(-1, KEY_BYTES),
            "features": pool.features,
            "statistics": pool.statistics,
        }

    def restore(
        self,
        layout: Layout,
        starts: Places,
        keys: npt.NDArray[np.uint8],
        features: Numbers,
        statistics: Statistics,
    ) -> None:
        """Put back what `tensors` gave."""
        self.layout = layout
        for place, seen in enumerate(self._seen):
            rows = slice(int(starts[place]), int(starts[place + 1]))
            seen.keys.update((row.tobytes(), None) for row in keys[rows])
            seen.features.append(np.array(features[rows]))
            seen.statistics.append(np.array(statistics[rows]))


def _key(text: str, values: Numbers) -> bytes:
    """Return what tells a hypothesis from all others of its sentence."""
    words = " ".join(text.split()).encode()
    return hashlib.blake2b(words + b"\n" + values.tobytes(), digest_size=KEY_BYTES).digest()
