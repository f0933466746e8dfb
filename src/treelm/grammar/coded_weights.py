"""Weights of a grammar as codes of eight bits: a fifth of the size, almost the same parses.

A code stands for a weight of a codebook; code 0 is a weight of zero. Where most weights are zero
only the others are stored, each with its distance from the one before it. What is decoded is made
to sum to one again, so a grammar of codes is a proper grammar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.errors import ModelFileError
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.lexicon import Lexicon, TiedEntries
from treelm.grammar.tied_entries import FACTORS, joined_scores, own_scores
from treelm.store.schema import LARGEST, Tensor, Tensors

#: Bits of a code: fewer lose accuracy, more gain nothing.
BITS = 8
#: Rules less probable than this are dropped when weights become codes.
LEAST_WEIGHT = 1e-7

_CODES, _GAPS, _BOOK = "_codes", "_gaps", "_book"
_SIZE = 1 << BITS
_WEIGHTS = ("unary_weights", "binary_weights")
_SCORES = "entry_scores"

_Arrays = Mapping[str, npt.NDArray[Any]]


class WeightChange(NamedTuple):
    """How far the logarithms of weights moved, in bits, and how much weight was dropped."""

    mean: float
    largest: float
    dropped: float

    def __str__(self) -> str:
        return (
            f"log2 weights moved by {self.mean:.4f} on average and {self.largest:.4f} at most; "
            f"{self.dropped:.2%} of the weight was dropped"
        )


def coded_tensors(name: str, *, optional_gaps: bool = True) -> tuple[Tensor, ...]:
    """Return the schema of weights in codes."""
    size = f"codes of {name}"
    gaps = (Tensor(f"{name}{_GAPS}", np.uint8, (size,), optional=True),) if optional_gaps else ()
    return (
        Tensor(f"{name}{_CODES}", np.uint8, (size,), optional=True),
        *gaps,
        Tensor(f"{name}{_BOOK}", np.float64, (_SIZE,), _is_book, optional=True),
    )


def _is_book(array: npt.NDArray[Any], _: Tensors) -> str | None:
    if array[0] != 0 or not ((array >= 0).all() and array.max() <= LARGEST):
        return "is no codebook of weights"
    return None


def encoded(name: str, weights: FloatArray, *, least: float = 0.0) -> dict[str, npt.NDArray[Any]]:
    """Return weights as codes, by the names they have in a file of tables.

    Args:
        name: Name of the weights.
        weights: Numbers that are not negative.
        least: Smaller ones become zero.

    Examples:
        >>> sorted(encoded("w", np.array([0.0, 0.0, 0.0, 0.0, 0.5])))
        ['w_book', 'w_codes', 'w_gaps']
        >>> decoded(encoded("w", np.array([0.25, 0.5])), "w", 2)
        array([0.25, 0.5 ])
    """
    kept = np.where(weights >= max(least, np.finfo(np.float64).tiny), weights, 0.0)
    places = np.flatnonzero(kept)
    book, bins = _codebook(np.log(kept[places]))
    sparse = 2 * len(places) < len(weights)
    if not sparse:
        codes = np.zeros(len(weights), np.uint8)
        codes[places] = bins
        return {f"{name}{_CODES}": codes, f"{name}{_BOOK}": book}
    steps = np.diff(places, prepend=-1)
    fillers = (steps - 1) // (_SIZE - 1)  # zeros in between, where a step is too long for a byte
    ends = np.cumsum(fillers + 1) - 1
    codes = np.zeros(int(ends[-1]) + 1 if len(ends) else 0, np.uint8)
    gaps = np.full(len(codes), _SIZE - 1, np.uint8)
    codes[ends] = bins
    gaps[ends] = steps - fillers * (_SIZE - 1)
    return {f"{name}{_CODES}": codes, f"{name}{_GAPS}": gaps, f"{name}{_BOOK}": book}


def decoded(tables: _Arrays, name: str, total: int) -> FloatArray:
    """Return the weights that codes stand for.

    Args:
        tables: Tensors that fit `coded_tensors`.
        name: Name of the weights.
        total: Number of weights, zeros counted.

    Raises:
        ModelFileError: ``E_GRAMMAR`` if there are more codes than weights.
    """
    codes, book = tables[f"{name}{_CODES}"], tables[f"{name}{_BOOK}"]
    gaps = tables.get(f"{name}{_GAPS}")
    if gaps is None:
        if len(codes) != total:
            raise _wrong(name, f"holds {len(codes)} codes for {total} weights")
        return np.asarray(book[codes])
    places = np.cumsum(gaps, dtype=np.int64) - 1
    if len(gaps) and (gaps.min() < 1 or places[-1] >= total):
        raise _wrong(name, f"does not fit {total} weights")
    weights = np.zeros(total)
    weights[places] = book[codes]
    return weights


def has_codes(tables: _Arrays, name: str) -> bool:
    """Return whether weights are stored as codes.

    Raises:
        ModelFileError: ``E_GRAMMAR`` if a part of them is missing.
    """
    found = [f"{name}{end}" in tables for end in (_CODES, _BOOK)]
    if any(found) and (not all(found) or name in tables):
        raise _wrong(name, "is stored twice, or only a part of its codes is")
    return all(found)


def stored_codes(tables: _Arrays, *names: str) -> dict[str, npt.NDArray[Any]]:
    """Return the codes among tables, to be saved again as they are."""
    ends = (_CODES, _GAPS, _BOOK)
    wanted = [f"{name}{end}" for name in names for end in ends]
    return {name: np.array(tables[name]) for name in wanted if name in tables}


def with_codes(
    grammar: Grammar, lexicon: Lexicon, *, least: float = LEAST_WEIGHT
) -> tuple[Grammar, Lexicon, WeightChange, WeightChange]:
    """Return a grammar and a lexicon whose weights are codes, and how far weights moved.

    The words of a lexicon that sums to one keep their numbers.

    Args:
        grammar: The rules.
        lexicon: The words.
        least: Less probable rules are dropped.
    """
    codes: dict[str, npt.NDArray[Any]] = {}
    for name in _WEIGHTS:
        codes |= encoded(name, getattr(grammar, name), least=least)
    small = _from_codes(grammar, codes)
    rules = _change(
        np.concatenate([grammar.unary_weights, grammar.binary_weights]),
        np.concatenate([small.unary_weights, small.binary_weights]),
    )
    if lexicon.normalized:
        return small, lexicon, rules, WeightChange(0.0, 0.0, 0.0)
    coded = lexicon_with_codes(lexicon)
    return small, coded, rules, _change(lexicon.entry_scores, coded.entry_scores)


def lexicon_with_codes(lexicon: Lexicon) -> Lexicon:
    """Return a lexicon whose scores of entries are codes."""
    if lexicon.tied is None:
        own = encoded(_SCORES, lexicon.entry_scores)
        scores = decoded(own, _SCORES, len(lexicon.entry_scores))
        return replace(lexicon, entry_scores=scores, codes=own)
    parts = {_SCORES: own_scores(lexicon, lexicon.tied.marks), FACTORS: lexicon.tied.factors}
    codes: dict[str, npt.NDArray[Any]] = {}
    for name, values in parts.items():
        codes |= encoded(name, values)
    rounded = [decoded(codes, name, len(values)) for name, values in parts.items()]
    tied = TiedEntries(lexicon.tied.marks, rounded[1])
    scores = joined_scores(lexicon, rounded[0], tied)
    return replace(lexicon, entry_scores=scores, codes=codes, tied=tied)


def _from_codes(grammar: Grammar, codes: _Arrays) -> Grammar:
    """Return a grammar with the weights that codes stand for, which sum to one."""
    return replace(
        grammar,
        unary_weights=decoded(codes, "unary_weights", len(grammar.unary_weights)),
        binary_weights=decoded(codes, "binary_weights", len(grammar.binary_weights)),
    ).normalized(codes)


def _codebook(logs: FloatArray) -> tuple[FloatArray, npt.NDArray[np.uint8]]:
    """Return the values of codes, and the code of each logarithm.

    Half of the bins hold equally many values, half are equally wide, so that neither the many
    ordinary weights nor the few extreme ones move far.
    """
    book = np.zeros(_SIZE)
    if not len(logs):
        return book, np.zeros(0, np.uint8)
    distinct = np.unique(logs)
    if len(distinct) < _SIZE:
        edges = distinct[1:]
    else:
        half = (_SIZE - 2) // 2
        ranks = np.quantile(logs, np.linspace(0, 1, half + 2)[1:-1], method="nearest")
        widths = np.linspace(distinct[0], distinct[-1], half + 2)[1:-1]
        edges = np.unique(np.concatenate([ranks, widths]))
    bins = np.searchsorted(edges, logs, side="right")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    means = np.bincount(bins, logs, minlength=len(edges) + 1) / np.maximum(counts, 1)
    book[1 : len(means) + 1] = np.where(counts > 0, np.exp(means), 0.0)
    return book, (bins + 1).astype(np.uint8)


def _change(before: FloatArray, after: FloatArray) -> WeightChange:
    both = (before > 0) & (after > 0)
    moved = np.abs(np.log2(after[both] / before[both]))
    total = float(before.sum())
    lost = float(before[(before > 0) & (after == 0)].sum())
    return WeightChange(
        float(moved.mean()) if len(moved) else 0.0,
        float(moved.max()) if len(moved) else 0.0,
        lost / total if total else 0.0,
    )


def _wrong(name: str, what: str) -> ModelFileError:
    return ModelFileError(f'the tensor "{name}{_CODES}" {what}', code="E_GRAMMAR")
