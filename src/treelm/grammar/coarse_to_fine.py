"""Coarser grammars for pruning: projections of a latent grammar onto its history of splits.

Petrov and Klein (2007), "Improved inference for unlexicalized parsing".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.errors import UsageError
from treelm.grammar.grammar import FloatArray, Grammar, IntArray
from treelm.grammar.lexicon import Lexicon, LongArray, block_starts

#: Rounds of the fixed point of expected counts, and the change at which they end.
_ROUNDS, _CHANGE = 50, 1e-9


def expected_subcategories(grammar: Grammar) -> FloatArray:
    """Return how often every subcategory is expected in a tree sampled from the grammar."""
    total = grammar.total_substates
    starts = grammar.substate_starts
    parents: list[LongArray] = []
    children: list[LongArray] = []
    weights: list[FloatArray] = []

    def add(parent: int, child: int, block: FloatArray) -> None:
        rows, columns = np.nonzero(block)
        parents.append(starts[parent] + rows)
        children.append(starts[child] + columns)
        weights.append(block[rows, columns])

    for rule, (parent, child) in enumerate(grammar.unary_rules.tolist()):
        add(parent, child, grammar.unary_block(rule))
    if grammar.is_latent:
        for rule, (parent, left, right) in enumerate(grammar.binary_rules.tolist()):
            block = grammar.binary_block(rule)
            add(parent, left, block.sum(axis=2))
            add(parent, right, block.sum(axis=1))
    else:
        for column in (1, 2):
            parents.append(grammar.binary_rules[:, 0].astype(np.int64))
            children.append(grammar.binary_rules[:, column].astype(np.int64))
            weights.append(grammar.binary_weights)
    counts: FloatArray = np.zeros(total)
    counts[0] = 1.0
    if not parents:
        return counts
    above, below = np.concatenate(parents), np.concatenate(children)
    weight = np.concatenate(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_ROUNDS):
            found = np.bincount(below, counts[above] * weight, minlength=total).astype(np.float64)
            found[0] += 1.0
            change = np.abs(found - counts).max()
            counts = found
            if change < _CHANGE:
                break
    # A grammar whose trees grow for ever has no such numbers; any are fine for pruning.
    return counts if (counts < 1 / np.finfo(np.float64).tiny).all() else np.ones(total)


def ancestors(grammar: Grammar, level: int) -> IntArray:
    """Return the number that every subcategory had after `level` cycles.

    Raises:
        UsageError: ``E_USAGE`` for a level that was not trained.
    """
    cycles = len(grammar.split_tree)
    if not 0 <= level <= cycles:
        raise UsageError(
            f"the grammar went through {cycles} cycles of splitting, so it has no level {level}."
        )
    found: IntArray = np.arange(grammar.total_substates, dtype=np.int32)
    for before in reversed(grammar.split_tree[level:]):
        found = before[found]
    return found


def project(
    grammar: Grammar, lexicon: Lexicon, level: int, counts: FloatArray | None = None
) -> tuple[Grammar, Lexicon]:
    """Return grammar and lexicon with the subcategories as they were after `level` cycles.

    Args:
        grammar: The finest grammar.
        lexicon: Its lexicon.
        level: 0 for no subcategories, up to the number of cycles.
        counts: Result of `expected_subcategories`, if already computed.
    """
    above = ancestors(grammar, level)
    counts = expected_subcategories(grammar) if counts is None else counts
    size = int(above.max()) + 1
    totals = np.bincount(above, counts, minlength=size)
    members = np.bincount(above, minlength=size)
    # Subcategories that never occur get equal shares.
    shares = np.where(totals[above] > 0, counts / np.where(totals > 0, totals, 1)[above], 0.0)
    shares = np.where(totals[above] > 0, shares, 1 / members[above])
    symbol_of = np.repeat(np.arange(len(grammar.symbols)), grammar.substates)
    first = np.zeros(size, dtype=np.int64)
    first[above] = symbol_of
    substates = np.bincount(first, minlength=len(grammar.symbols)).astype(np.int32)
    merge = _Merge(grammar, above - block_starts(substates)[symbol_of], shares, substates)
    projected = Grammar(
        grammar.symbols,
        grammar.phrasal,
        substates,
        grammar.unary_rules,
        grammar.binary_rules,
        merge.unary(),
        merge.binary(),
        grammar.split_tree[:level],
    )
    return projected, merge.lexicon(lexicon)


class _Merge:
    """Sums the weights of merged subcategories: by share as parents, whole as children."""

    def __init__(
        self,
        grammar: Grammar,
        within: npt.NDArray[np.int64],
        shares: FloatArray,
        substates: IntArray,
    ) -> None:
        self.grammar, self.within, self.shares, self.substates = grammar, within, shares, substates
        self.parent: list[FloatArray] = []
        self.child: list[FloatArray] = []
        starts = grammar.substate_starts
        for symbol, (old, new) in enumerate(
            zip(grammar.substates.tolist(), substates.tolist(), strict=True)
        ):
            own = slice(int(starts[symbol]), int(starts[symbol]) + old)
            child = np.zeros((old, new))
            child[np.arange(old), within[own]] = 1.0
            self.child.append(child)
            self.parent.append((child * shares[own, None]).T)

    def unary(self) -> FloatArray:
        """Return the blocks of unary rules after merging."""
        blocks = [
            (self.parent[parent] @ self.grammar.unary_block(rule) @ self.child[child]).ravel()
            for rule, (parent, child) in enumerate(self.grammar.unary_rules.tolist())
        ]
        return np.concatenate([*blocks, np.zeros(0)])

    def binary(self) -> FloatArray:
        """Return the blocks of binary rules after merging."""
        blocks = []
        for rule, (parent, left, right) in enumerate(self.grammar.binary_rules.tolist()):
            block = self.grammar.binary_block(rule) @ self.child[right]
            block = np.tensordot(self.parent[parent], block, axes=1)
            blocks.append((self.child[left].T @ block).ravel())
        return np.concatenate([*blocks, np.zeros(0)])

    def lexicon(self, lexicon: Lexicon) -> Lexicon:
        """Return the lexicon after merging."""
        grammar, phrasal = self.grammar, self.grammar.phrasal
        first_tag = int(grammar.substate_starts[phrasal])
        shares, within = self.shares[first_tag:], self.within[first_tag:]
        new_tags = block_starts(self.substates[phrasal:])

        def merged(
            scores: FloatArray, places: LongArray, starts: LongArray, size: int
        ) -> FloatArray:
            found = np.bincount(starts + within[places], scores * shares[places], minlength=size)
            return found.astype(np.float64)

        sizes = np.diff(lexicon.score_starts)
        places = np.repeat(
            lexicon.tag_starts[lexicon.entry_symbols - phrasal] - lexicon.score_starts[:-1], sizes
        ) + np.arange(len(lexicon.entry_scores))
        new_starts = block_starts(self.substates[lexicon.entry_symbols])
        tags = np.repeat(np.arange(len(new_tags) - 1), np.diff(lexicon.tag_starts))
        return Lexicon(
            lexicon.vocabulary,
            phrasal,
            self.substates,
            lexicon.entry_starts,
            lexicon.entry_symbols,
            merged(
                lexicon.entry_scores,
                places,
                np.repeat(new_starts[:-1], sizes),
                int(new_starts[-1]),
            ),
            lexicon.openness,
            merged(
                lexicon.open_scores,
                np.arange(len(lexicon.open_scores)),
                new_tags[tags],
                int(new_tags[-1]),
            ),
            lexicon.normalized,
        )
