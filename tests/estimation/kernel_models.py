"""The same chains and events for the kernel and for the exact reference, and random ones.

Rows are (outcome, context in order of retention); the reference sees the same ids as symbols.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from tests.reference import backoff as reference

from treelm.errors import TreelmWarning
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import UniformBase, estimate
from treelm.estimation.smoothing import Smoothing
from treelm.events.counts import EventCounter

Row = tuple[int, ...]
SmoothingOf = Callable[[ChainCounts], Smoothing]


@contextmanager
def fallbacks_allowed() -> Iterator[None]:
    """Small data have fall-back discounts, and both sides say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        warnings.filterwarnings("ignore", "modified Kneser-Ney: fallback", UserWarning)
        yield


def reference_chain(chain: Chain) -> reference.Chain:
    levels = tuple(tuple(range(width)) for width in chain.widths)
    pads = {i: pad for i, pad in enumerate(chain.pads) if pad is not None}
    return reference.Chain(levels, pads)


def reference_events(
    rows: Sequence[Row], weights: Sequence[int] | None = None
) -> dict[reference.Event, int]:
    total: dict[reference.Event, int] = {}
    for row, weight in zip(rows, weights or [1] * len(rows), strict=True):
        event = (tuple(row[1:]), row[0])
        total[event] = total.get(event, 0) + weight
    return total


def reference_base(size: int) -> reference.UniformBase:
    return reference.UniformBase(range(size), None)


def count_rows(
    rows: Sequence[Row],
    chain: Chain,
    *,
    weights: Sequence[int] | None = None,
    kind: str = "types",
    threads: int = 1,
) -> ChainCounts:
    counter = EventCounter(len(chain.columns) + 1, threads=threads)
    counter.add(np.array(rows, dtype=np.uint32).reshape(len(rows), -1), weights)
    return ChainCounts(counter.finish(), chain, counts=kind, threads=threads)


def kernel_table(
    counts: ChainCounts, smoothing: Smoothing | SmoothingOf, size: int, **options
) -> BackoffTable:
    """A table over a uniform base of `size` outcomes, in double precision unless told."""
    chain = counts.chain
    if callable(smoothing):
        smoothing = smoothing(counts)
    first = 0
    if chain.columns and not chain.sequence:
        first = 1 + max(int(counts.contexts(j)[0][:, 0].max(initial=0)) for j in _wide(chain))
    pads = [pad for pad in chain.pads if pad is not None]
    outcomes = max([size, *(pad + 1 for pad in pads)]) if chain.sequence else size
    return estimate(
        counts,
        smoothing,
        options.pop("base", UniformBase(size)),
        outcomes=outcomes + (chain.sequence and not pads),
        first_contexts=first,
        **{"precision": "double"} | options,
    )


def _wide(chain: Chain) -> list[int]:
    return [level for level, width in enumerate(chain.widths) if width > 0]


def whole(chain: Chain, outcome: int, key: Sequence[int], fill: int = 0) -> Row:
    """A row of all columns for the context `key` of some level."""
    return (outcome, *key, *[fill] * (len(chain.columns) - len(key)))


@dataclass(frozen=True)
class Data:
    """A chain with events, and the number of outcomes below which the base is uniform."""

    chain: Chain
    rows: list[Row]
    outcomes: int


def ngram_rows(sentences: Sequence[Sequence[int]], order: int, end: int, pad: int) -> list[Row]:
    rows = []
    for words in sentences:
        padded = [pad] * (order - 1) + [*words, end]
        rows += [tuple(padded[i : i + order][::-1]) for i in range(len(words) + 1)]
    return rows


@st.composite
def chains(draw: st.DrawFn, most: int = 5, ids: Sequence[int] = (0, 1, 2)) -> Chain:
    """Random widths, drops of several columns, and pads that follow the rule of 2.1."""
    columns = draw(st.integers(0, most))
    lower = draw(st.sets(st.integers(0, columns - 1), max_size=4)) if columns else set()
    widths = (columns, *sorted(lower, reverse=True))
    pads: list[int | None] = [draw(st.none() | st.sampled_from(ids)) for _ in range(columns)]
    for above, here in pairwise(widths):
        padded = [i for i in range(here, above) if pads[i] is not None]
        for place in padded[1:]:
            pads[place] = None
    return Chain(tuple(f"e{i}" for i in range(columns)), widths, tuple(pads))


@st.composite
def plain_data(draw: st.DrawFn, most: int = 5, size: int = 30) -> Data:
    """Any chain; columns after the first hold large ids too."""
    far = [3, 2**31, 2**32 - 2]
    chain = draw(chains(most))
    later = [
        st.sampled_from([0, 1, 2, *far] if i else [0, 1, 2]) for i in range(len(chain.columns))
    ]
    rows = draw(st.lists(st.tuples(st.integers(0, 3), *later), min_size=1, max_size=size))
    return Data(chain, rows, 5)


@st.composite
def ngram_data(draw: st.DrawFn, most: int = 4) -> Data:
    """Sentences over words 0..2; 3 ends a sentence, 4 is never seen, 5 is the pad."""
    order = draw(st.integers(1, most))
    sentences = draw(st.lists(st.lists(st.integers(0, 2), max_size=6), min_size=1, max_size=8))
    return Data(Chain.words(order, pad=5), ngram_rows(sentences, order, 3, 5), 5)


def any_data() -> st.SearchStrategy[Data]:
    return st.one_of(plain_data(), ngram_data())


def as_fractions(values: Sequence[float]) -> list[Fraction]:
    return [Fraction(value) for value in values]
