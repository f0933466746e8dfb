"""Symmetrization and phrase extraction by their definitions, over sets and all pairs of spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Link = tuple[int, int]
Words = tuple[str, ...]
Pair = tuple[Words, Words]

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def grow_diag_final_and(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Return the links that two directions have together, grown by those that only one has."""
    found, union = forward & backward, forward | backward
    grown = True
    while grown:
        grown = False
        # New links grow further within one pass, if they come later in the order of places.
        last = (-1, -1)
        while following := sorted(link for link in found if link > last):
            last = following[0]
            for down, right in NEIGHBOURS:
                near = last[0] + down, last[1] + right
                is_free = all(near[0] != s for s, _ in found) or all(near[1] != t for _, t in found)
                if near in union - found and is_free:
                    found.add(near)
                    grown = True
    for direction in (forward, backward):
        for link in sorted(direction - found):
            if all(link[0] != s and link[1] != t for s, t in found):
                found.add(link)
    return found


@dataclass
class Phrases:
    """What was counted: pairs, their alignments, their orientations, and links of words."""

    counts: Counter[Pair] = field(default_factory=Counter)
    alignments: dict[Pair, Counter[tuple[Link, ...]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    before: dict[Pair, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    after: dict[Pair, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    words: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)

    def alignment(self, pair: Pair) -> tuple[Link, ...]:
        """Return a pair's most frequent alignment, of several the first."""
        return min(self.alignments[pair], key=lambda each: (-self.alignments[pair][each], each))

    def scores(self, pair: Pair) -> tuple[float, float, float, float]:
        """Return p(f|e), lex(f|e), p(e|f) and lex(e|f)."""
        source, target = pair
        links = self.alignment(pair)
        of_source = sum(n for (f, _), n in self.counts.items() if f == source)
        of_target = sum(n for (_, e), n in self.counts.items() if e == target)
        lex_source = lex_target = 1.0
        for place, word in enumerate(source):
            others = [target[t] for s, t in links if s == place] or [None]
            lex_source *= sum(self._share((word, e), given=1) for e in others) / len(others)
        for place, word in enumerate(target):
            others = [source[s] for s, t in links if t == place] or [None]
            lex_target *= sum(self._share((f, word), given=0) for f in others) / len(others)
        count = self.counts[pair]
        return count / of_target, lex_source, count / of_source, lex_target

    def _share(self, pair: tuple[str | None, str | None], *, given: int) -> float:
        total = sum(n for each, n in self.words.items() if each[given] == pair[given])
        return self.words[pair] / total if total else 0.0

    def orientations(self, pair: Pair) -> list[float]:
        """Return the smoothed shares of orientations, to the phrase before and after."""
        found = []
        everything = sum(self.counts.values())
        for counted in (self.before, self.after):
            for kind in range(3):
                overall = (sum(each[kind] for each in counted.values()) + 0.5) / (everything + 1.5)
                found.append((counted[pair][kind] + 0.5 * overall) / (self.counts[pair] + 0.5))
        return found


def spans(length: int, longest: int) -> Iterator[range]:
    """Yield all spans of up to so many places."""
    for first in range(length):
        for last in range(first, min(length, first + longest)):
            yield range(first, last + 1)


def extract(pairs: Sequence[tuple[Words, Words, set[Link]]], longest: int) -> Phrases:
    """Count the phrase pairs of all sentence pairs."""
    found = Phrases()
    for source, target, links in pairs:
        for s, t in links:
            found.words[source[s], target[t]] += 1
        for s, word in enumerate(source):
            found.words[word, None] += all(s != each for each, _ in links)
        for t, word in enumerate(target):
            found.words[None, word] += all(t != each for _, each in links)
        linked = links | {(-1, -1), (len(source), len(target))}
        for f in spans(len(source), longest):
            for e in spans(len(target), longest):
                inside = tuple(sorted((s, t) for s, t in links if s in f and t in e))
                if not inside or any((s in f) != (t in e) for s, t in links):
                    continue
                pair = source[f.start : f.stop], target[e.start : e.stop]
                found.counts[pair] += 1
                found.alignments[pair][tuple((s - f.start, t - e.start) for s, t in inside)] += 1
                found.before[pair][
                    _orientation(
                        (f.start - 1, e.start - 1) in linked, (f.stop, e.start - 1) in linked
                    )
                ] += 1
                found.after[pair][
                    _orientation((f.stop, e.stop) in linked, (f.start - 1, e.stop) in linked)
                ] += 1
    return found


def _orientation(monotone: bool, swapped: bool) -> int:
    if monotone == swapped:
        return 2
    return 0 if monotone else 1
