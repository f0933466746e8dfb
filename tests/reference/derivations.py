"""Every derivation of a sentence, one by one: what charts must add up to.

A derivation is (symbol, subcategory, first, last, children); children are derivations, or nothing
above a word. Only for small grammars without unary cycles.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon

Derivation = tuple[int, int, int, int, tuple[Any, ...]]
Weighted = tuple[float, Derivation]


def derivations(grammar: Grammar, lexicon: Lexicon, ids: Sequence[int]) -> list[Weighted]:
    """Return all derivations of the words from ROOT, with their probabilities."""
    unary: dict[int, list[tuple[int, Any]]] = defaultdict(list)
    for rule, (parent, child) in enumerate(grammar.unary_rules.tolist()):
        unary[parent].append((child, grammar.unary_block(rule)))
    binary: dict[int, list[tuple[int, int, Any]]] = defaultdict(list)
    for rule, (parent, left, right) in enumerate(grammar.binary_rules.tolist()):
        binary[parent].append((left, right, grammar.binary_block(rule)))
    tags = [dict(lexicon.scores(word)) for word in ids]
    memory: dict[tuple[int, int, int, int], list[Weighted]] = {}

    def of(symbol: int, x: int, first: int, last: int) -> list[Weighted]:
        key = (symbol, x, first, last)
        if key not in memory:
            memory[key] = list(expand(symbol, x, first, last))
        return memory[key]

    def expand(symbol: int, x: int, first: int, last: int) -> Iterator[Weighted]:
        if symbol >= grammar.phrasal:
            if last - first == 1 and symbol in tags[first] and tags[first][symbol][x] > 0:
                yield float(tags[first][symbol][x]), (symbol, x, first, last, ())
            return
        for child, block in unary[symbol]:
            for y in range(block.shape[1]):
                for weight, below in of(child, y, first, last) if block[x, y] > 0 else ():
                    yield block[x, y] * weight, (symbol, x, first, last, (below,))
        for left, right, block in binary[symbol]:
            for split in range(first + 1, last):
                for y in range(block.shape[1]):
                    for z in range(block.shape[2]):
                        rule = float(block[x, y, z])
                        if not rule > 0:
                            continue
                        for one, left_tree in of(left, y, first, split):
                            for two, right_tree in of(right, z, split, last):
                                below = (left_tree, right_tree)
                                yield rule * one * two, (symbol, x, first, last, below)

    return of(0, 0, 0, len(ids))


def nodes(derivation: Derivation) -> Iterator[Derivation]:
    """Yield all nodes of a derivation."""
    yield derivation
    for child in derivation[4]:
        yield from nodes(child)


def expected_items(found: Sequence[Weighted]) -> dict[tuple[int, int, int, int], float]:
    """Return the expected number of (first, last, symbol, subcategory), given the words."""
    total = math.fsum(weight for weight, _ in found)
    expected: dict[tuple[int, int, int, int], float] = defaultdict(float)
    for weight, derivation in found:
        for symbol, x, first, last, _ in nodes(derivation):
            expected[first, last, symbol, x] += weight / total
    return expected


def without_subcategories(derivation: Derivation) -> tuple[Any, ...]:
    """Return the tree of a derivation: (symbol, first, last, children)."""
    symbol, _, first, last, children = derivation
    return symbol, first, last, tuple(without_subcategories(child) for child in children)


def rules_of(tree: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the rules of a tree with their places: label, span, and the children's."""
    symbol, first, last, children = tree
    yield symbol, first, last, tuple(child[:3] for child in children)
    for child in children:
        yield from rules_of(child)


def values_by_rules(found: Sequence[Weighted], objective: str) -> dict[tuple[Any, ...], float]:
    """Return the value of an objective for every tree."""
    total = math.fsum(weight for weight, _ in found)
    expected: dict[tuple[Any, ...], float] = defaultdict(float)
    parents: dict[tuple[Any, ...], float] = defaultdict(float)
    trees = set()
    for weight, derivation in found:
        tree = without_subcategories(derivation)
        trees.add(tree)
        for rule in rules_of(tree):
            expected[rule] += weight / total
            parents[rule[:3]] += weight / total

    def product(tree: tuple[Any, ...]) -> float:
        return math.fsum(math.log(min(expected[rule], 1.0)) for rule in rules_of(tree))

    def added(tree: tuple[Any, ...]) -> float:
        return math.fsum(expected[rule] for rule in rules_of(tree))

    def shares(tree: tuple[Any, ...]) -> float:
        return math.fsum(
            math.log(min(expected[rule] / parents[rule[:3]], 1.0)) for rule in rules_of(tree)
        )

    value: Callable[[tuple[Any, ...]], float] = {
        "max_rule_product": product,
        "max_rule_sum": added,
        "variational": shares,
    }[objective]
    return {tree: value(tree) for tree in trees}


def values_by_derivation(found: Sequence[Weighted]) -> dict[tuple[Any, ...], float]:
    """Return the log probability of the best derivation of every tree."""
    values: dict[tuple[Any, ...], float] = {}
    for weight, derivation in found:
        tree = without_subcategories(derivation)
        values[tree] = max(values.get(tree, -math.inf), math.log(weight))
    return values


def best_by_rules(found: Sequence[Weighted], objective: str) -> tuple[float, set[tuple[Any, ...]]]:
    """Return the best value of an objective over all trees, and the trees that reach it."""
    values = values_by_rules(found, objective)
    best = max(values.values())
    return best, {tree for tree, held in values.items() if held > best - 1e-4 * (1 + abs(best))}
