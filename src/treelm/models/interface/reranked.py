"""A parser whose best trees are put in another order by models of trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np

from treelm.corpus.words import Words, words_of
from treelm.errors import UsageError, option
from treelm.grammar.grammar import FloatArray
from treelm.grammar.k_best import KBest, is_fallback
from treelm.grammar.k_best_arrays import reordered
from treelm.grammar.parser_options import SCORES_OF_TREES, ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.abilities import ask_for
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.packed_tree_model import pack_rooted
from treelm.models.interface.parser import TreeLists, check_parser
from treelm.models.interface.scoring_views import ScoringView
from treelm.models.interface.tree_model import RanksTrees, TreeScorer
from treelm.trees.packed import PackedTrees

#: Trees of a sentence among which the reranker chooses, and the weight of its log probability.
RERANKED, RERANKER_WEIGHT = 50, 0.75
#: Weight of the numbers of a ranker, which were learned for trees of a parser.
RANKER_WEIGHT = 1.0

#: What may put trees in order.
Reranker = TreeScorer | RanksTrees


class RerankedParser(ScoringView):
    """A parser that asks other models which of its best trees are best.

    The score of a tree is that of the parser plus, for each reranker, its weight times the natural
    log probability that it gives the tree with its words; with grammars of other seeds this is a
    product of grammars. A ranker adds its own number. Trees that a reranker cannot derive come
    last, in the order of the parser.
    A sentence without a parse, or parsed in pieces, keeps its one tree. Sentences are scored as the
    parser does.

    Args:
        parser: Any model that gives several trees of a sentence.
        reranker: Any model that gives trees probabilities or ranks them, or several.
        weight: Of the reranker; of each, or one for all of them. Default: 0.75 for probabilities, 1
            for rankers.
        k: Trees of a sentence among which they choose, unless more are asked for.

    Raises:
        UsageError: for a weight that is not above 0 and finite, another number of weights than of
            rerankers, a parser that does not give so many trees, or one whose scores are not
            logarithms.
        UnsupportedTask: if a reranker does not give trees probabilities.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY, Task.PARSE})

    def __init__(
        self,
        parser: LanguageModel,
        reranker: LanguageModel | Sequence[LanguageModel],
        weight: float | Sequence[float] | None = None,
        k: int = RERANKED,
    ) -> None:
        super().__init__(parser)
        parser.require(Task.PARSE)
        check_parser(parser, k)
        rerankers = (reranker,) if isinstance(reranker, LanguageModel) else tuple(reranker)
        if parser.parser_options.decoding == "max_rule_sum":
            raise UsageError(
                "the scores of this parser are sums of expected numbers, not logarithms, so a log "
                "probability cannot be added to them. Train it with "
                f"{option('decoding', 'max_rule_product')}."
            )
        self.rerankers = tuple(map(as_reranker, rerankers))
        usual = [
            RANKER_WEIGHT if isinstance(each, RanksTrees) else RERANKER_WEIGHT
            for each in self.rerankers
        ]
        self.weights = _weights(usual if weight is None else weight, len(rerankers))
        self.k = k
        self.most_trees = parser.most_trees

    @property
    def parser_options(self) -> ParserOptions:
        """How the parser works unless told otherwise."""
        return self.model.parser_options

    @property
    def meaning_of_scores(self) -> str:
        """What the score of a tree is, in words."""
        own = SCORES_OF_TREES[self.parser_options.decoding]
        others = "".join(
            f", plus {weight:g} times "
            + ("its rank by" if isinstance(each, RanksTrees) else "its natural log probability in")
            + f" the {each.system} model"
            for weight, each in zip(self.weights, self.rerankers, strict=True)
        )
        return f"{own}{others}"

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` distinct trees of a sentence, the best first; none for no words."""
        return list(self.k_best_many([words_of(sentence)], k)[0] or ())

    def parse_many(
        self,
        sentences: Sequence[Words],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""
        lists = self.k_best_many(sentences, 1, options=options, threads=threads)
        return [found[0] if found else None for found in lists]

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> TreeLists:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words."""
        lists = self.model.k_best_many(sentences, max(k, self.k), options=options, threads=threads)
        # Where there is one tree only, its score still says what those of others say.
        chosen = [place for place, found in enumerate(lists) if found and not is_fallback(found)]
        values = self._weighted([lists[place] or () for place in chosen], threads)
        made: list[KBest | Sequence[ScoredTree] | None] = [
            found if found is None else _first(found, k) for found in lists
        ]
        for place, own in zip(chosen, values, strict=True):
            made[place] = self._reranked(lists[place] or (), own, k)
        return cast("TreeLists", made)

    def _weighted(
        self, lists: Sequence[KBest | Sequence[ScoredTree]], threads: int
    ) -> list[FloatArray]:
        """Return what the rerankers add to the scores of trees, list by list."""
        if not lists:
            return []
        packed = [
            found.packed if isinstance(found, KBest) else pack_rooted([each.tree for each in found])
            for found in lists
        ]
        ends = np.cumsum([len(found) for found in lists])
        total = np.zeros(int(ends[-1]))
        for weight, reranker in zip(self.weights, self.rerankers, strict=True):
            total += weight * values_of(reranker, packed, threads)
        return np.split(total, ends[:-1])

    def _reranked(
        self, found: KBest | Sequence[ScoredTree], added: FloatArray, k: int
    ) -> KBest | Sequence[ScoredTree]:
        """Return the best trees of a sentence in the order of their new scores."""
        if isinstance(found, KBest):
            return reordered(found, found.scores + added).first(k)
        scores = np.array([each.score for each in found]) + added
        order = np.argsort(-scores, kind="stable").tolist()
        return [found[place]._replace(score=float(scores[place])) for place in order[:k]]


def as_reranker(model: LanguageModel) -> Reranker:
    """Return a model as one that may put trees in order.

    Raises:
        UnsupportedTask: if it neither gives trees probabilities nor ranks them.
    """
    if isinstance(model, RanksTrees):
        return model
    return ask_for(model, TreeScorer, "give trees probabilities")


def values_of(reranker: Reranker, packed: Sequence[PackedTrees], threads: int) -> FloatArray:
    """Return the log probabilities or ranks of trees."""
    if isinstance(reranker, RanksTrees):
        return reranker.packed_ranks(packed, threads=threads)
    return reranker.packed_log_probs(packed, threads=threads)


def _weights(given: float | Sequence[float], number: int) -> tuple[float, ...]:
    """Return the weight of each reranker."""
    if not number:
        raise UsageError("there is no model to rerank with.")
    weights = tuple(given) if isinstance(given, Sequence) else (given,) * number
    if len(weights) == 1:
        weights *= number
    if len(weights) != number:
        raise UsageError(
            f"there are {number} models to rerank with and {len(weights)} weights; give one for "
            "each, or one for all."
        )
    for weight in weights:
        if not 0 < weight < math.inf:
            raise UsageError(f"the weight of a reranker is {weight}; it must be above 0.")
    return weights


def _first(found: KBest | Sequence[ScoredTree], k: int) -> KBest | Sequence[ScoredTree]:
    return found.first(k) if isinstance(found, KBest) else found[:k]
