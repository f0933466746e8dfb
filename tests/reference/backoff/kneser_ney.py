"""Sections 2 and 3: interpolated, Berkeley and modified Kneser-Ney."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from tests.reference.backoff.chains import Chain
from tests.reference.backoff.counts import count_of_counts, level_counts, token_counts
from tests.reference.backoff.discounts import discount, modified_discount, modified_discounts
from tests.reference.backoff.model import (
    Base,
    CountModel,
    Row,
    UniformBase,
    check_outcomes,
    discounted_rows,
)
from tests.reference.backoff.symbols import (
    FALLBACK,
    BackoffError,
    Context,
    CountKind,
    Events,
    Table,
    Triple,
)


def kneser_ney(
    events: Events,
    chain: Chain,
    base: Base,
    *,
    counts: CountKind = "types",
    fallback_discount: Fraction = FALLBACK,
) -> CountModel:
    """Interpolated Kneser-Ney of section 2, one estimated discount per level (2.7)."""
    tables = level_counts(check_outcomes(events, base), chain, counts)
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
    tables = level_counts(check_outcomes(events, base), chain, counts)
    return _with_discounts(tables, chain, base, discounts)


def _estimated(table: Table, fallback: Fraction = FALLBACK) -> Fraction:
    return discount(count_of_counts(table, 1), count_of_counts(table, 2), fallback)


def _with_discounts(
    tables: Sequence[Table], chain: Chain, base: Base, discounts: Sequence[Fraction]
) -> CountModel:
    if len(discounts) != len(tables) or any(not 0 <= d <= 1 for d in discounts):
        raise BackoffError("E_DISCOUNT", f"{list(discounts)} for {len(tables)} levels")
    exact = [Fraction(d) for d in discounts]
    rows = [discounted_rows(table, _constant(d)) for table, d in zip(tables, exact, strict=True)]
    return CountModel(chain, base, rows, tables, exact)


def _constant(value: Fraction) -> Callable[[int], Fraction]:
    return lambda _count: value


def berkeley(
    events: Events, chain: Chain, base: Base, *, counts: CountKind = "types", prune: bool = False
) -> CountModel:
    """`berkeley=True` of 2.2: the last level undiscounted, without uniform term."""
    if not isinstance(base, UniformBase):
        raise BackoffError("E_CHAIN", "Berkeley mode needs a uniform base")
    counted = check_outcomes(events, base)
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
    tables = level_counts(check_outcomes(events, base), chain, counts)
    if discounts is None:
        discounts = [
            modified_discounts(*(count_of_counts(table, r) for r in (1, 2, 3, 4)), lmplz=lmplz)
            for table in tables
        ]
    _check_triples(discounts, len(tables))
    rows = [
        discounted_rows(table, _by_count(t)) for table, t in zip(tables, discounts, strict=True)
    ]
    return CountModel(chain, base, rows, tables, list(discounts))


def _check_triples(triples: Sequence[Triple], levels: int) -> None:
    legal = all(0 <= d <= r for triple in triples for r, d in enumerate(triple, start=1))
    if len(triples) != levels or not legal:
        raise BackoffError("E_DISCOUNT", f"{list(triples)} for {levels} levels")


def _by_count(triple: Triple) -> Callable[[int], Fraction]:
    return lambda count: modified_discount(triple, count)
