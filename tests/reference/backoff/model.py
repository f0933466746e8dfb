"""Equations (1.1), (2.4) and (2.6): the model, and the bases below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

from tests.reference.backoff.chains import Chain
from tests.reference.backoff.counts import event_counts
from tests.reference.backoff.symbols import (
    SENTINELS,
    UNKNOWN,
    USYM,
    BackoffError,
    Context,
    Draw,
    Event,
    Events,
    Outcome,
    Table,
    Triple,
    Uniform,
)


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


def check_outcomes(events: Events, base: Base) -> dict[Event, int]:
    """The event counts, all of whose outcomes must be known to the base: V is closed (2.6)."""
    counted = event_counts(events)
    for _, outcome in counted:
        if base.resolve(outcome) != outcome:
            raise BackoffError("E_OOV", f"{outcome!r} in training is unknown to the base")
    return counted


def discounted_rows(table: Table, taken: Callable[[int], Fraction]) -> dict[Context, Row]:
    """The rows of (2.4) and (3.3), `taken` being D as a function of the count."""
    return {key: _discounted_row(row, taken) for key, row in table.items()}


def _discounted_row(row: Mapping[Outcome, int], taken: Callable[[int], Fraction]) -> Row:
    total = sum(row.values())
    mass = {x: max(n - taken(n), Fraction(0)) / total for x, n in row.items()}
    return Row(mass, sum((taken(n) for n in row.values()), Fraction(0)) / total)
