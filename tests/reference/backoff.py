"""Slow, obviously-right reference of backoff-estimation.md, used as test oracle.

Numbers in brackets are the equations and sections of that file (TL: of treelet.md). Tables are
plain dictionaries and probabilities are `Fraction`s; only the EM of section 4 runs in floats.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Literal, NamedTuple, Protocol, TypeAlias

Context: TypeAlias = tuple[Hashable, ...]
Outcome: TypeAlias = Hashable
Event: TypeAlias = tuple[Context, Outcome]
Events: TypeAlias = Mapping[Event, int] | Iterable[Event]
Table: TypeAlias = dict[Context, dict[Outcome, int]]
Number: TypeAlias = float | Fraction
Uniform: TypeAlias = Callable[[], Number]
Draw: TypeAlias = Callable[[Context], Outcome]
CountKind: TypeAlias = Literal["types", "tokens"]
BucketKind: TypeAlias = Literal["count", "ratio"]
Triple: TypeAlias = tuple[Fraction, Fraction, Fraction]
Yield: TypeAlias = tuple[str, ...]
Rule: TypeAlias = tuple[str, Yield]
# A tree is (label, child, ..); a preterminal is (label, word).
Tree: TypeAlias = tuple["str | Tree", ...]

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
START, STOP, USYM = "START", "STOP", "<usym>"
TOP, NONE = "<top>", "<none>"
SENTINELS = frozenset({BEGIN, NONE, TOP, START})
RESERVED_WORDS = SENTINELS | {USYM, END}
RESERVED_LABELS = SENTINELS | {USYM, STOP}

FALLBACK = Fraction(3, 4)
LOWEST, HIGHEST = Fraction(1, 100), Fraction(99, 100)
MODIFIED_FALLBACK: Triple = (Fraction(1, 2), Fraction(1), Fraction(3, 2))
MODIFIED_LOWEST = Fraction(1, 10**6)
WEIGHT_LOWEST, WEIGHT_HIGHEST = 1e-6, 1 - 1e-6


class BackoffError(ValueError):
    """An error with the code the specification gives it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


