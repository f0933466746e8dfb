"""Parsers by the name of a folder or a file."""

from __future__ import annotations

import os
from pathlib import Path

from treelm.corpus.files import Source, input_error, is_forest
from treelm.errors import UnsupportedTask
from treelm.grammar.forest_file import ForestFile
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.interface.model import Task
from treelm.models.interface.parse_lists import ParseLists
from treelm.models.interface.parser import Parser


def open_parser(source: Source) -> Parser:
    """Return a parser: a model folder, or a file of parses that stands in for one.

    Args:
        source: The folder of a model that parses, a file of parses that `treelm parse -o
            FILE.forest` wrote, or one of k-best lists as `read_tree_lists` reads them.

    Raises:
        InputFileError: if there is no such folder or file.
        UnsupportedTask: if the model does not parse.
    """
    from treelm.models.registry import load

    if is_forest(source):
        return CachedParser(ForestFile(source))
    if os.fspath(source) == "-":
        return ParseLists(source)
    try:
        Path(source).stat()
    except OSError as error:  # lists are read as far as needed: it would be missed late or never
        raise input_error(source, error) from error
    if not Path(source).is_dir():
        return ParseLists(source)
    model = load(source)
    model.require(Task.PARSE)
    if not isinstance(model, Parser):
        raise UnsupportedTask(f"a {model.system} model does not parse.")
    return model
