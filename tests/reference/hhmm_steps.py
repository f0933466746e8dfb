"""One step of an HHMM by its definition: every stack, every rule and every tag, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import numpy as np

from treelm.models.hhmm.contexts import NO_CONTEXTS
from treelm.models.hhmm.model import HhmmModel

#: Active and awaited symbols from the outermost element on, and the innermost active symbol.
Stack = tuple[int, ...]
Combine = Callable[[Iterable[float]], float]


class ReferenceHhmm:
    """Reads words with all stacks; nothing is pruned.

    Args:
        model: Its tables are used, and nothing else of it.
        combine: How the ways to one stack come together: `sum`, or `max` for the best tree.
    """

    def __init__(self, model: HhmmModel, combine: Combine = sum) -> None:
        self.tables = model.tables
        self.combine = combine
        self.rules = self.tables.rules
        self.contexts = self.tables.contexts or NO_CONTEXTS
        self.pad = len(model.vocabulary)

    @cached_property
    def progeny(self) -> dict[tuple[int, int], dict[int, float]]:
        """The expected left progeny by level and awaited symbol."""
        made = self.tables.progeny
        found = {}
        for level, row_of in enumerate(made.row_of.tolist()):
            for symbol, row in enumerate(row_of):
                if row >= 0:
                    part = slice(int(made.row_start[row]), int(made.row_start[row + 1]))
                    pairs = zip(made.symbol[part].tolist(), made.value[part].tolist(), strict=True)
                    found[level, symbol] = dict(pairs)
        return found

    def tags_below(self, level: int, awaited: int) -> Iterator[tuple[int, float]]:
        """Yield the tags with which something awaited can begin, and their probabilities."""
        for symbol, value in self.progeny.get((level, awaited), {}).items():
            if symbol >= self.rules.phrasal:
                yield symbol, value

    def moves(self, stack: Stack) -> Iterator[tuple[int, Stack | None, float]]:
        """Yield the next tag, the stack after it (None at the end) and its probability."""
        *above, active = stack
        level = len(above) // 2 + 1
        awaited = above[-1] if above else 0
        row = self.progeny.get((level, awaited), {})
        expected = row.get(active, 0.0)
        if not expected:
            return

        def emit(tail: list[int], parent: int, right: int, value: float, below: int) -> Iterator:
            if right >= self.rules.phrasal:
                yield right, (*tail, parent), value
            else:
                for tag, share in self.tags_below(below, right):
                    yield tag, (*tail, parent, right, tag), value * share

        for number, (parent, left, right) in enumerate(self.rules.rules.tolist()):
            if left != active:
                continue
            if parent == awaited:
                value = self.tables.right[level - 1, number] / expected
                if parent == 0:
                    yield right, None, value
                else:
                    yield from emit(above[:-2], above[-2], right, value, level)
            if parent and level <= self.tables.depth:
                value = row.get(parent, 0.0) * self.tables.left[level, number] / expected
                yield from emit(above, parent, right, value, level + 1)

    def factor(self, tag: int, before: tuple[int, ...]) -> float:
        """Return by how much words before make a tag likelier."""
        table = self.contexts.tags
        if table is None:
            return 1.0
        own = tag - self.rules.phrasal
        log_prob = table.log_probabilities([(own, *before[: table.context_columns])])[0]
        return float((np.exp(log_prob) / self.contexts.tag_shares[own]) ** self.tables.tag_power)

    def word_probability(self, word: int, tag: int, before: tuple[int, ...]) -> float:
        """Return P(word | tag, words before)."""
        words = self.tables.words
        part = slice(int(words.start[word]), int(words.start[word + 1]))
        by_tag = dict(zip(words.tag[part].tolist(), words.value[part].tolist(), strict=True))
        if tag not in by_tag or self.contexts.words is None:
            return by_tag.get(tag, 0.0)
        table = self.contexts.words
        row = (word, tag - self.rules.phrasal, *before[: table.context_columns - 1])
        return float(np.exp(table.log_probabilities([row], base=np.array([by_tag[tag]]))[0]))

    def weighed(
        self, moves: Iterable[tuple[int, Stack | None, float]], before: tuple[int, ...]
    ) -> list[tuple[int, Stack | None, float]]:
        """Return moves with factors, scaled so that they add up to 1 again."""
        found = [(tag, stack, p * self.factor(tag, before)) for tag, stack, p in moves]
        total = sum(p for _, _, p in found)
        return [(tag, stack, p / total) for tag, stack, p in found if p > 0]

    def read(self, words: list[int]) -> list[float]:
        """Return the mass of all stacks after each word, and that of the end."""
        before = (self.pad,) * 4
        first = [(tag, (tag,), value) for tag, value in self.tags_below(1, 0)]
        stacks: dict[Stack, float] = {}
        masses = []
        for place, word in enumerate(words):
            ways: dict[Stack, list[float]] = {}
            sources = [((), 1.0)] if place == 0 else list(stacks.items())
            for stack, weight in sources:
                for tag, after, p in self.weighed(
                    first if place == 0 else self.moves(stack), before
                ):
                    emitted = self.word_probability(word, tag, before) if after else 0.0
                    if after and emitted:
                        ways.setdefault(after, []).append(weight * p * emitted)
            stacks = {stack: self.combine(values) for stack, values in ways.items()}
            masses.append(self.combine(stacks.values()) if stacks else 0.0)
            before = (word, *before[:-1])
        ends = [
            weight * p
            for stack, weight in stacks.items()
            for _, after, p in self.weighed(self.moves(stack), before)
            if after is None
        ]
        masses.append(self.combine(ends) if ends else 0.0)
        return masses
