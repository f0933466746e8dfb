"""How far raters agree beyond chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

#: The ratings of one thing, in any order; missing ones are left out.
Unit = Sequence[Hashable]


def krippendorff_alpha(units: Sequence[Unit]) -> float | None:
    """Return Krippendorff's alpha for nominal ratings, some of which may be missing.

    Args:
        units: The ratings of each thing that was rated; things rated once do not count.

    Returns:
        1 for perfect agreement, 0 for chance; None where it is not defined, because nothing was
        rated twice or all ratings are the same.

    Examples:
        >>> krippendorff_alpha(["AA", "BB", "AB", "A"])
        0.4444444444444444
    """
    paired = [Counter(unit) for unit in units if len(unit) > 1]
    totals: Counter[Hashable] = sum(paired, Counter())
    number = totals.total()
    expected = number**2 - sum(count**2 for count in totals.values())
    if not expected:
        return None
    observed = sum(
        (unit.total() ** 2 - sum(count**2 for count in unit.values())) / (unit.total() - 1)
        for unit in paired
    )
    return 1 - (number - 1) * observed / expected


def fleiss_kappa(units: Sequence[Unit]) -> float | None:
    """Return Fleiss' kappa, for things that were all rated equally often.

    Returns:
        1 for perfect agreement, 0 for chance; None where it is not defined: different numbers of
        ratings, fewer than two, or all ratings the same.

    Examples:
        >>> fleiss_kappa(["AA", "BB", "AB", "AB"])
        0.0
    """
    sizes = {len(unit) for unit in units}
    if len(sizes) != 1 or min(sizes) < 2:
        return None
    raters = sizes.pop()
    counts = [Counter(unit) for unit in units]
    totals: Counter[Hashable] = sum(counts, Counter())
    number = len(units) * raters
    chance = sum(count**2 for count in totals.values()) / number**2
    if len(totals) == 1:
        return None
    agreed = sum(
        sum(count * (count - 1) for count in unit.values()) / (raters * (raters - 1))
        for unit in counts
    ) / len(units)
    return (agreed - chance) / (1 - chance)


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Return Cohen's kappa of two raters.

    Args:
        pairs: What the two said about each thing that both rated.

    Returns:
        1 for perfect agreement, 0 for chance; None where it is not defined: nothing was rated by
        both, or each of them always said the same.

    Examples:
        >>> cohen_kappa([("A", "A"), ("A", "B"), ("B", "B"), ("B", "B")])
        0.5
    """
    if not pairs:
        return None
    number = len(pairs)
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(first[each] * second[each] for each in first) / number**2
    if chance == 1:
        return None
    agreed = sum(a == b for a, b in pairs) / number
    return (agreed - chance) / (1 - chance)
