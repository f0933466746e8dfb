"""What the subcategories of a symbol have learned: how large each is, its words and its rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.errors import UsageError
from treelm.grammar.coarse_to_fine import expected_subcategories
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.lexicon import Lexicon

Places = npt.NDArray[np.int64]

#: Steps down an edge of a tree, and the weight below which they end.
_DEEPEST, _NOTHING = 100, 1e-6

#: Sides of a tree searched for typical words: the first and the last word below a node.
_SIDES = (1, -1)


@dataclass(frozen=True, slots=True)
class Typical:
    """Something a subcategory generates, and its probability."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Subcategory:
    """A part of a symbol.

    Args:
        name: Symbol and number, such as ``NP-3``.
        share: Its share of the symbol, in trees that the grammar generates.
        words: Typical words: of a tag, those it generates; of a phrase, those it begins with.
        last_words: Of a phrase, the words it ends with.
        rules: Typical rules.
    """

    name: str
    share: float
    words: tuple[Typical, ...]
    last_words: tuple[Typical, ...]
    rules: tuple[Typical, ...]


def describe_subcategories(
    grammar: Grammar, lexicon: Lexicon, symbol: str, *, limit: int = 8
) -> list[Subcategory]:
    """Return the subcategories of a symbol, the most frequent first.

    Args:
        grammar: The grammar.
        lexicon: Its lexicon.
        symbol: A label, such as ``NP``.
        limit: Maximum number of words and of rules of each.

    Raises:
        UsageError: if the grammar has no such symbol.
    """
    if symbol not in grammar.symbols:
        raise UsageError(
            f'the grammar has no symbol "{visible(symbol)}". It has: '
            f"{visible(' '.join(grammar.symbols[:60]))}"
            f"{' ...' if len(grammar.symbols) > 60 else ''}."
        )
    number = grammar.symbols.index(symbol)
    first = int(grammar.substate_starts[number])
    size = int(grammar.substates[number])
    counts = expected_subcategories(grammar)[first : first + size]
    total = counts.sum()
    shares = counts / total if total > 0 else np.full(size, 1 / size)
    edges = [_edge_words(grammar, lexicon, first, size, side) for side in _SIDES]
    found = [
        Subcategory(
            f"{symbol}-{place}",
            float(shares[place]),
            _best(edges[0][place], lexicon.vocabulary.symbols, limit),
            ()
            if number >= grammar.phrasal
            else _best(edges[1][place], lexicon.vocabulary.symbols, limit),
            _typical_rules(grammar, number, place, limit),
        )
        for place in range(size)
    ]
    return sorted(found, key=lambda item: (-item.share, item.name))


def _word_scores(grammar: Grammar, lexicon: Lexicon) -> tuple[Places, Places, FloatArray]:
    """Return rows, columns and values of P(word | subcategory of a tag), known words only."""
    sizes = np.diff(lexicon.score_starts)
    owners: Places = np.repeat(np.arange(len(lexicon.vocabulary)), np.diff(lexicon.entry_starts))
    within = np.arange(len(lexicon.entry_scores)) - np.repeat(lexicon.score_starts[:-1], sizes)
    rows: Places = np.repeat(grammar.substate_starts[lexicon.entry_symbols], sizes) + within
    return rows, np.repeat(owners, sizes), lexicon.entry_scores


def _edge_words(grammar: Grammar, lexicon: Lexicon, first: int, size: int, side: int) -> FloatArray:
    """Return, for some subcategories, the probabilities of the words they begin or end with.

    A subcategory passes its weight to the subcategories of its first (last) child, and so on down
    to tags.
    """
    at_edge = np.zeros((size, grammar.total_substates))
    here = np.zeros_like(at_edge)
    here[np.arange(size), first + np.arange(size)] = 1.0
    parents, children, weights = _edge_steps(grammar, side)
    first_tag = int(grammar.substate_starts[grammar.phrasal])
    for _ in range(_DEEPEST):
        at_edge[:, first_tag:] += here[:, first_tag:]
        here[:, first_tag:] = 0.0
        if here.sum() < _NOTHING:
            break
        following = np.zeros_like(here)
        for row in range(size):
            following[row] = np.bincount(
                children, here[row, parents] * weights, minlength=here.shape[1]
            )
        here = following
    rows, columns, scores = _word_scores(grammar, lexicon)
    words = np.zeros((size, len(lexicon.vocabulary)))
    for row in range(size):
        words[row] = np.bincount(
            columns, at_edge[row, rows] * scores, minlength=len(lexicon.vocabulary)
        )
    return words


def _edge_steps(grammar: Grammar, side: int) -> tuple[Places, Places, FloatArray]:
    """Return parents, first (last) children, and how likely one leads to the other."""
    parents: list[Places] = []
    children: list[Places] = []
    weights: list[FloatArray] = []
    for parent, child, block in _edge_blocks(grammar, side):
        rows, columns = np.nonzero(block)
        parents.append(grammar.substate_starts[parent] + rows)
        children.append(grammar.substate_starts[child] + columns)
        weights.append(block[rows, columns])
    empty = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([*parents, empty]),
        np.concatenate([*children, empty]),
        np.concatenate([*weights, np.zeros(0)]),
    )


def _edge_blocks(grammar: Grammar, side: int) -> Iterator[tuple[int, int, FloatArray]]:
    for rule, (parent, child) in enumerate(grammar.unary_rules.tolist()):
        yield parent, child, grammar.unary_block(rule)
    for rule, (parent, left, right) in enumerate(grammar.binary_rules.tolist()):
        block = grammar.binary_block(rule)
        yield (parent, left, block.sum(axis=2)) if side > 0 else (parent, right, block.sum(axis=1))


def _typical_rules(grammar: Grammar, number: int, place: int, limit: int) -> tuple[Typical, ...]:
    """Return the most probable rules of a subcategory, with the subcategories of the children."""
    found: list[tuple[float, str]] = []
    for rules, block_of in (
        (grammar.unary_rules, grammar.unary_block),
        (grammar.binary_rules, grammar.binary_block),
    ):
        for rule in np.flatnonzero(rules[:, 0] == number).tolist():
            row = block_of(rule)[place]
            names = [grammar.symbols[symbol] for symbol in rules[rule, 1:].tolist()]
            for index in np.argsort(-row, axis=None, kind="stable")[:limit].tolist():
                if not row.flat[index] > 0:
                    break
                parts = np.unravel_index(index, row.shape)
                shown = " ".join(f"{name}-{part}" for name, part in zip(names, parts, strict=True))
                found.append((float(row.flat[index]), shown))
    found.sort(key=lambda item: (-item[0], item[1]))
    return tuple(Typical(name, share) for share, name in found[:limit])


def _best(scores: FloatArray, names: tuple[str, ...], limit: int) -> tuple[Typical, ...]:
    order = np.argsort(-scores, kind="stable")[:limit].tolist()
    return tuple(
        Typical(names[index], float(scores[index])) for index in order if scores[index] > 0
    )
