"""Trees of many derivations that share their beginnings: each beginning is built only once.

What a completed constituent gives to the node above it is kept as it stands in a treebank, with
binarization and unary chains undone, so that no tree is walked through again when it has grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from treelm.models.hhmm.viterbi import ROOT, WITHIN, restore
from treelm.models.interface.partial_parses import OPEN
from treelm.transforms.transform import Pipeline
from treelm.trees.label import Label
from treelm.trees.tree import Tree

#: What takes the place of a node: itself, or the children of an intermediate one.
Parts = tuple[Tree, ...]


class _Open(NamedTuple):
    """An element of the stack: what it awaits, and the nodes of its right spine from the top."""

    awaited: int
    spine: tuple[tuple[int, Parts], ...]


class _Beginning(NamedTuple):
    """The elements that are open after some moves, and what is complete below them."""

    stack: tuple[_Open, ...]
    done: Parts


class SharedHistories:
    """Builds the trees of derivations of one sentence.

    Args:
        words: The sentence.
        symbols: Names of the symbols.
        pipeline: What was done to the training trees; it is undone.
    """

    def __init__(self, words: Sequence[str], symbols: Sequence[str], pipeline: Pipeline) -> None:
        self._words, self._symbols = words, symbols
        self._beginnings: dict[tuple[int, int], _Beginning] = {}
        self._phrase = cache(lambda symbol: _labels(Tree(symbols[symbol], _TWO), pipeline))
        self._tag = cache(lambda symbol: _labels(Tree(symbols[symbol], "x"), pipeline))

    def tree(
        self, moves: Sequence[Sequence[int]], ids: Sequence[int], first: int, *, whole: bool
    ) -> Tree:
        """Return the tree of a derivation, below ROOT; what is awaited stays open.

        An awaited category dominates what comes after it in the stack, perhaps with nodes between.

        Args:
            moves: For each word: kind, parent, what is awaited after it, and the tag of the word.
            ids: What the derivation is called after each word.
            first: Its first word.
            whole: Whether the sentence ends here, so that nothing is open.
        """
        stack, parts = self._after(moves, ids, first)
        if whole:
            return Tree(ROOT, parts)
        for element in reversed(stack):
            parts = self._complete(element, self._node(element.awaited, (Tree(OPEN, parts),)))
        return Tree(ROOT, [Tree(OPEN, parts)])

    def _after(self, moves: Sequence[Sequence[int]], ids: Sequence[int], first: int) -> _Beginning:
        known = len(ids)
        while known and (first + known - 1, ids[known - 1]) not in self._beginnings:
            known -= 1
        found = self._beginnings[first + known - 1, ids[known - 1]] if known else None
        for place in range(known, len(ids)):
            word, move = self._words[first + place], moves[place]
            leaf = self._leaf(move[3], word)
            found = _Beginning((), leaf) if found is None else self._moved(found, move, leaf)
            self._beginnings[first + place, ids[place]] = found
        if found is None:
            raise ValueError("a derivation has no words")
        return found

    def _moved(self, before: _Beginning, move: Sequence[int], leaf: Parts) -> _Beginning:
        kind, parent, awaited, tag = move
        stack = before.stack
        rest, spine = (stack, ()) if kind == WITHIN else (stack[:-1], stack[-1].spine)
        top = _Open(awaited, (*spine, (parent, before.done)))
        # A word below what is awaited begins a new element; one that is awaited ends its own.
        if awaited == tag:
            return _Beginning(rest, self._complete(top, leaf))
        return _Beginning((*rest, top), leaf)

    def _complete(self, element: _Open, last: Parts) -> Parts:
        """Return the tree of an element, given what comes at the end of its spine."""
        for symbol, left in reversed(element.spine):
            last = self._node(symbol, left + last)
        return last

    def _node(self, symbol: int, children: Parts) -> Parts:
        if self._symbols[symbol].startswith("@"):
            return children
        return (_chain(self._phrase(symbol), children),)

    def _leaf(self, symbol: int, word: str) -> Parts:
        return (_chain(self._tag(symbol), word),)


#: Children of a node whose label is looked at: two, so that the chain above them has an end.
_TWO = (Tree("x", "x"), Tree("x", "x"))


def _labels(tree: Tree, pipeline: Pipeline) -> tuple[Label, ...]:
    """Return the labels of the chain of nodes that a node becomes, from the bottom."""
    node = restore(tree, pipeline)
    found = [node.label]
    while len(node.children) == 1:
        node = node.children[0]
        found.append(node.label)
    return tuple(reversed(found))


def _chain(labels: tuple[Label, ...], content: Parts | str) -> Tree:
    tree = Tree(labels[0], content)
    for label in labels[1:]:
        tree = Tree(label, (tree,), head=0)
    return tree
