"""A model made ready for scoring: with a parser, pruned, or never without a parse."""

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
    """Return a model that scores in the way asked for.

    Args:
        model: The model.
        parser: Where the trees of a model of trees come from, instead of its own parser.
        k: Trees of a sentence that it sums over.
        pruning: How a grammar prunes its charts: scores are then lower bounds.
        floor: Share of a unigram model, so that sentences without a parse are possible.

    Raises:
        UsageError: for what the model has no use for.
    """
    if parser is not None or k is not None:
        if not isinstance(model, TreeModel):
            raise UsageError(
                f"a model of the system {model.system} scores sentences by itself; --parser and -k "
                "are for models of trees that need a parser."
            )
        held = model.parser if parser is None else open_parser(parser)
        if held is not None:
            model = model.with_parser(held, k)
    scored: LanguageModel = model
    if pruning != "none":
        if not isinstance(model, GrammarModel):
            raise UsageError(
                f"a model of the system {model.system} has no charts to prune; --pruning is for "
                "grammars."
            )
        scored = model.pruned(pruning)
    return scored if floor is None else FlooredScores(scored, floor)
