"""Lattice smoothing on plain dictionaries, as the equations stand: slow and obvious."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from treelm.estimation.lattice import Lattice

#: One event: columns, outcome, count.
Event = tuple[tuple[int, ...], int, Fraction]


def bucket_of(count: Fraction, edges: Sequence[float]) -> int:
    """Return the bucket of a count: 0 for nothing."""
    if count == 0:
        return 0
    return 1 + sum(count > Fraction(edge) for edge in edges)


class ReferenceTables:
    """Counts of all nodes in dictionaries."""

    def __init__(
        self, lattice: Lattice, events: Iterable[Event], cutoff: Fraction = Fraction(0)
    ) -> None:
        self.lattice = lattice
        self.counts: list[dict[tuple[tuple[int, ...], int], Fraction]] = []
        events = list(events)
        for node in lattice.nodes:
            sums: dict[tuple[tuple[int, ...], int], Fraction] = defaultdict(Fraction)
            for columns, outcome, count in events:
                sums[tuple(columns[c] for c in node.columns), outcome] += count
            self.counts.append({key: count for key, count in sums.items() if count >= cutoff})

    def total(self, node: int, context: tuple[int, ...]) -> Fraction:
        """Return the count of a context."""
        return sum((c for (ctx, _), c in self.counts[node].items() if ctx == context), Fraction(0))

    def frequencies(
        self, columns: Sequence[int], outcome: int, edges: Sequence[float]
    ) -> list[tuple[Fraction, int]]:
        """Return the relative frequency and the bucket of the context in every node."""
        found = []
        for number, node in enumerate(self.lattice.nodes):
            context = tuple(columns[c] for c in node.columns)
            total = self.total(number, context)
            count = self.counts[number].get((context, outcome), Fraction(0))
            found.append((count / total if total else Fraction(0), bucket_of(total, edges)))
        return found


def node_probs(
    lattice: Lattice,
    found: Sequence[tuple[Fraction, int]],
    weights: Mapping[tuple[int, int], Sequence[float]],
) -> list[float]:
    """Return p_v of every node, from relative frequencies and weights by (node, bucket)."""
    probs: list[float] = []
    for number, node in enumerate(lattice.nodes):
        frequency, bucket = found[number]
        weight = weights[number, bucket]
        below = [probs[parent] for parent in node.parents] or [1 / lattice.outcomes]
        probs.append(
            weight[0] * float(frequency)
            + math.fsum(w * p for w, p in zip(weight[1:], below, strict=False))
        )
    return probs


def em_sums(
    lattice: Lattice,
    events: Iterable[tuple[Sequence[tuple[Fraction, int]], float]],
    weights: Mapping[tuple[int, int], Sequence[float]],
) -> tuple[dict[tuple[int, int], list[float]], float]:
    """Return the expected counts of (14) by node and bucket, and the log likelihood."""
    sums: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0] * 8)
    likelihood = 0.0
    for found, times in events:
        probs = node_probs(lattice, found, weights)
        likelihood += times * math.log(probs[-1])
        shares = [0.0] * len(probs)
        shares[-1] = times
        for v in range(len(probs) - 1, -1, -1):
            frequency, bucket = found[v]
            weight = weights[v, bucket]
            ratio = shares[v] / probs[v]
            sums[v, bucket][0] += ratio * weight[0] * float(frequency)
            if v == 0:
                sums[v, bucket][1] += ratio * weight[1] / lattice.outcomes
            for u, parent in enumerate(lattice.nodes[v].parents):
                share = ratio * weight[1 + u] * probs[parent]
                sums[v, bucket][1 + u] += share
                shares[parent] += share
    return sums, likelihood