# --- 1. Chain ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """The projections phi_0..phi_J of section 1 and the pads of 2.1.

    `levels[j]` holds the positions of the full context that phi_j keeps. `pads` maps the position
    of each pad slot to its pad symbol.
    """

    levels: tuple[tuple[int, ...], ...]
    pads: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_levels()
        for upper, lower in zip(self.levels, self.levels[1:], strict=False):
            self._check_step(upper, lower)

    def _check_levels(self) -> None:
        if not self.levels:
            raise BackoffError("E_CHAIN", "no level (J < 0)")
        if self.levels[0] != tuple(range(len(self.levels[0]))):
            raise BackoffError("E_CHAIN", "phi_0 is not the whole context")
        if any(len(set(kept)) != len(kept) for kept in self.levels):
            raise BackoffError("E_CHAIN", "a level keeps a position twice")
        if not set(self.pads) <= set(self.levels[0]):
            raise BackoffError("E_CHAIN", "a pad slot is no position of the context")

    def _check_step(self, upper: tuple[int, ...], lower: tuple[int, ...]) -> None:
        if not set(lower) <= set(upper):
            raise BackoffError("E_CHAIN", f"{lower} is not computable from {upper}")
        if set(lower) == set(upper):
            raise BackoffError("E_CHAIN", f"{lower} drops nothing from {upper}")
        if len((set(upper) - set(lower)) & set(self.pads)) > 1:
            raise BackoffError("E_CHAIN", f"{upper} -> {lower} drops more than one pad slot")

    @property
    def last(self) -> int:
        """J."""
        return len(self.levels) - 1

    def check(self, level: int, key: Context) -> None:
        """Refuse a context that has not the length of its level (section 11)."""
        if len(key) != len(self.levels[level]):
            raise BackoffError("E_ARITY", f"{key!r} is no context of level {level}")

    def project(self, context: Context, level: int) -> Context:
        """phi_level(c) of a full context (1.1)."""
        self.check(0, context)
        return tuple(context[position] for position in self.levels[level])

    def below(self, level: int, key: Context) -> Context:
        """phi_{level+1}(k) of a context k of a level; below the last level k itself (1.1)."""
        self.check(level, key)
        if level == self.last:
            return key
        value = dict(zip(self.levels[level], key, strict=True))
        return tuple(value[position] for position in self.levels[level + 1])

    def pad_count(self, level: int, key: Context) -> int:
        """How many pads k holds; they fill the farthest slots, so all of them lead (2.1)."""
        held = zip(self.levels[level], key, strict=True)
        return sum(position in self.pads and self.pads[position] == x for position, x in held)

    def raw(self, level: int, key: Context) -> bool:
        """Whether k has raw counts, the predicate of 2.1: exactly one pad."""
        return self.pad_count(level, key) == 1

    def discarded(self, level: int, key: Context) -> bool:
        """Whether k has no counts at all (2.1): more than one pad."""
        return self.pad_count(level, key) > 1


def ngram_chain(order: int) -> Chain:
    """(w-n+1..w-1) -> .. -> (w-1) -> () of section 1; every slot is a pad slot."""
    length = order - 1
    levels = tuple(tuple(range(first, length)) for first in range(length + 1))
    return Chain(levels, dict.fromkeys(range(length), BEGIN))


def terminal_chain() -> Chain:
    """(P,R,r',w-1,w-2) -> .. -> (P) -> () of section 1."""
    levels = tuple(tuple(range(length)) for length in range(5, -1, -1))
    return Chain(levels, {3: BEGIN, 4: BEGIN})


def nonterminal_chain() -> Chain:
    """(P,P',r') -> (P,P') -> (P) of section 1."""
    return Chain(((0, 1, 2), (0, 1), (0,)))


def yield_chain(*, given_parent: bool) -> Chain:
    """The 4-gram chains of section 1: (C-3,C-2,C-1,P) -> .. -> (P), or without P -> .. -> ()."""
    parent = (3,) if given_parent else ()
    levels = tuple(tuple(range(first, 3)) + parent for first in range(4))
    return Chain(levels, dict.fromkeys(range(3), START))


# --- 2.1 Level counts ----------------------------------------------------------------------------


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


# --- 2.3, 3 Discounts ----------------------------------------------------------------------------


def discount(n1: int, n2: int, fallback: Fraction = FALLBACK) -> Fraction:
    """D_j of (2.7), clamped; the fallback, unclamped, where n_1 or n_2 is 0."""
    if n1 == 0 or n2 == 0:
        return fallback
    return min(max(Fraction(n1, n1 + 2 * n2), LOWEST), HIGHEST)


def modified_discounts(n1: int, n2: int, n3: int, n4: int, *, lmplz: bool = False) -> Triple:
    """(D_1, D_2, D_3+) of (3.1) with the fallback rule of section 3; clamped unless `lmplz`."""
    estimated = None if 0 in {n1, n2, n3} else _chen_goodman(n1, n2, n3, n4)
    if estimated is None or any(not 0 <= d <= r for r, d in enumerate(estimated, start=1)):
        warnings.warn("modified Kneser-Ney: fallback discounts", stacklevel=2)
        return MODIFIED_FALLBACK
    if lmplz:
        return estimated
    one, two, more = (max(d, MODIFIED_LOWEST) for d in estimated)
    return one, two, more


def _chen_goodman(n1: int, n2: int, n3: int, n4: int) -> Triple:
    """(3.1)."""
    y = Fraction(n1, n1 + 2 * n2)
    return (
        1 - 2 * y * Fraction(n2, n1),
        2 - 3 * y * Fraction(n3, n2),
        3 - 4 * y * Fraction(n4, n3),
    )


def modified_discount(triple: Triple, count: int) -> Fraction:
    """D(n) of (3.2)."""
    return Fraction(0) if count == 0 else triple[min(count, 3) - 1]


# --- 1.1, 2.6, 5 Base distributions ---------------------------------------------------------------


class Base(Protocol):
    """b(x | phi_J) of (1.1)."""

    @property
    def outcomes(self) -> tuple[Outcome, ...] | None:
        """All outcomes, or None where there is no end of them."""

    def resolve(self, outcome: Outcome) -> Outcome:
        """The outcome that stands for a queried one, which may be unknown."""

    def probability(self, key: Context, outcome: Outcome) -> Fraction:
        """The value of b for a resolved outcome."""

    def sampler(self, uniform: Uniform, number: type[float] | type[Fraction]) -> Draw:
        """A function that draws from b( . | key)."""


class UniformBase:
    """b(x) = 1/|V| (2.6). An outcome outside V counts as `unknown` if that is in V."""

    def __init__(
        self, vocabulary: Iterable[Outcome], unknown: str | None = UNKNOWN, code: str = "E_OOV"
    ) -> None:
        members = set(vocabulary)
        if not members:
            raise BackoffError("E_NO_DATA", "empty vocabulary")
        if members & SENTINELS:
            raise BackoffError("E_RESERVED_SYMBOL", f"{members & SENTINELS} in the vocabulary")
        self._members = frozenset(members)
        self._unknown = unknown
        self._code = code

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """V, sorted."""
        return tuple(sorted(self._members, key=repr))

    def resolve(self, outcome: Outcome) -> Outcome:
        """The outcome, or the unknown symbol; without one in V: E_OOV (section 11)."""
        if outcome in self._members:
            return outcome
        if self._unknown in self._members:
            return self._unknown
        raise BackoffError(self._code, f"{outcome!r} is not in the vocabulary")

    def probability(self, _key: Context, _outcome: Outcome) -> Fraction:
        """(2.6)."""
        return Fraction(1, len(self._members))

    def sampler(self, uniform: Uniform, _number: type[float] | type[Fraction]) -> Draw:
        """Uniform draws, never `<usym>` (section 10)."""
        members = [x for x in self.outcomes if x != USYM]
        return lambda _key: members[int(uniform() * len(members))]


# --- 1.1, 2.4 The model ---------------------------------------------------------------------------


class Row(NamedTuple):
    """What one context of one level adds: the first term of (2.4) per outcome, and gamma."""

    mass: Mapping[Outcome, Fraction]
    gamma: Fraction


EMPTY = Row({}, Fraction(1))  # S_j = 0: p_j = p_{j+1} (2.2)


class BackoffModel:
    """p(x|c) of (1.1) from the rows of each level.

    A *key* is a context of its own level, phi_j(c); a *context* is c itself.
    """

    def __init__(self, chain: Chain, base: Base, rows: Sequence[Mapping[Context, Row]]) -> None:
        self.chain = chain
        self.base = base
        self.rows = rows

    def row(self, level: int, key: Context) -> Row:
        """The row of a key; an empty one where S_j = 0."""
        self.chain.check(level, key)
        return self.rows[level].get(key, EMPTY)

    def gamma(self, level: int, key: Context) -> Fraction:
        """gamma_j(k) of (2.5); 1 where S_j = 0."""
        return self.row(level, key).gamma

    def level_probability(self, level: int, key: Context, outcome: Outcome) -> Fraction:
        """p_j(x|k) of (2.4); below the last level b(x|k) (1.1)."""
        outcome = self.base.resolve(outcome)
        if level > self.chain.last:
            return self.base.probability(key, outcome)
        row = self.row(level, key)
        seen = row.mass.get(outcome, Fraction(0))
        if row.gamma == 0:
            return seen
        lower = self.level_probability(level + 1, self.chain.below(level, key), outcome)
        return seen + row.gamma * lower

    def probability(self, context: Context, outcome: Outcome) -> Fraction:
        """p(x|c) of (1.1)."""
        return self.level_probability(0, context, outcome)

    def level_distribution(
        self, level: int, key: Context, outcomes: Iterable[Outcome] | None = None
    ) -> dict[Outcome, Fraction]:
        """p_j( . |k) over V, or over the outcomes given (yields have no end)."""
        wanted = self.base.outcomes if outcomes is None else outcomes
        if wanted is None:
            message = "this base has no finite support: name the outcomes"
            raise ValueError(message)
        return {x: self.level_probability(level, key, x) for x in wanted}

    def distribution(
        self, context: Context, outcomes: Iterable[Outcome] | None = None
    ) -> dict[Outcome, Fraction]:
        """p( . |c) over V, or over the outcomes given."""
        return self.level_distribution(0, context, outcomes)


class CountModel(BackoffModel):
    """A model of sections 2 and 3, with its counts N_j and its discounts per level."""

    def __init__(
        self,
        chain: Chain,
        base: Base,
        rows: Sequence[Mapping[Context, Row]],
        counts: Sequence[Table],
        discounts: Sequence[Fraction] | Sequence[Triple],
    ) -> None:
        super().__init__(chain, base, rows)
        self.counts = counts
        self.discounts = discounts

    def types(self, level: int, key: Context) -> int:
        """T_j(k) of (2.3)."""
        self.chain.check(level, key)
        return len(self.counts[level].get(key, {}))

    def total(self, level: int, key: Context) -> int:
        """S_j(k) of (2.3)."""
        self.chain.check(level, key)
        return sum(self.counts[level].get(key, {}).values())


def _check_outcomes(events: Events, base: Base) -> dict[Event, int]:
    """The event counts, all of whose outcomes must be known to the base: V is closed (2.6)."""
    counted = event_counts(events)
    for _, outcome in counted:
        if base.resolve(outcome) != outcome:
            raise BackoffError("E_OOV", f"{outcome!r} in training is unknown to the base")
    return counted


def _discounted(table: Table, taken: Callable[[int], Fraction]) -> dict[Context, Row]:
    """The rows of (2.4) and (3.3), `taken` being D as a function of the count."""
    return {key: _discounted_row(row, taken) for key, row in table.items()}


def _discounted_row(row: Mapping[Outcome, int], taken: Callable[[int], Fraction]) -> Row:
    total = sum(row.values())
    mass = {x: max(n - taken(n), Fraction(0)) / total for x, n in row.items()}
    return Row(mass, sum((taken(n) for n in row.values()), Fraction(0)) / total)


# --- 2 Interpolated Kneser-Ney --------------------------------------------------------------------


def kneser_ney(
    events: Events,
    chain: Chain,
    base: Base,
    *,
    counts: CountKind = "types",
    fallback_discount: Fraction = FALLBACK,
) -> CountModel:
    """Interpolated Kneser-Ney of section 2, one estimated discount per level (2.7)."""
    tables = level_counts(_check_outcomes(events, base), chain, counts)
    discounts = [_estimated(table, fallback_discount) for table in tables]
    return _with_discounts(tables, chain, base, discounts)


def fixed_discounts(
    events: Events,
    chain: Chain,
    base: Base,
    discounts: Sequence[Fraction],
    *,
    counts: CountKind = "types",
) -> CountModel:
    """Interpolated Kneser-Ney with given discounts D_0..D_J, used as they are (2.3)."""
    tables = level_counts(_check_outcomes(events, base), chain, counts)
    return _with_discounts(tables, chain, base, discounts)


def _estimated(table: Table, fallback: Fraction = FALLBACK) -> Fraction:
    return discount(count_of_counts(table, 1), count_of_counts(table, 2), fallback)


def _with_discounts(
    tables: Sequence[Table], chain: Chain, base: Base, discounts: Sequence[Fraction]
) -> CountModel:
    if len(discounts) != len(tables) or any(not 0 <= d <= 1 for d in discounts):
        raise BackoffError("E_DISCOUNT", f"{list(discounts)} for {len(tables)} levels")
    exact = [Fraction(d) for d in discounts]
    rows = [_discounted(table, _constant(d)) for table, d in zip(tables, exact, strict=True)]
    return CountModel(chain, base, rows, tables, exact)


def _constant(value: Fraction) -> Callable[[int], Fraction]:
    return lambda _count: value


def berkeley(
    events: Events, chain: Chain, base: Base, *, counts: CountKind = "types", prune: bool = False
) -> CountModel:
    """`berkeley=True` of 2.2: the last level undiscounted, without uniform term."""
    if not isinstance(base, UniformBase):
        raise BackoffError("E_CHAIN", "Berkeley mode needs a uniform base")
    counted = _check_outcomes(events, base)
    tables = level_counts(counted, chain, counts)
    discounts = [*(_estimated(table) for table in tables[:-1]), Fraction(0)]
    model = _with_discounts(tables, chain, base, discounts)
    if not prune:
        return model
    tokens = token_counts(counted, chain)
    pruned = [_pruned(rows, seen) for rows, seen in zip(model.rows, tokens, strict=True)]
    return CountModel(chain, base, pruned, tables, discounts)


def pruning_threshold(order: int) -> int:
    """The least token count that is kept: (1,1,1,2,2,..) for order 1,2,3,4,5,.. (2.2)."""
    return 1 if order <= 3 else 2


def _pruned(rows: Mapping[Context, Row], tokens: Table) -> dict[Context, Row]:
    """The kept entries, and gamma as one minus their mass (2.2)."""
    result = {}
    for key, row in rows.items():
        least = pruning_threshold(len(key) + 1)
        kept = {x: mass for x, mass in row.mass.items() if tokens[key][x] >= least}
        result[key] = Row(kept, 1 - sum(kept.values(), Fraction(0)))
    return result


# --- 3 Modified Kneser-Ney ------------------------------------------------------------------------


def modified_kneser_ney(
    events: Events,
    chain: Chain,
    base: Base,
    *,
    counts: CountKind = "types",
    lmplz: bool = False,
    discounts: Sequence[Triple] | None = None,
) -> CountModel:
    """Section 3: (3.3) with discounts estimated by (3.1) or given per level."""
    tables = level_counts(_check_outcomes(events, base), chain, counts)
    if discounts is None:
        discounts = [
            modified_discounts(*(count_of_counts(table, r) for r in (1, 2, 3, 4)), lmplz=lmplz)
            for table in tables
        ]
    _check_triples(discounts, len(tables))
    rows = [_discounted(table, _by_count(t)) for table, t in zip(tables, discounts, strict=True)]
    return CountModel(chain, base, rows, tables, list(discounts))


def _check_triples(triples: Sequence[Triple], levels: int) -> None:
    legal = all(0 <= d <= r for triple in triples for r, d in enumerate(triple, start=1))
    if len(triples) != levels or not legal:
        raise BackoffError("E_DISCOUNT", f"{list(triples)} for {levels} levels")


def _by_count(triple: Triple) -> Callable[[int], Fraction]:
    return lambda count: modified_discount(triple, count)


# --- 4 Recursive Jelinek-Mercer -------------------------------------------------------------------


def bucket(total: int, types: int = 1) -> int:
    """The bucket of tok_j(k), or of tok_j(k)/T_j(k): 1, 2, 3-4, 5-8, .. (section 4)."""
    return (math.ceil(Fraction(total, types)) - 1).bit_length()


def merge_buckets(heldout: Mapping[int, int], top: int, minimum: int = 100) -> dict[int, int]:
    """The group, named by its smallest bucket, of each bucket 0..top (section 4).

    From the largest bucket down, one with too few held-out events joins the next smaller one; in
    the end the smallest group, if still too small, joins the next larger one.
    """
    groups = [[number] for number in range(top + 1)]

    def small(group: list[int]) -> bool:
        return sum(heldout.get(number, 0) for number in group) < minimum

    for place in range(top, 0, -1):
        if small(groups[place]):
            groups[place - 1] += groups.pop(place)
    if len(groups) > 1 and small(groups[0]):
        groups[0] += groups.pop(1)
    return {number: min(group) for group in groups for number in group}


def em_step(weight: Number, pairs: Sequence[tuple[Number, Number]]) -> Number:
    """(4.4) once, over the held-out events of a bucket as pairs (f_j, p_{j+1})."""
    return sum(weight * f / (weight * f + (1 - weight) * p) for f, p in pairs) / len(pairs)


def em_weights(
    pairs: Sequence[tuple[Number, Number]],
    *,
    start: float = 0.5,
    tolerance: float = 1e-6,
    rounds: int = 100,
) -> list[float]:
    """The value of L after each round of (4.4), the start first, before clamping."""
    trace = [start]
    floats = [(float(f), float(p)) for f, p in pairs]
    for _ in range(rounds if floats else 0):
        trace.append(float(em_step(trace[-1], floats)))
        if abs(trace[-1] - trace[-2]) < tolerance:
            break
    return trace


def log_likelihood(weight: float, pairs: Iterable[tuple[Number, Number]]) -> float:
    """The held-out log likelihood of a bucket at weight L (I10)."""
    return math.fsum(math.log(weight * f + (1 - weight) * p) for f, p in pairs)


class JelinekMercerModel(BackoffModel):
    """A model of section 4 with its counts tok_j and L_{j,g} per level and merged bucket."""

    def __init__(
        self,
        chain: Chain,
        base: Base,
        rows: Sequence[Mapping[Context, Row]],
        *,
        counts: Sequence[Table],
        weights: Sequence[Mapping[int, Fraction]],
        traces: Sequence[Mapping[int, list[float]]],
        pairs: Sequence[Mapping[int, list[tuple[Fraction, Fraction]]]],
    ) -> None:
        super().__init__(chain, base, rows)
        self.counts = counts
        self.weights = weights
        self.traces = traces
        self.pairs = pairs


def jelinek_mercer(
    events: Events,
    heldout: Events,
    chain: Chain,
    base: Base,
    *,
    buckets: BucketKind = "count",
    min_heldout: int = 100,
) -> JelinekMercerModel:
    """(4.2) with L by EM on held-out events, levels from J upwards."""
    return _interpolated(
        [(events, heldout)], events, chain, base, kind=buckets, min_heldout=min_heldout
    )


def deleted_interpolation(
    folds: Sequence[Events],
    chain: Chain,
    base: Base,
    *,
    buckets: BucketKind = "count",
    min_heldout: int = 100,
) -> JelinekMercerModel:
    """The deleted variant: each fold is held out once, EM is pooled, counts are from all folds."""
    counted = [event_counts(fold) for fold in folds]
    splits = [
        (merge_counts(*counted[:place], *counted[place + 1 :]), fold)
        for place, fold in enumerate(counted)
    ]
    everything = merge_counts(*counted)
    return _interpolated(splits, everything, chain, base, kind=buckets, min_heldout=min_heldout)


def _interpolated(
    splits: Sequence[tuple[Events, Events]],
    everything: Events,
    chain: Chain,
    base: Base,
    *,
    kind: BucketKind,
    min_heldout: int,
) -> JelinekMercerModel:
    """L_{J}..L_{0} from the (training, held-out) splits, then the model on all the data."""
    final = level_counts(_check_outcomes(everything, base), chain, "tokens")
    parts = [
        (level_counts(_check_outcomes(train, base), chain, "tokens"), event_counts(held))
        for train, held in splits
    ]
    weights: list[dict[int, Fraction]] = [{} for _ in chain.levels]
    traces: list[dict[int, list[float]]] = [{} for _ in chain.levels]
    pairs: list[dict[int, list[tuple[Fraction, Fraction]]]] = [{} for _ in chain.levels]
    for level in range(chain.last, -1, -1):
        found: defaultdict[int, list[tuple[Fraction, Fraction]]] = defaultdict(list)
        for tables, held in parts:
            rows = _weighted_levels(tables, weights, level + 1, kind)
            lower = BackoffModel(chain, base, rows)  # p_{level+1} of full contexts
            for number, pair in _heldout_pairs(held, tables[level], lower, level, kind):
                found[number].append(pair)
        seen = {_row_bucket(row, kind) for row in final[level].values()} | set(found)
        sizes = {number: len(sample) for number, sample in found.items()}
        groups = merge_buckets(sizes, max(seen, default=0), min_heldout)
        for number, group in groups.items():
            pairs[level].setdefault(group, []).extend(found[number])
        traces[level] = {group: em_weights(sample) for group, sample in pairs[level].items()}
        weights[level] = {
            number: _clamped(traces[level][group][-1]) for number, group in groups.items()
        }
    rows = _weighted_levels(final, weights, 0, kind)
    return JelinekMercerModel(
        chain, base, rows, counts=final, weights=weights, traces=traces, pairs=pairs
    )


def _row_bucket(row: Mapping[Outcome, int], kind: BucketKind) -> int:
    return bucket(sum(row.values()), len(row) if kind == "ratio" else 1)


def _clamped(weight: float) -> Fraction:
    """L as an exact number within [1e-6, 1-1e-6]."""
    return Fraction(min(max(weight, WEIGHT_LOWEST), WEIGHT_HIGHEST))


def _weighted_levels(
    tables: Sequence[Table], weights: Sequence[Mapping[int, Fraction]], first: int, kind: BucketKind
) -> list[dict[Context, Row]]:
    """The rows of (4.2) at the levels from `first` down; none above, so p_j = p_{j+1} there."""
    result: list[dict[Context, Row]] = [{} for _ in tables]
    for level in range(first, len(tables)):
        result[level] = {
            key: _weighted_row(row, weights[level][_row_bucket(row, kind)])
            for key, row in tables[level].items()
        }
    return result


def _weighted_row(row: Mapping[Outcome, int], weight: Fraction) -> Row:
    """L f_j(x|k) with (4.1), and 1 - L."""
    total = sum(row.values())
    return Row({x: weight * Fraction(n, total) for x, n in row.items()}, 1 - weight)


def _heldout_pairs(
    held: Mapping[Event, int], table: Table, lower: BackoffModel, level: int, kind: BucketKind
) -> Iterator[tuple[int, tuple[Fraction, Fraction]]]:
    """The bucket and (f_j, p_{j+1}) of each held-out event whose context has counts (4.3)."""
    for (context, outcome), count in held.items():
        row = table.get(lower.chain.project(context, level), {})
        seen = row.get(lower.base.resolve(outcome), 0)
        below = lower.probability(context, outcome)
        if math.isnan(below):
            raise BackoffError("E_NAN", f"held-out probability of {outcome!r}")
        if seen == 0 and below == 0:
            raise BackoffError("E_ZERO_BASE", f"{outcome!r} has no probability at level {level}")
        if row:
            pair = (Fraction(seen, sum(row.values())), below)
            yield from [(_row_bucket(row, kind), pair)] * count


# --- 5 Yields -------------------------------------------------------------------------------------


class Estimator(Protocol):
    """What makes q from its events, its chain and its uniform base."""

    def __call__(self, events: Events, chain: Chain, base: Base, /) -> BackoffModel:
        """The model q."""


class YieldBase:
    """b(C_1..C_d | P) of (5.1) over rules (P, yield).

    Args:
        rules: the rule tokens of the training data.
        estimate: how q is made.
        lam: the weight of the conditional product.
        base_counts: "types" counts each distinct (P, yield) once.
        usym: whether `<usym>` is one of the symbols.
        on_unknown: "usym" scores a label outside the symbols as `<usym>`, "error" refuses it.
    """

    outcomes = None

    def __init__(
        self,
        rules: Iterable[Rule],
        estimate: Estimator = kneser_ney,
        *,
        lam: Fraction = Fraction(9, 10),
        base_counts: CountKind = "tokens",
        usym: bool = True,
        on_unknown: Literal["usym", "error"] = "usym",
    ) -> None:
        counted = Counter(rules) if base_counts == "tokens" else Counter(set(rules))
        if not counted:
            raise BackoffError("E_NO_DATA", "no rules")
        self.lam = Fraction(lam)
        self.parents = frozenset(parent for parent, _ in counted)
        children = {child for _, outcome in counted for child in outcome}
        check_reserved(self.parents | children, RESERVED_LABELS)
        self.symbols = frozenset(children | ({USYM} if usym else set()))
        unknown = USYM if on_unknown == "usym" else None
        self._uniform = UniformBase(self.symbols | {STOP}, unknown, "E_UNKNOWN_SYMBOL")
        self.conditional, self.unconditional = (
            estimate(
                yield_events(counted, given_parent=given),
                yield_chain(given_parent=given),
                self._uniform,
            )
            for given in (True, False)
        )

    def resolve(self, outcome: Outcome) -> Outcome:
        """The yield with every label outside the symbols as `<usym>` (section 5)."""
        labels = _checked_yield(outcome)
        return tuple(self._uniform.resolve(label) for label in labels)

    def product(self, parent: str | None, outcome: Yield) -> Fraction:
        """One product of (5.1), renormalised at i = 1 (5.2); unconditional for None."""
        model = self.unconditional if parent is None else self.conditional
        given = () if parent is None else (parent,)
        first = (START, START, START, *given)
        result = 1 / (1 - model.probability(first, STOP))
        padded = (START, START, START, *outcome, STOP)
        for place in range(3, len(padded)):
            result *= model.probability((*padded[place - 3 : place], *given), padded[place])
        return result

    def probability(self, key: Context, outcome: Outcome) -> Fraction:
        """(5.1); for a P never seen the unconditional product alone."""
        (parent,) = key
        labels = _checked_yield(outcome)
        free = self.product(None, labels)
        if parent not in self.parents:
            return free
        return self.lam * self.product(str(parent), labels) + (1 - self.lam) * free

    def sampler(self, uniform: Uniform, number: type[float] | type[Fraction]) -> Draw:
        """Choose a product by lam, then symbols from left to right until STOP (section 10)."""
        conditional = Sampler(self.conditional, uniform, number)
        unconditional = Sampler(self.unconditional, uniform, number)

        def draw(key: Context) -> Outcome:
            (parent,) = key
            if parent in self.parents and uniform() < number(self.lam):
                return _draw_yield(conditional, key)
            return _draw_yield(unconditional, ())

        return draw


def _checked_yield(outcome: Outcome) -> Yield:
    """A yield as a tuple of labels: not empty, no START or STOP inside."""
    if not isinstance(outcome, tuple) or not outcome:
        raise BackoffError("E_YIELD", f"{outcome!r} is no yield")
    labels = tuple(str(label) for label in outcome)
    check_reserved(labels, RESERVED_LABELS - {USYM})
    return labels


def _draw_yield(sampler: Sampler, given: Context) -> Yield:
    """Symbols until STOP; a STOP at the first place is drawn again, which is (5.2)."""
    drawn: list[str] = []
    while True:
        last = (START, START, START, *drawn)[-3:]
        symbol = str(sampler.draw((*last, *given)))
        if symbol != STOP:
            drawn.append(symbol)
        elif drawn:
            return tuple(drawn)


def yield_events(
    rules: Mapping[Rule, int] | Iterable[Rule], *, given_parent: bool
) -> dict[Event, int]:
    """The 4-grams of rule right-hand sides, STOP included, START before (5.1)."""
    counted = rules if isinstance(rules, Mapping) else Counter(rules)
    events: Counter[Event] = Counter()
    for (parent, outcome), count in counted.items():
        padded = (START, START, START, *_checked_yield(outcome), STOP)
        given = (parent,) if given_parent else ()
        for place in range(3, len(padded)):
            events[(*padded[place - 3 : place], *given), padded[place]] += count
    return dict(events)


def all_yields(symbols: Iterable[str], longest: int) -> Iterator[Yield]:
    """Every yield of length 1..longest (I6)."""
    ordered = sorted(symbols)
    for length in range(1, longest + 1):
        yield from product(ordered, repeat=length)


# --- 10 Sampling ----------------------------------------------------------------------------------


class Sampler:
    """Draws from a model exactly as section 10 says.

    Args:
        model: the model.
        uniform: the source of numbers u with 0 <= u < 1.
        number: `Fraction` for exact draws, `float` for fast ones.
    """

    def __init__(
        self,
        model: BackoffModel,
        uniform: Uniform,
        number: type[float] | type[Fraction] = Fraction,
    ) -> None:
        self._chain = model.chain
        self._uniform = uniform
        self._base = model.base.sampler(uniform, number)
        self._rows = [
            {key: _cumulative(row, number) for key, row in rows.items()} for rows in model.rows
        ]

    def draw(self, context: Context) -> Outcome:
        """One outcome: at each level either one of its own, or on to the next level.

        A level takes one number to decide, and one more to choose among its own outcomes; a level
        without counts takes none.
        """
        key = context
        for level, rows in enumerate(self._rows):
            self._chain.check(level, key)
            if key in rows:
                own, steps = rows[key]
                if self._uniform() < own:
                    return _choose(steps, self._uniform() * steps[-1][0])
            key = self._chain.below(level, key)
        return self._base(key)


def _cumulative(
    row: Row, number: type[float] | type[Fraction]
) -> tuple[Number, list[tuple[Number, Outcome]]]:
    """1 - gamma and the running sums of the masses, outcomes in the order of their repr."""
    steps: list[tuple[Number, Outcome]] = []
    total = Fraction(0)
    for outcome in sorted(row.mass, key=repr):
        total += row.mass[outcome]
        steps.append((number(total), outcome))
    return number(1 - row.gamma), steps


def _choose(steps: Sequence[tuple[Number, Outcome]], place: Number) -> Outcome:
    return next((outcome for limit, outcome in steps if place < limit), steps[-1][1])


# --- 6 Events of sentences and trees --------------------------------------------------------------


def check_reserved(symbols: Iterable[str], reserved: frozenset[str]) -> None:
    """Refuse a corpus that holds a reserved string (section 6)."""
    for symbol in symbols:
        if symbol in reserved:
            raise BackoffError("E_RESERVED_SYMBOL", f"{symbol!r} in the corpus")


def ngram_events(sentences: Iterable[Sequence[str]], order: int) -> list[Event]:
    """((w-n+1..w-1), w) for every word and the `</s>` of every sentence (sections 1 and 6)."""
    events: list[Event] = []
    for words in sentences:
        check_reserved(words, RESERVED_WORDS)
        padded = (*[BEGIN] * (order - 1), *words, END)
        events += [
            (padded[place - order + 1 : place], padded[place])
            for place in range(order - 1, len(padded))
        ]
    return events


class TreeletEvent(NamedTuple):
    """A line of TL 2.1: kind "N" with context (P,P',r'), "T" with (P,R,r',w-1,w-2)."""

    kind: Literal["N", "T"]
    context: Context
    outcome: Outcome


def treelet_events(tree: Tree) -> list[TreeletEvent]:
    """All events of a tree in the order of the generative story (TL 2)."""
    if _is_preterminal(tree):
        raise BackoffError("E_TREE", "the root is a preterminal")
    events: list[TreeletEvent] = []
    _expand(tree, TOP, TOP, [BEGIN, BEGIN], events)
    return events


def _expand(
    tree: Tree, parent: str, rule: str, words: list[str], events: list[TreeletEvent]
) -> None:
    """The events of a phrasal node P, `parent` and `rule` being its P' and r' (TL 2, step 2)."""
    label, children = _parts(tree)
    outcome = tuple(_parts(child)[0] for child in children)
    events.append(TreeletEvent("N", (label, parent, rule), outcome))
    own_rule = f"{label} -> {' '.join(outcome)}"
    for child, right in zip(children, (*outcome[1:], NONE), strict=True):
        if _is_preterminal(child):
            events.append(_terminal(child, right, own_rule, words))
        else:
            _expand(child, label, own_rule, words, events)


def _terminal(tree: Tree, right: str, rule: str, words: list[str]) -> TreeletEvent:
    """The event of a preterminal; its word joins the words so far (TL 2, step 3)."""
    label, word = tree
    check_reserved([str(label)], RESERVED_LABELS)
    check_reserved([str(word)], RESERVED_WORDS)
    event = TreeletEvent("T", (label, right, rule, words[-1], words[-2]), word)
    words.append(str(word))
    return event


def _is_preterminal(tree: Tree) -> bool:
    return len(tree) == 2 and isinstance(tree[1], str)


def _parts(tree: Tree) -> tuple[str, tuple[Tree, ...]]:
    """The label and the subtrees of a node; of a preterminal no subtrees."""
    label, *rest = tree
    subtrees = tuple(child for child in rest if not isinstance(child, str))
    if not isinstance(label, str) or not rest or (len(rest) > 1 and len(subtrees) < len(rest)):
        raise BackoffError("E_TREE", f"{tree!r} is no node")
    check_reserved([label], RESERVED_LABELS)
    return label, subtrees


def terminal_events(trees: Iterable[Tree]) -> list[Event]:
    """((P,R,r',w-1,w-2), w) for every preterminal (TL 2, 3)."""
    found = (event for tree in trees for event in treelet_events(tree))
    return [(event.context, event.outcome) for event in found if event.kind == "T"]


def nonterminal_events(trees: Iterable[Tree]) -> list[Event]:
    """((P,P',r'), yield) for every phrasal node, ROOT included (TL 2, 3)."""
    found = (event for tree in trees for event in treelet_events(tree))
    return [(event.context, event.outcome) for event in found if event.kind == "N"]


def tree_rules(trees: Iterable[Tree]) -> list[Rule]:
    """(P, yield) of every phrasal node: what the yield base is trained on (section 5)."""
    return [
        (str(context[0]), _checked_yield(outcome)) for context, outcome in nonterminal_events(trees)
    ]
