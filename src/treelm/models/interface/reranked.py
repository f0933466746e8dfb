"""A parser whose best trees are put in another order by a model of trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np

from treelm.corpus.words import Words, words_of
from treelm.errors import UsageError, option
from treelm.grammar.grammar import FloatArray
from treelm.grammar.k_best import KBest
from treelm.grammar.k_best_arrays import reordered
from treelm.grammar.parser_options import SCORES_OF_TREES, ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.abilities import ask_for
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.packed_tree_model import PackedTreeModel
from treelm.models.interface.parser import TreeLists, check_parser
from treelm.models.interface.scoring_views import ScoringView
from treelm.models.interface.tree_model import TreeScorer

#: Trees of a sentence among which the reranker chooses, and the weight of its log probability.
RERANKED, RERANKER_WEIGHT = 50, 0.75


class RerankedParser(ScoringView):
    """A parser that asks another model which of its best trees are best.

    The score of a tree is that of the parser plus `weight` times the natural log probability that
    the reranker gives the tree with its words. Trees that the reranker cannot derive come last, in
    the order of the parser. A sentence without a parse, or parsed in pieces, keeps its one tree.
    Sentences are scored as the parser does.

    Args:
        parser: Any model that gives several trees of a sentence.
        reranker: Any model that gives trees probabilities.
        weight: Of the reranker.
        k: Trees of a sentence among which it chooses, unless more are asked for.

    Raises:
        UsageError: for a weight that is not above 0 and finite, a parser that does not give so many
            trees, or one whose scores are not logarithms.
        UnsupportedTask: if the reranker does not give trees probabilities.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY, Task.PARSE})

    def __init__(
        self,
        parser: LanguageModel,
        reranker: LanguageModel,
        weight: float = RERANKER_WEIGHT,
        k: int = RERANKED,
    ) -> None:
        super().__init__(parser)
        parser.require(Task.PARSE)
        check_parser(parser, k)
        if not 0 < weight < math.inf:
            raise UsageError(f"the weight of the reranker is {weight}; it must be above 0.")
        if parser.parser_options.decoding == "max_rule_sum":
            raise UsageError(
                "the scores of this parser are sums of expected numbers, not logarithms, so a log "
                "probability cannot be added to them. Train it with "
                f"{option('decoding', 'max_rule_product')}."
            )
        self.reranker = ask_for(reranker, TreeScorer, "give trees probabilities")
        self.weight, self.k = weight, k
        self.most_trees = parser.most_trees

    @property
    def parser_options(self) -> ParserOptions:
        """How the parser works unless told otherwise."""
        return self.model.parser_options

    @property
    def meaning_of_scores(self) -> str:
        """What the score of a tree is, in words."""
        own = SCORES_OF_TREES[self.parser_options.decoding]
        return (
            f"{own}, plus {self.weight:g} times its natural log probability in the "
            f"{self.reranker.system} model"
        )

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
        chosen = [place for place, found in enumerate(lists) if found and not _is_fallback(found)]
        values = self._log_probs([lists[place] or () for place in chosen], threads)
        made: list[KBest | Sequence[ScoredTree] | None] = [
            found if found is None else _first(found, k) for found in lists
        ]
        for place, own in zip(chosen, values, strict=True):
            made[place] = self._reranked(lists[place] or (), own, k)
        return cast("TreeLists", made)

    def _log_probs(
        self, lists: Sequence[KBest | Sequence[ScoredTree]], threads: int
    ) -> list[FloatArray]:
        """Return the reranker's log probabilities of trees, list by list."""
        packed = [found.packed for found in lists if isinstance(found, KBest)]
        if isinstance(self.reranker, PackedTreeModel) and len(packed) == len(lists):
            return [own for own, _ in self.reranker.score_each(packed, threads=threads)]
        trees = [each.tree for found in lists for each in found]
        ends = np.cumsum([len(found) for found in lists])[:-1]
        return np.split(self.reranker.tree_log_probs(trees, threads=threads), ends)

    def _reranked(
        self, found: KBest | Sequence[ScoredTree], log_probs: FloatArray, k: int
    ) -> KBest | Sequence[ScoredTree]:
        """Return the best trees of a sentence in the order of their new scores."""
        if isinstance(found, KBest):
            return reordered(found, found.scores + self.weight * log_probs).first(k)
        scores = np.array([each.score for each in found]) + self.weight * log_probs
        order = np.argsort(-scores, kind="stable").tolist()
        return [found[place]._replace(score=float(scores[place])) for place in order[:k]]


def _is_fallback(found: KBest | Sequence[ScoredTree]) -> bool:
    return found.is_fallback if isinstance(found, KBest) else found[0].is_fallback


def _first(found: KBest | Sequence[ScoredTree], k: int) -> KBest | Sequence[ScoredTree]:
    return found.first(k) if isinstance(found, KBest) else found[:k]
