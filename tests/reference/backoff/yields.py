"""Section 5: right-hand sides of rules, symbol by symbol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Literal, Protocol

from tests.reference.backoff.chains import Chain, yield_chain
from tests.reference.backoff.kneser_ney import kneser_ney
from tests.reference.backoff.model import BackoffModel, Base, UniformBase
from tests.reference.backoff.sampling import Sampler
from tests.reference.backoff.symbols import (
    RESERVED_LABELS,
    START,
    STOP,
    USYM,
    BackoffError,
    Context,
    CountKind,
    Draw,
    Event,
    Events,
    Outcome,
    Rule,
    Uniform,
    Yield,
    check_reserved,
)


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
        labels = checked_yield(outcome)
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
        labels = checked_yield(outcome)
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


def checked_yield(outcome: Outcome) -> Yield:
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
        padded = (START, START, START, *checked_yield(outcome), STOP)
        given = (parent,) if given_parent else ()
        for place in range(3, len(padded)):
            events[(*padded[place - 3 : place], *given), padded[place]] += count
    return dict(events)


def all_yields(symbols: Iterable[str], longest: int) -> Iterator[Yield]:
    """Every yield of length 1..longest (I6)."""
    ordered = sorted(symbols)
    for length in range(1, longest + 1):
        yield from product(ordered, repeat=length)
