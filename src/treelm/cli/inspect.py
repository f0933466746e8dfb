"""`treelm inspect`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treelm.characters import printable
from treelm.cli.options import AsJson, CommonOptions, InputFile, NewPicture, TreeOptions
from treelm.cli.terminal import write_record
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import CorpusFormatError, UsageError

if TYPE_CHECKING:
    from treelm.tasks.inspect.files import TreeFileReport


def inspect(
    path: Annotated[InputFile, Parameter(metavar="PATH")],
    /,
    *,
    json: AsJson = False,
    raw: bool = False,
    verify: bool = False,
    subcategories: Annotated[str | None, Parameter(metavar="LABEL")] = None,
    topics: bool = False,
    plot: NewPicture | None = None,
    trees: TreeOptions = TreeOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Show what is in a file or a model, and what is wrong with it.

    Of a file of parses (.forest), the best tree of each sentence is counted. Any other file
    contains trees if it is named .mrg, or if the first thing in it that is not a comment is a
    bracket. Malformed trees are listed, whatever their share.

    Args:
        path: A file of trees or of parses, a file of tokenized text, a language profile (.toml), or
            a model folder.
        raw: Count labels and empty elements as they are written.
        verify: Models: read everything and compare checksums.
        subcategories: Grammars: show what the subcategories of this label have learned.
        topics: Models with topics: show the share of each topic, and the words that distinguish it.
        plot: With --topics: picture of the largest topics to write, .svg or .html.
    """
    if plot is not None and not topics:
        raise UsageError("--plot draws topics: it needs --topics.")
    from treelm.tasks.inspect.model import inspect_model, is_model_folder

    if subcategories is not None:
        _show_subcategories(path, subcategories, as_json=json)
    elif topics:
        _show_topics(path, plot, as_json=json)
    elif is_model_folder(path):
        write_record(inspect_model(path, verify=verify), as_json=json)
    else:
        from treelm.tasks.inspect.files import inspect_file

        found = inspect_file(
            path,
            trees.read_options(strip=not raw),
            on_error=trees.on_error,
            threads=trees.thread_count,
            progress=common.progress,
        )
        if isinstance(found, dict):
            write_record(found, as_json=json)
        else:
            _show_trees(found, source_name(path), common, as_json=json)


def _write(record: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Write a JSON object, or lines for people."""
    if as_json:
        write_record(record, as_json=True)
        return
    for line in lines:
        sys.stdout.write(printable(line) + "\n")


def _show_trees(found: TreeFileReport, name: str, common: CommonOptions, *, as_json: bool) -> None:
    """Write what is in a file of trees, and its problems."""
    record = dict(found.rows())
    if as_json:
        record["problems"] = [
            {"code": p.code, "tree": p.tree, "line": p.line, "column": p.column}
            for p in found.problems
        ]
    write_record(record, as_json=as_json)
    if not as_json:
        for problem in found.problems:
            sys.stdout.write(printable(problem.message) + "\n")
    if found.failed > len(found.problems):
        common.note(f"only the first {len(found.problems)} problems are listed.")
    if found.document_problem is not None:
        common.note(found.document_problem)
    if not found.statistics.trees:
        raise CorpusFormatError(f"{name}: no tree could be read.", code="E_NO_TREES")


def _show_subcategories(path: str, label: str, *, as_json: bool) -> None:
    from treelm.tasks.inspect.grammar import (
        inspect_subcategories,
        subcategory_lines,
        subcategory_record,
    )

    learned = inspect_subcategories(path, label)
    _write(subcategory_record(learned), subcategory_lines(learned), as_json=as_json)


def _show_topics(path: str, plot: str | None, *, as_json: bool) -> None:
    from treelm.tasks.inspect.topics import draw_topics, inspect_topics, topic_lines, topic_record
    from treelm.view.picture_files import picture_content

    found = inspect_topics(path)
    if plot is not None:
        with write_atomically(plot) as file:
            file.write(picture_content(plot, draw_topics(found), "Topics of the model"))
    _write(topic_record(found), topic_lines(found), as_json=as_json)
