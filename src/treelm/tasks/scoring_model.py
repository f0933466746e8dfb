"""A model prepared for scoring: with a parser, with pruning, or with a fallback."""

from __future__ import annotations

from treelm.corpus.files import Source
from treelm.errors import UsageError
from treelm.grammar.parser_options import Pruning
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.scoring_views import FlooredScores
from treelm.models.interface.tree_model import TreeModel
from treelm.models.open_parser import open_parser
from treelm.models.pcfg.grammar_model import GrammarModel


def scoring_model(
    model: LanguageModel,
    *,
    parser: Source | None = None,
    k: int | None = None,
    pruning: Pruning = "none",
    floor: float | None = None,
) -> LanguageModel:
    """Return the model with the given scoring options.

    Args:
        model: The model.
        parser: Parser for a tree model, instead of its own.
        k: Number of trees per sentence that it sums over.
        pruning: Pruning of a grammar's charts: scores are then lower bounds.
        floor: Share of a unigram model, so that sentences without a parse have a probability.

    Raises:
        UsageError: for options that do not apply to the model.
    """
    if parser is not None or k is not None:
        if not isinstance(model, TreeModel):
            raise UsageError(
                f"{model.system} models score sentences without a parser; --parser and -k are for "
                "tree models that need one."
            )
        held = model.parser if parser is None else open_parser(parser)
        if held is not None:
            model = model.with_parser(held, k)
    scored: LanguageModel = model
    if pruning != "none":
        if not isinstance(model, GrammarModel):
            raise UsageError(
                f"{model.system} models have no charts to prune; --pruning is for grammars."
            )
        scored = model.pruned(pruning)
    return scored if floor is None else FlooredScores(scored, floor)
