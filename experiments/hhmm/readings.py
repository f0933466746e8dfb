"""How often a word was seen in each of its readings: with an object, as a participle, and so on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from treelm.trees.tree import Tree

#: From a word upwards: each node with the place, among its children, of the one below.
Path = list[tuple[Tree, int]]


def paths(tree: Tree, wanted: frozenset[str]) -> Iterator[tuple[str, str, Path]]:
    """Yield the wanted words of a tree with their tags and paths to the root."""
    stack: list[tuple[Tree, Path]] = [(tree, [])]
    while stack:
        node, above = stack.pop()
        if node.word is not None and node.word in wanted:
            yield node.word, node.label.base, above[::-1]
        stack += [(child, [*above, (node, place)]) for place, child in enumerate(node.children)]


def _past(tag: str) -> bool:
    return tag == "VBD"


def _sisters(path: Path) -> list[str]:
    """Return the categories that follow the word below the same node."""
    node, place = path[0]
    return [child.label.base for child in node.children[place + 1 :]]


def _joins(path: Path, category: str) -> bool:
    """Return whether a conjunction is between two constituents of a category."""
    node, place = path[0]
    around = node.children[max(0, place - 1) : place + 2]
    return len(around) == 3 and all(
        child.label.base == category for child in (around[0], around[2])
    )


def _below(path: Path, category: str) -> bool:
    """Return whether the phrase that a preposition begins is attached to a category."""
    return len(path) > 1 and path[0][0].label.base == "PP" and path[1][0].label.base == category


def _relative(path: Path, first: str) -> bool:
    """Return whether a relative pronoun introduces a clause that begins with a category."""
    for node, place in path[:2]:
        if node.label.base == "SBAR" and place + 1 < len(node.children):
            clause = node.children[place + 1]
            return clause.is_phrasal and clause.children[0].label.base == first
    return False


READINGS: Mapping[str, Callable[[str, Path], bool]] = {
    "past tense": lambda tag, _: _past(tag),
    "participle": lambda tag, _: tag == "VBN",
    "with an object": lambda tag, path: _past(tag) and "NP" in _sisters(path),
    "without an object": lambda tag, path: (
        _past(tag) and not {"NP", "S", "SBAR"} & set(_sisters(path))
    ),
    "with a clause": lambda tag, path: _past(tag) and bool({"S", "SBAR"} & set(_sisters(path))),
    "between noun phrases": lambda _, path: _joins(path, "NP"),
    "between clauses": lambda _, path: _joins(path, "S"),
    "below a verb phrase": lambda _, path: _below(path, "VP"),
    "below a noun phrase": lambda _, path: _below(path, "NP"),
    "object relative": lambda tag, path: tag == "WDT" and _relative(path, "NP"),
    "subject relative": lambda tag, path: tag == "WDT" and _relative(path, "VP"),
}


def count_readings(trees: Iterable[Tree], words: Iterable[str]) -> Counter[tuple[str, str]]:
    """Return how often each word was seen in each reading."""
    wanted = frozenset(words)
    found: Counter[tuple[str, str]] = Counter()
    for tree in trees:
        for word, tag, path in paths(tree, wanted):
            if path:
                found.update((word, name) for name, is_it in READINGS.items() if is_it(tag, path))
    return found
