"""Options of `treelm parse` for models that put the best trees in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from treelm.cli.model_options import load_for_tokens
from treelm.cli.ranges import Range, at_least, within
from treelm.errors import UsageError
from treelm.grammar.parser_options import SCORES_OF_TREES, ParserOptions
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.reranked import (
    RANKER_WEIGHT,
    RERANKED,
    RERANKER_WEIGHT,
    RerankedParser,
)
from treelm.models.ready import model_folder
from treelm.tasks.parse_file import parser_fingerprint


@Parameter(name="*", group=Group("Options for reranking", sort_key=25))
@dataclass(frozen=True, kw_only=True)
class RerankOptions:
    """How other models put the best trees in order."""

    rerank: Annotated[
        list[str] | None,
        Parameter(metavar="MODEL", consume_multiple=False, show_default="none"),
    ] = None
    """Model that gives trees probabilities, such as a treelet model, or ranks them (tree_ranker);
    give the option again for each further model, such as grammars of other seeds. The score of a
    tree is then that of the parser plus, for each, --rerank-weight times the natural log
    probability of the tree in it, or its rank."""
    rerank_weight: Annotated[
        list[float] | None,
        Parameter(consume_multiple=False),
        within(
            Range(above=0), show_default=f"{RERANKER_WEIGHT}, and {RANKER_WEIGHT:g} for rankers"
        ),
    ] = None
    """Weight of the log probability or rank: one for all models, or given again for each, in
    order."""
    rerank_k: Annotated[int | None, at_least(1), Parameter(show_default=str(RERANKED))] = None
    """Number of trees of a sentence among which they choose; with a larger -k, that many."""

    consensus: bool = False
    """With --rerank: models that parse propose trees too, and the tree that has most in common with
    all good ones is chosen: the most accurate, and as slow as all parsers together. Weights are
    then 1 unless they are given."""

    def check(self, *, forests: bool) -> None:
        """Refuse what cannot be combined."""
        given = [name for name in ("rerank_weight", "rerank_k") if getattr(self, name) is not None]
        if self.rerank is None:
            given += ["consensus"] * self.consensus
            if given:
                raise UsageError(f"--{given[0].replace('_', '-')} is used with --rerank only.")
        elif forests:
            raise UsageError("--rerank cannot be combined with --forests: forests have no order.")

    def apply(self, model: LanguageModel) -> LanguageModel:
        """Return the model with the reranker asked for."""
        if self.rerank is None:
            return model
        others = [load_for_tokens(each) for each in self.rerank]
        combined = model.with_consensus if self.consensus else model.with_reranker
        return combined(*others, weight=self.rerank_weight, k=self.rerank_k)

    def trees(self, k: int) -> int:
        """Return the number of trees of a sentence that the parser lists where `k` are wanted."""
        return k if self.rerank is None else max(k, self.rerank_k or RERANKED)

    def facts(self, model: LanguageModel) -> dict[str, float | str]:
        """Return what decides about trees besides the parser."""
        if self.rerank is None or not isinstance(model, RerankedParser):
            return {}
        facts: dict[str, float | str] = {"rerank_k": model.k}
        if self.consensus:
            facts["consensus"] = "expected F1"
        weights = model.weights[-len(self.rerank) :]
        for number, (path, weight) in enumerate(zip(self.rerank, weights, strict=True)):
            more = f"_{number + 1}" if number else ""
            facts[f"rerank{more}"] = parser_fingerprint(model_folder(path))
            facts[f"rerank_weight{more}"] = weight
        return facts


def meaning_of_scores(model: LanguageModel, options: ParserOptions) -> str:
    """Return what the scores of a model's trees are, in words."""
    if isinstance(model, RerankedParser):
        return model.meaning_of_scores
    return SCORES_OF_TREES[options.decoding]
