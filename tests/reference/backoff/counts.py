"""Section 2.1: event counts and level counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from tests.reference.backoff.chains import Chain
from tests.reference.backoff.symbols import (
    BackoffError,
    Context,
    CountKind,
    Event,
    Events,
    Outcome,
    Table,
)


def event_counts(events: Events) -> dict[Event, int]:
    """c(c,x), the training frequency of each event (2.1), from a list or from given counts."""
    given = events.items() if isinstance(events, Mapping) else ((event, 1) for event in events)
    counts: Counter[Event] = Counter()
    for event, count in given:
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise BackoffError("E_COUNT", f"{count!r} is no count")
        counts[event] += count
    return {event: count for event, count in counts.items() if count > 0}


def merge_counts(*shards: Events) -> dict[Event, int]:
    """The event counts of several shards together (I5)."""
    total: Counter[Event] = Counter()
    for shard in shards:
        total.update(event_counts(shard))
    return dict(total)


def token_counts(events: Events, chain: Chain) -> list[Table]:
    """tok_j for every level, summed over all events, discarded contexts included (2.1)."""
    tables: list[defaultdict[Context, Counter[Outcome]]] = [
        defaultdict(Counter) for _ in chain.levels
    ]
    for (context, outcome), count in event_counts(events).items():
        for level, table in enumerate(tables):
            table[chain.project(context, level)][outcome] += count
    return [{key: dict(row) for key, row in table.items()} for table in tables]


def level_counts(events: Events, chain: Chain, counts: CountKind = "types") -> list[Table]:
    """N_j for every level: (2.1), (2.2) and the boundary exception; "tokens": tok_j throughout."""
    if counts not in {"types", "tokens"}:
        raise ValueError(counts)
    tokens = token_counts(events, chain)
    if not tokens[0]:
        raise BackoffError("E_NO_DATA", "no events")
    kept = [_without_discarded(table, chain, level) for level, table in enumerate(tokens)]
    if counts == "tokens":
        return kept
    tables = [kept[0]]
    for level in range(1, len(kept)):
        types = _continuations(tables[level - 1], chain, level)
        raw = {key: row for key, row in kept[level].items() if chain.raw(level, key)}
        tables.append(types | raw)
    return tables


def _without_discarded(table: Table, chain: Chain, level: int) -> Table:
    return {key: row for key, row in table.items() if not chain.discarded(level, key)}


def _continuations(above: Table, chain: Chain, level: int) -> Table:
    """(2.2) for the contexts of a level that hold no pad."""
    seen: defaultdict[Context, defaultdict[Outcome, set[Context]]]
    seen = defaultdict(lambda: defaultdict(set))
    for longer, row in above.items():
        key = chain.below(level - 1, longer)
        if chain.pad_count(level, key) == 0:
            for outcome in row:
                seen[key][outcome].add(longer)
    return {key: {x: len(found) for x, found in row.items()} for key, row in seen.items()}


def count_of_counts(table: Table, r: int) -> int:
    """n_r: the number of pairs (k,x) with N_j(k,x) = r (2.3)."""
    return sum(count == r for row in table.values() for count in row.values())
