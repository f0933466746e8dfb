"""Parsers that decide together: all propose trees, all score them, and the most agreed on wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from treelm.corpus.words import Words, sentences_of
from treelm.grammar.grammar import FloatArray
from treelm.grammar.k_best import KBest
from treelm.grammar.k_best_arrays import k_best_of_trees
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.abilities import ask_for
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.packed_tree_model import pack_rooted
from treelm.models.interface.parser import BatchParser, TreeLists
from treelm.models.interface.reranked import RERANKED, RerankedParser, values_of
from treelm.models.interface.tree_model import RanksTrees, TreeScorer
from treelm.trees.constituents import Constituent, constituents
from treelm.trees.tree import Tree

#: Trees of a sentence that each parser proposes, and the weight of each model.
PROPOSED, CONSENSUS_WEIGHT = RERANKED, 1.0
#: How far the mean log probability of a tree is trusted: models that share data agree too much.
_SHARPNESS = 0.75


class ConsensusParser(RerankedParser):
    """Several parsers as one: the tree is chosen that has most in common with all good trees.

    Every model that parses proposes its best trees. All models score all of them: a tree has the
    weighted mean of its natural log probabilities, to which rankers add their numbers, and what
    these add up to over the trees of a sentence makes them shares. The score of a tree is its
    expected F1 against a tree drawn by these shares (minimum Bayes risk). Trees that some model
    cannot derive come last.

    Args:
        parser: A model that gives several trees of a sentence, and trees probabilities.
        others: Any models that give trees probabilities or rank them; those with probabilities that
            parse propose trees too.
        weight: Of the others, where the parser has 1; of each, or one for all of them.
        k: Trees of a sentence that each proposes, unless more are asked for.

    Raises:
        UsageError: for an impossible weight or number of weights, or too many trees.
        UnsupportedTask: if a model does not give trees probabilities.
    """

    def __init__(
        self,
        parser: LanguageModel,
        others: LanguageModel | Sequence[LanguageModel],
        weight: float | Sequence[float] = CONSENSUS_WEIGHT,
        k: int = PROPOSED,
    ) -> None:
        super().__init__(parser, others, weight, k)
        own = ask_for(parser, TreeScorer, "give trees probabilities")
        self.rerankers = (own, *self.rerankers)
        self.weights = (1.0, *self.weights)

    @property
    def meaning_of_scores(self) -> str:
        """What the score of a tree is, in words."""
        return f"its expected F1 in the opinion of {len(self.rerankers)} models"

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> TreeLists:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words."""
        given = [tuple(words) for words in sentences_of(sentences)]
        lists = [
            _proposals(each, given, max(k, self.k), options, threads)
            for each in self.rerankers
            if isinstance(each, BatchParser)
            and not isinstance(each, RanksTrees)
            and each.can(Task.PARSE)
        ]
        made: list[KBest | None] = []
        for words, own, *others in zip(given, *lists, strict=True):
            if own is None or own.is_fallback:
                made.append(own and own.first(k))
                continue
            trees = dict.fromkeys(tree for found in (own, *others) for tree in _trees(found))
            made.append(self._chosen(words, own, list(trees), k, threads))
        return made

    def _chosen(
        self, words: tuple[str, ...], own: KBest, trees: list[Tree], k: int, threads: int
    ) -> KBest:
        """Return the best of the trees that were proposed."""
        log_probs, ranks, total = np.zeros(len(trees)), np.zeros(len(trees)), 0.0
        packed = [pack_rooted(trees)]
        for weight, model in zip(self.weights, self.rerankers, strict=True):
            values = weight * values_of(model, packed, threads)
            if isinstance(model, RanksTrees):
                ranks += values
            else:
                log_probs += values
                total += weight
        log_probs = log_probs / total + ranks
        scores = expected_f1(trees, _SHARPNESS * log_probs)
        scores[np.isneginf(log_probs)] -= 1.0
        # Trees that differ in tags alone have the same constituents.
        order = np.lexsort((-log_probs, -scores))[:k].tolist()
        best = [
            ScoredTree(trees[place], float(scores[place]), own.log_prob, own.status)
            for place in order
        ]
        return replace(k_best_of_trees(words, best), tree_log_probs=own.tree_log_probs)


def expected_f1(trees: Sequence[Tree], log_weights: FloatArray) -> FloatArray:
    """Return the F1 of each tree against a tree that is drawn among them.

    Words without a letter or digit do not count, since punctuation is attached in many ways.

    Args:
        trees: Trees of one sentence.
        log_weights: Natural logarithms of how probable each is, up to a constant.

    Returns:
        Twice the expected number of common constituents, over the numbers of both.

    Examples:
        >>> texts = "(S (A (X a) (X b)) (X c))", "(S (X a) (B (X b) (X c)))"
        >>> trees = [Tree.from_string(text) for text in texts]
        >>> expected_f1(trees, np.log([0.75, 0.25])).round(6).tolist()
        [0.875, 0.625]
    """
    if np.isneginf(log_weights).all():
        log_weights = np.zeros(len(trees))
    shares = np.exp(log_weights - log_weights.max())
    shares /= shares.sum()
    expected: dict[tuple[Constituent, int], float] = {}
    found = [_numbered(tree) for tree in trees]
    for own, share in zip(found, shares.tolist(), strict=True):
        for each in own:
            expected[each] = expected.get(each, 0.0) + share
    total = sum(expected.values())
    common = np.array([sum(expected[each] for each in own) for own in found])
    return np.asarray(2 * common / (np.array([len(own) for own in found]) + total))


def _numbered(tree: Tree) -> list[tuple[Constituent, int]]:
    """Return the constituents of a tree; where one occurs twice, the second is another."""
    return [(each, number) for each, count in constituents(tree).items() for number in range(count)]


def _proposals(
    parser: LanguageModel,
    sentences: Sequence[Words],
    k: int,
    options: ParserOptions | None,
    threads: int,
) -> list[KBest | None]:
    """Return the lists of a parser as arrays."""
    assert isinstance(parser, BatchParser)
    if options is not None:
        options = replace(options, decoding=parser.parser_options.decoding)
    lists = parser.k_best_many(sentences, k, options=options, threads=threads)
    made: list[KBest | None] = []
    for words, found in zip(sentences, lists, strict=True):
        if isinstance(found, KBest):
            made.append(found)
        else:
            made.append(k_best_of_trees(tuple(words), found) if found else None)
    return made


def _trees(found: KBest | None) -> list[Tree]:
    return [] if not found or found.is_fallback else list(found.packed)
