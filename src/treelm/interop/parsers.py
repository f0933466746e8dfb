"""Parsers of other packages as treelm parsers, so that tree models can use them.

Nothing is imported here: the caller makes the objects and passes them to these functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from treelm.corpus.brackets import DEFAULT_OPTIONS, parse_tree
from treelm.corpus.words import Words, words_of
from treelm.errors import CorpusFormatError
from treelm.grammar.scored_tree import ScoredTree
from treelm.interop.nltk_trees import from_nltk
from treelm.interop.stanza_trees import from_stanza
from treelm.models.interface.parser import SentenceParser
from treelm.transforms.clean import clean
from treelm.trees.tree import Tree

_ROOTS = {"", "ROOT", "TOP", "S1", "VROOT"}

#: The trees of a sentence, best first, with the natural logarithms of their scores.
Found = Iterable[tuple[Tree, float]]


def prepared(tree: Tree) -> Tree:
    """Return a tree as the bracket reader would give it: cleaned, one ROOT on top.

    Examples:
        >>> print(prepared(Tree.from_string("(TOP (S (NP-SBJ (PRP I)) (VP (VBP sleep))))")))
        (ROOT (S (NP (PRP I)) (VP (VBP sleep))))
    """
    top = tree.children if tree.label in _ROOTS and tree.is_phrasal else (tree,)
    return clean(Tree("ROOT", top))


class ForeignParser(SentenceParser):
    """A treelm parser around a function that finds trees.

    Args:
        find: Takes the words of a sentence and the number of trees wanted, returns trees with
            scores, the best first.
        name: What messages call the parser.
    """

    def __init__(self, find: Callable[[tuple[str, ...], int], Found], name: str) -> None:
        self._find = find
        self._name = name

    def __repr__(self) -> str:
        return f"ForeignParser({self._name!r})"

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` distinct trees of a sentence, the best first; none for no words.

        Raises:
            CorpusFormatError: ``E_WORDS_CHANGED`` if the words of a tree are not those of the
                sentence.
        """
        words = words_of(sentence)
        if not words:
            return []
        found: dict[Tree, ScoredTree] = {}
        for given, score in self._find(words, k):
            tree = prepared(given)
            if tree.words != words:
                raise CorpusFormatError(
                    f'the {self._name} parser gave the sentence "{" ".join(words)[:80]}" a tree of '
                    f'the words "{" ".join(tree.words)[:80]}". Switch off its own tokenization.',
                    code="E_WORDS_CHANGED",
                )
            found.setdefault(tree, ScoredTree(tree, score, math.nan))
            if len(found) == k:
                break
        return list(found.values())


def nltk_parser(parser: Any) -> ForeignParser:
    """Return an nltk parser, such as ``ViterbiParser``, as a treelm parser.

    Args:
        parser: An object whose ``parse(words)`` gives ``nltk.Tree`` objects; scores are taken from
            probabilistic ones.
    """

    def find(words: tuple[str, ...], _: int) -> Found:
        try:
            trees = list(parser.parse(list(words)))
        except ValueError:  # words the grammar does not cover
            trees = []
        for tree in trees:
            score = tree.logprob() * math.log(2.0) if hasattr(tree, "logprob") else math.nan
            yield from_nltk(tree), score

    return ForeignParser(find, "nltk")


def stanza_parser(pipeline: Any) -> ForeignParser:
    """Return a stanza pipeline with the processor ``constituency`` as a treelm parser.

    Args:
        pipeline: ``stanza.Pipeline("en", processors="tokenize,pos,constituency",
            tokenize_pretokenized=True)``; it gives one tree per sentence.
    """

    def find(words: tuple[str, ...], _: int) -> Found:
        document = pipeline([list(words)])
        for sentence in document.sentences:
            yield from_stanza(sentence.constituency), math.nan

    return ForeignParser(find, "stanza")


def benepar_parser(parser: Any) -> ForeignParser:
    """Return ``benepar.Parser(...)`` as a treelm parser; it gives one tree per sentence.

    Args:
        parser: An object whose ``parse(words)`` gives an ``nltk.Tree``.
    """

    def find(words: tuple[str, ...], _: int) -> Found:
        yield from_nltk(parser.parse(list(words))), math.nan

    return ForeignParser(find, "benepar")


def from_benepar(sentence: Any) -> Tree:
    """Return the tree of a sentence that spaCy parsed with benepar.

    Args:
        sentence: A span with ``_.parse_string``.
    """
    return parse_tree(sentence._.parse_string, DEFAULT_OPTIONS)
