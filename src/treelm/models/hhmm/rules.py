"""Binary grammars over words: what the HHMM is made from."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.errors import EstimationError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

Key = TypeVar("Key")

#: What the end of a sentence is called among the tags.
END = "</s>"
#: Sums of probabilities may differ from 1 by so much.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class BinaryRules:
    """Rules ``A -> B C`` with their probabilities.

    Args:
        symbols: The top, phrases, tags, and the end of the sentence as the last tag.
        phrasal: How many of them are the top and phrases.
        rules: Rows of parent, left and right child; those of the top are ``TOP -> A </s>``.
        probabilities: One a rule; those of a parent add up to 1.
    """

    symbols: tuple[str, ...]
    phrasal: int
    rules: Ints
    probabilities: Floats

    @property
    def end(self) -> int:
        """The symbol that ends a sentence."""
        return len(self.symbols) - 1

    def check(self) -> None:
        """Refuse what is no grammar.

        Raises:
            EstimationError: ``E_GRAMMAR``, naming the rule or symbol.
        """
        parent, left, right = self.rules.T
        size = len(self.symbols)
        if not (0 < self.phrasal < size) or self.rules.min(initial=0) < 0:
            raise _wrong("symbols and rules do not fit together")
        if self.rules.max(initial=0) >= size or parent.max(initial=0) >= self.phrasal:
            raise _wrong("a rule has a symbol that does not exist, or a tag as its parent")
        ends = right == self.end
        if (ends != (parent == 0)).any() or (left == self.end).any() or (left == 0).any():
            raise _wrong(f"only the top goes on to {END}, and nothing goes on to the top")
        bad = ~(self.probabilities >= 0) | ~np.isfinite(self.probabilities)
        if bad.any():
            raise _wrong(f"{self._shown(int(bad.argmax()))} has no probability")
        sums = np.bincount(parent, self.probabilities, minlength=self.phrasal)
        used = np.bincount(parent, minlength=self.phrasal) > 0
        off = used & (np.abs(sums - 1) > TOLERANCE)
        if off.any():
            worst = int(off.argmax())
            name = visible(self.symbols[worst])
            raise _wrong(f"the probabilities of {name} add up to {sums[worst]:.9g}, not to 1")
        children = np.unique(np.concatenate([left, right]))
        missing = [child for child in children if child < self.phrasal and not used[child]]
        if missing or not used[0]:
            name = self.symbols[missing[0] if missing else 0]
            raise _wrong(f'"{name}" is a phrase without rules')

    def _shown(self, rule: int) -> str:
        parent, left, right = (self.symbols[symbol] for symbol in self.rules[rule])
        return f"{parent} -> {left} {right}"


@dataclass(frozen=True, eq=False)
class WrittenGrammar:
    """A grammar that somebody wrote down: rules, and the words of every tag."""

    rules: BinaryRules
    emissions: dict[tuple[str, str], float]

    @property
    def words(self) -> tuple[str, ...]:
        """All words, in the order of their names."""
        return tuple(sorted({word for _, word in self.emissions}))


_FORBIDDEN = re.compile(r"[\s()/]")


def grammar_from_lines(lines: Iterable[str]) -> WrittenGrammar:
    """Return the grammar written in lines such as ``S -> NP VP 1`` and ``NN -> dog 1/2``.

    The first rules are those of ``TOP``, such as ``TOP -> S </s> 1``. A rule with one symbol on its
    right side gives a word. Blank lines and those that begin with ``#`` are left out.

    Raises:
        EstimationError: ``E_GRAMMAR``, naming what is wrong.

    Examples:
        >>> lines = ["TOP -> S </s> 1", "S -> A A 1", "A -> yes 1/2", "A -> no 1/2"]
        >>> grammar = grammar_from_lines(lines)
        >>> grammar.rules.symbols, grammar.words
        (('TOP', 'S', 'A', '</s>'), ('no', 'yes'))
    """
    binary: dict[tuple[str, str, str], float] = {}
    emissions: dict[tuple[str, str], float] = {}
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = line.split()
        if len(parts) not in (4, 5) or parts[1] != "->":
            raise _wrong(f'"{line.strip()}" is not a rule of one or two symbols and a probability')
        parent, right, last = parts[0], parts[2:-1], parts[-1]
        for label in (parent, *(right if len(right) == 2 else ())):
            if _FORBIDDEN.search(label) and label != END:
                raise _wrong(
                    f'"{label}" contains a bracket or slash; write -LRB-, -RRB- or -SLASH- instead'
                )
        probability = _number(last, line)
        if len(right) == 1:
            _put(emissions, (parent, right[0]), probability, line)
        else:
            _put(binary, (parent, right[0], right[1]), probability, line)
    return _assembled(binary, emissions)


def _put(table: dict[Key, float], key: Key, value: float, line: str) -> None:
    if key in table:
        raise _wrong(f'"{line.strip()}" occurs twice')
    table[key] = value


def _number(text: str, line: str) -> float:
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise _wrong(f'"{line.strip()}" does not end with a probability') from error
    if not 0 <= value <= 1 or math.isnan(value):
        raise _wrong(f'"{line.strip()}" does not end with a probability')
    return value


def _assembled(
    binary: dict[tuple[str, str, str], float], emissions: dict[tuple[str, str], float]
) -> WrittenGrammar:
    top = "TOP"
    phrases = dict.fromkeys(parent for parent, _, _ in binary)
    tags = dict.fromkeys(tag for tag, _ in emissions)
    for both in phrases:
        if both in tags:
            raise _wrong(f'"{both}" has both words and phrases below it; call the tag {both}~T')
    children = {child for rule in binary for child in rule[1:]} - {END}
    for child in sorted(children):
        if child not in phrases and child not in tags:
            raise _wrong(f'"{child}" stands on the right of a rule but has none itself')
    if top not in phrases:
        raise _wrong(f'there is no rule for "{top}", such as {top} -> S {END} 1')
    names = (top, *sorted(set(phrases) - {top}), *sorted(tags), END)
    ids = {name: number for number, name in enumerate(names)}
    rules = BinaryRules(
        names,
        len(phrases),
        np.array([[ids[name] for name in rule] for rule in binary], np.int32),
        np.array(list(binary.values())),
    )
    rules.check()
    for tag in tags:
        total = math.fsum(value for (name, _), value in emissions.items() if name == tag)
        if abs(total - 1) > TOLERANCE:
            raise _wrong(f"the words of {visible(tag)} add up to {total:.9g}, not to 1")
    return WrittenGrammar(rules, emissions)


def _wrong(what: str) -> EstimationError:
    return EstimationError(f"this is not a grammar for the HHMM: {what}.", code="E_GRAMMAR")
