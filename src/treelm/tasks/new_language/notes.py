"""What a proposal says about its parts: the evidence, and whether someone should look at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """The evidence for one part of a proposed profile.

    Args:
        key: The part, such as ``punctuation.tags``.
        sure: Whether the evidence leaves no doubt; False where someone should look.
        evidence: Counts, examples and margins, in one sentence or a few.
    """

    key: str
    sure: bool
    evidence: str


def percent(part: float, whole: float) -> str:
    """Return a share as a percentage, without a decimal place from 10 % on."""
    share = 100.0 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 10 or share == 0 else f"{share:.1f} %"


def listed(counts: Counter[str] | Iterable[tuple[str, int]], limit: int = 6) -> str:
    """Return the most frequent things with their counts."""
    pairs = counts.most_common() if isinstance(counts, Counter) else list(counts)
    shown = ", ".join(f"{name} {count}" for name, count in pairs[:limit])
    return shown + (f" and {len(pairs) - limit} more" if len(pairs) > limit else "")
