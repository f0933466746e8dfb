"""A model made ready for scoring: with a parser, pruned, or never without a parse."""

from __future__ import annotations

import os
from pathlib import Path

from treelm.corpus.files import Source
from treelm.errors import UnsupportedTask, UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import MAGIC
from treelm.grammar.parser_options import Pruning
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.parse_lists import ParseLists
from treelm.models.interface.scoring_views import FlooredScores
from treelm.models.interface.tree_model import GivesTrees, TreeModel
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.registry import load


def open_parser(source: Source) -> GivesTrees:
    """Return a parser: a model folder, or a file of parses that stands in for one.

    Args:
        source: The folder of a model that parses, a file of parses that `treelm parse -o
            FILE.forest` wrote, or one of k-best lists as `read_k_best_lists` reads them.

    Raises:
        UnsupportedTask: if the model does not parse.
    """
    if is_forest(source):
        return CachedParser(ForestFile(source))
    if os.fspath(source) == "-" or not Path(source).is_dir():
        return ParseLists(source)
    model = load(source)
    model.require(Task.PARSE)
    if not isinstance(model, GivesTrees):
        raise UnsupportedTask(f"a model of the system {model.system} does not parse.")
    return model


def is_forest(source: Source) -> bool:
    """Return whether a file is one of parses that treelm packed."""
    try:
        with Path(source).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # opening it as what it should be says it better
        return False


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
