"""Latent grammars by brute force: every way to give subcategories to the nodes of a tree."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from treelm.trees.tree import Tree

#: (label, subcategory), or a word.
Part = tuple[str, int] | str
Rule = tuple[Part, ...]
Weights = dict[Rule, float]


def annotations(tree: Tree, substates: dict[str, int]) -> Iterator[list[int]]:
    """Yield a subcategory for every node in preorder, in every possible way."""
    sizes = [range(substates[str(node.label)]) for node in tree.preorder()]
    yield from (list(choice) for choice in product(*sizes))


def rules_of(tree: Tree, choice: list[int]) -> list[Rule]:
    """Return the rules of a tree whose nodes have these subcategories."""
    rules: list[Rule] = []

    def walk(node: Tree, place: int) -> int:
        parts: list[Part] = [(str(node.label), choice[place])]
        after = place + 1
        if node.word is not None:
            parts.append(node.word)
        for child in node.children:
            parts.append((str(child.label), choice[after]))
            after = walk(child, after)
        rules.append(tuple(parts))
        return after

    walk(tree, 0)
    return rules


def probability(tree: Tree, substates: dict[str, int], weights: Weights) -> float:
    """Return the probability of a tree, (4.3)."""
    return math.fsum(
        math.prod(weights[rule] for rule in rules_of(tree, choice))
        for choice in annotations(tree, substates)
    )


def expected_counts(
    trees: list[Tree], substates: dict[str, int], weights: Weights
) -> dict[Rule, float]:
    """Return expected counts of rules, (4.4); impossible trees count nowhere."""
    counts: dict[Rule, float] = defaultdict(float)
    for tree in trees:
        total = probability(tree, substates, weights)
        if total == 0:
            continue
        for choice in annotations(tree, substates):
            rules = rules_of(tree, choice)
            share = math.prod(weights[rule] for rule in rules) / total
            for rule in rules:
                counts[rule] += share
    return counts


def merge_gain(
    trees: list[Tree],
    substates: dict[str, int],
    weights: Weights,
    *,
    label: str,
    shares: tuple[float, float],
) -> float:
    """Return the logarithm of (5.4) for merging the first two subcategories of a label."""
    gain = 0.0
    for tree in trees:
        total = probability(tree, substates, weights)
        for place, node in enumerate(tree.preorder()):
            if str(node.label) != label or total == 0:
                continue
            inside, outside = _inside_outside(tree, place, substates, weights)
            merged = total - sum(inside[x] * outside[x] for x in (0, 1))
            mixed = shares[0] * inside[0] + shares[1] * inside[1]
            merged += mixed * (outside[0] + outside[1])
            gain += math.log(merged / total)
    return gain


def _inside_outside(
    tree: Tree, place: int, substates: dict[str, int], weights: Weights
) -> tuple[list[float], list[float]]:
    """Return both scores of the node at a place, by summing over all annotations."""
    nodes = list(tree.preorder())
    node = nodes[place]
    size = sum(1 for _ in node.preorder())
    kinds = substates[str(node.label)]
    inside, outside = [0.0] * kinds, [0.0] * kinds
    for choice in annotations(node, substates):
        inside[choice[0]] += math.prod(weights[rule] for rule in rules_of(node, choice))
    for choice in annotations(tree, substates):
        if any(choice[place + 1 : place + size]):
            continue  # the subtree's own subcategories do not matter: count one way only
        below = rules_of(node, choice[place : place + size])
        rules = rules_of(tree, choice)
        for rule in below:
            rules.remove(rule)
        outside[choice[place]] += math.prod(weights[rule] for rule in rules)
    return inside, outside
