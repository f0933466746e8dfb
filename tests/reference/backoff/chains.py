"""Section 1: back-off chains, the projections of contexts, and pads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.reference.backoff.symbols import BEGIN, START, BackoffError, Context


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
