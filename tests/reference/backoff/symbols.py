"""Symbols, types and the error that all of the back-off reference shares."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Literal, TypeAlias

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


def check_reserved(symbols: Iterable[str], reserved: frozenset[str]) -> None:
    """Refuse a corpus that holds a reserved string (section 6)."""
    for symbol in symbols:
        if symbol in reserved:
            raise BackoffError("E_RESERVED_SYMBOL", f"{symbol!r} in the corpus")
