"""Rules with labels as ids, for the kernel's yields beside those of the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from tests.reference import backoff as reference

from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import GivenBase, estimate
from treelm.estimation.kneser_ney import kneser_ney
from treelm.estimation.yields import Rules, YieldBase
from treelm.events.counts import EventCounter

Rule = tuple[str, tuple[str, ...]]


def halves(counts: ChainCounts) -> Any:
    return kneser_ney(counts, fixed=[0.5] * len(counts))


def unsmoothed(counts: ChainCounts) -> Any:
    return kneser_ney(counts, fixed=[0.0] * len(counts))


def reference_halves(events: Any, chain: Any, base: Any) -> reference.CountModel:
    return reference.fixed_discounts(events, chain, base, [Fraction(1, 2)] * len(chain.levels))


@dataclass(frozen=True)
class Labels:
    """Ids of labels; labels that are not there have ids of their own behind them."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Labels:
        return cls(tuple(sorted({x for parent, right in rules for x in (parent, *right)})))

    def __getitem__(self, name: str) -> int:
        return self.names.index(name) if name in self.names else len(self.names) + 3

    def rules(self, rules: Iterable[Rule]) -> Rules:
        return Rules.from_lists((self[parent], [self[x] for x in right]) for parent, right in rules)


def yield_base(
    rules: Sequence[Rule], smoothing: Callable[..., Any] = halves, **options: Any
) -> tuple[YieldBase, Labels]:
    labels = Labels.of(rules)
    counted = Counter(rules)
    base = YieldBase.estimate(
        labels.rules(counted),
        list(counted.values()),
        labels=len(labels.names),
        smoothing=smoothing,
        **{"precision": "double"} | options,
    )
    return base, labels


@dataclass(frozen=True)
class RuleModel:
    """The chain (P,P',r') -> (P,P') -> (P) over yields, D = 1/2, and the base below it."""

    base: YieldBase
    labels: Labels
    table: BackoffTable
    yields: dict[tuple[str, ...], int]
    contexts: dict[str, int]

    @classmethod
    def of(cls, trees: Sequence[reference.Tree], **options: Any) -> RuleModel:
        base, labels = yield_base(reference.tree_rules(trees), **options)
        events = reference.nonterminal_events(trees)
        yields = {x: i for i, x in enumerate(sorted({x for _, x in events}))}
        symbols = sorted({str(x) for context, _ in events for x in context})
        contexts = {x: i for i, x in enumerate(symbols)}
        counter = EventCounter(4)
        counter.add([(yields[x], *(contexts[e] for e in context)) for context, x in events])
        chain = Chain(("P", "P'", "r'"), (3, 2, 1), (None, None, None))
        counts = ChainCounts(counter.finish(), chain)
        rows = counts.entries(2)[0].tolist()
        names, rights = list(contexts), list(yields)
        given = base.probabilities(labels.rules((names[row[1]], rights[row[0]]) for row in rows))
        table = estimate(
            counts,
            halves(counts),
            GivenBase(given),
            outcomes=len(yields),
            first_contexts=len(contexts),
            precision="double",
        )
        return cls(base, labels, table, yields, contexts)

    def row(self, context: Sequence[str], right: tuple[str, ...]) -> list[int]:
        unseen = 2**32 - 2
        found = [self.contexts.get(x, unseen) for x in context]
        return [self.yields.get(right, unseen), *found]

    def probabilities(
        self, context: Sequence[str], rights: Sequence[tuple[str, ...]]
    ) -> np.ndarray:
        given = self.base.probabilities(self.labels.rules((context[0], x) for x in rights))
        rows = [self.row(context, right) for right in rights]
        return np.exp(self.table.log_probabilities(rows, base=given))
