"""A model prepared for scoring: with a parser, with pruning, or with a fallback."""

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
    """Return a parser from a model folder, or from a parse file that replaces one.

    Args:
        source: The folder of a model that parses, a parse file that `treelm parse -o FILE.forest`
            wrote, or a file of lists as `read_tree_lists` reads them.

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
        raise UnsupportedTask(f"{model.system} models cannot parse.")
    return model


def is_forest(source: Source) -> bool:
    """Return whether a file is a parse file."""
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
