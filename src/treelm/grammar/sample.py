"""Trees sampled from a grammar, top down."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from treelm.errors import UnsupportedTask, option
from treelm.grammar.grammar import FloatArray, Grammar, IntArray
from treelm.grammar.lexicon import Lexicon, LongArray, block_starts
from treelm.seeds import random_uniform
from treelm.transforms.unary_chains import TAG_MARK, undo_disambiguate_tags
from treelm.trees.tree import Tree


class _Expansions(NamedTuple):
    """The expansions of a subcategory of a phrase."""

    reach: FloatArray
    """Cumulative weights of all rules with all subcategories of the children."""
    starts: LongArray
    """Where the weights of each rule begin."""
    rules: list[tuple[int, ...]]
    """Children of each rule."""


class _TagWords(NamedTuple):
    """The words of a subcategory of a tag."""

    own: float
    """Weight of the words that were seen with the tag."""
    reach: FloatArray
    """Their cumulative weights."""
    ids: LongArray
    """Their ids."""
    rest: float
    """Weight of all other words."""


class _Place:
    """A stream of random numbers that depends on (seed, stream) alone."""

    __slots__ = ("_counter", "_seed", "_stream")

    def __init__(self, seed: int, stream: int) -> None:
        self._seed, self._stream, self._counter = seed, stream, 0

    def uniform(self) -> float:
        self._counter += 1
        return random_uniform(self._seed, self._stream, self._counter - 1)

    def choose(self, reach: FloatArray) -> int:
        """Return a place in an array of cumulative weights."""
        point = self.uniform() * float(reach[-1])
        return min(int(np.searchsorted(reach, point, "right")), len(reach) - 1)


class GrammarSampler:
    """Samples trees from a grammar, plain or latent, whose words sum to one.

    Args:
        grammar: The rules.
        lexicon: The words.

    Raises:
        UnsupportedTask: ``E_NOT_NORMALIZED`` for a lexicon that is not closed.
    """

    def __init__(self, grammar: Grammar, lexicon: Lexicon) -> None:
        if not lexicon.normalized:
            raise UnsupportedTask(
                "the words of this grammar do not sum to one, so that no sentence can be sampled "
                f"from it. Train it with {option('lexicon', 'closed')}.",
                code="E_NOT_NORMALIZED",
            )
        self.grammar, self.lexicon = grammar, lexicon
        self._marked = any(TAG_MARK in name for name in grammar.symbols[grammar.phrasal :])
        self._expansions: dict[tuple[int, int], _Expansions] = {}
        self._words: dict[tuple[int, int], _TagWords] = {}

    def draw(self, seed: int, stream: int, max_words: int) -> tuple[Tree | None, tuple[str, ...]]:
        """Return a tree without intermediate nodes, and its words.

        Args:
            seed: With `stream`, determines the result.
            stream: Number of the tree.
            max_words: A tree of more words is abandoned; None is returned instead of it, and the
                words sampled so far.
        """
        place = _Place(seed, stream)
        phrasal = self.grammar.phrasal
        todo = [(0, 0)]
        nodes: list[tuple[int, int]] = []  # symbol and number of children, parents first
        ids: list[int] = []
        while todo:
            symbol, sub = todo.pop()
            if symbol >= phrasal:
                nodes.append((symbol, 0))
                ids.append(self._word(symbol, sub, place))
                continue
            children = self._children(symbol, sub, place)
            nodes.append((symbol, len(children)))
            todo.extend(reversed(children))
            if len(ids) + len(todo) > max_words:  # every symbol has at least one word
                return None, self._decode(ids)
        words = self._decode(ids)
        return self._tree(nodes, words), words

    def _decode(self, ids: list[int]) -> tuple[str, ...]:
        return tuple(self.lexicon.vocabulary.decode(ids))

    # -- rules ------------------------------------------------------------------------------

    def _children(self, symbol: int, sub: int, place: _Place) -> list[tuple[int, int]]:
        found = self._expansions.get((symbol, sub))
        if found is None:
            found = self._expansions[symbol, sub] = self._expand(symbol, sub)
        chosen = place.choose(found.reach)
        rule = int(np.searchsorted(found.starts, chosen, "right")) - 1
        children = found.rules[rule]
        shape = tuple(int(self.grammar.substates[child]) for child in children)
        subs = np.unravel_index(chosen - int(found.starts[rule]), shape)
        return list(zip(children, map(int, subs), strict=True))

    def _expand(self, symbol: int, sub: int) -> _Expansions:
        grammar = self.grammar
        weights: list[FloatArray] = []
        rules: list[tuple[int, ...]] = []
        for table, block in (
            (grammar.binary_rules, grammar.binary_block),
            (grammar.unary_rules, grammar.unary_block),
        ):
            for rule in _rules_of(table, symbol):
                weights.append(block(rule)[sub].ravel())
                rules.append(tuple(table[rule, 1:].tolist()))
        starts = block_starts(np.array([len(part) for part in weights], dtype=np.int64))
        return _Expansions(np.cumsum(np.concatenate(weights)), starts[:-1], rules)

    # -- words ------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> tuple[LongArray, LongArray, LongArray]:
        """Entries of the lexicon ordered by tag, where those of each tag begin, their word ids."""
        lexicon = self.lexicon
        owners = np.repeat(np.arange(len(lexicon.vocabulary)), np.diff(lexicon.entry_starts))
        order = np.argsort(lexicon.entry_symbols, kind="stable")
        tags = np.arange(lexicon.phrasal, len(lexicon.substates) + 1)
        return order, np.searchsorted(lexicon.entry_symbols[order], tags), owners[order]

    @cached_property
    def _open_reach(self) -> FloatArray:
        return np.cumsum(self.lexicon.openness)

    def _word(self, tag: int, sub: int, place: _Place) -> int:
        found = self._words.get((tag, sub))
        if found is None:
            found = self._words[tag, sub] = self._tag_words(tag, sub)
        if place.uniform() * (found.own + found.rest) < found.own:
            return int(found.ids[place.choose(found.reach)])
        while True:  # words seen with the tag were handled above
            word = place.choose(self._open_reach)
            at = int(np.searchsorted(found.ids, word))
            if at == len(found.ids) or found.ids[at] != word:
                return word

    def _tag_words(self, tag: int, sub: int) -> _TagWords:
        lexicon = self.lexicon
        order, starts, owners = self._entries
        index = tag - lexicon.phrasal
        chosen = slice(int(starts[index]), int(starts[index + 1]))
        ids = owners[chosen]
        scores = lexicon.entry_scores[lexicon.score_starts[order[chosen]] + sub]
        open_score = float(lexicon.open_scores[lexicon.tag_starts[index] + sub])
        rest = float(lexicon.openness.sum() - lexicon.openness[ids].sum()) * open_score
        seen = np.zeros(len(lexicon.vocabulary), dtype=np.bool_)
        seen[ids] = True
        if not (lexicon.openness[~seen] > 0).any():
            rest = 0.0  # the rest of the difference is rounding
        return _TagWords(float(scores.sum()), np.cumsum(scores), ids, max(rest, 0.0))

    # -- trees ------------------------------------------------------------------------------

    def _tree(self, nodes: list[tuple[int, int]], words: tuple[str, ...]) -> Tree:
        names = self.grammar.symbols
        stack: list[list[Tree]] = []  # what each node passes to the one above, leftmost last
        word = len(words)
        for place in range(len(nodes) - 1, -1, -1):
            symbol, count = nodes[place]
            if not count:
                word -= 1
                stack.append([Tree(names[symbol], words[word])])
                continue
            below = [tree for part in reversed(stack[len(stack) - count :]) for tree in part]
            del stack[len(stack) - count :]
            inside = place > 0 and names[symbol].startswith("@")
            stack.append(below if inside else [Tree(names[symbol], below)])
        (tree,) = stack[0]
        return undo_disambiguate_tags(tree) if self._marked else tree


def _rules_of(table: IntArray, symbol: int) -> range:
    """Return the rules of a parent; rules are ordered by it."""
    first, last = np.searchsorted(table[:, 0], [symbol, symbol + 1]).tolist()
    return range(first, last)
