"""A model prepared for scoring: with a parser, with pruning, or with a fallback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treelm.corpus.files import Source
    from treelm.grammar.parser_options import Pruning
    from treelm.models.interface.model import LanguageModel


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
        from treelm.models.open_parser import open_parser

        if not model.takes_parser:
            raise model.needs_no_parser()
        held = model.parser if parser is None else open_parser(parser)
        if held is not None:
            model = model.with_parser(held, k)
    if pruning != "none":
        model = model.pruned(pruning)
    return model if floor is None else model.floored(floor)
