"""`treelm inspect`."""

from __future__ import annotations

import sys

from treelm.characters import printable
from treelm.cli.options import CommonOptions, InputFile, TreeOptions
from treelm.cli.terminal import write_record
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.inspect.files import inspect_file
from treelm.tasks.inspect.grammar import (
    inspect_subcategories,
    subcategory_lines,
    subcategory_record,
)
from treelm.tasks.inspect.model import inspect_model, is_model_folder


def inspect(
    path: InputFile,
    /,
    *,
    json: bool = False,
    raw: bool = False,
    verify: bool = False,
    subcategories: str | None = None,
    topics: bool = False,
    plot: str | None = None,
    trees: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Say what is in a file or a model, and everything wrong in it.

    Args:
        path: A file of trees, a file of tokenized text, a language profile (.toml), or a model
            folder.
        json: One JSON object instead of lines.
        raw: Count labels and empty elements as they are written.
        verify: Models: read everything and compare checksums.
        subcategories: Grammars: say what the subcategories of this label have learned.
        topics: Models with topics: the share of each topic, and words that tell it from others.
        plot: With --topics: file for a picture (SVG) of the largest ones.
        trees: Reading.
        common: Common.
    """
    trees, common = trees or TreeOptions(), common or CommonOptions()
    if subcategories is not None:
        found_parts = inspect_subcategories(path, subcategories)
        if json:
            write_record(subcategory_record(found_parts), as_json=True)
            return
        for line in subcategory_lines(found_parts):
            sys.stdout.write(printable(line) + "\n")
        return
    if plot is not None and not topics:
        raise UsageError("--plot draws topics; give it with --topics.")
    if topics:
        _show_topics(path, plot, as_json=json)
        return
    if is_model_folder(path):
        write_record(inspect_model(path, verify=verify), as_json=json)
        return
    found = inspect_file(
        path,
        trees.read_options(strip=not raw),
        on_error=trees.on_error,
        threads=trees.thread_count,
        progress=common.progress,
    )
    if isinstance(found, dict):
        write_record(found, as_json=json)
        return
    record = dict(found.rows())
    if json:
        record["problems"] = [
            {"code": p.code, "tree": p.tree, "line": p.line, "column": p.column}
            for p in found.problems
        ]
    write_record(record, as_json=json)
    if not json:
        for problem in found.problems:
            sys.stdout.write(printable(problem.message) + "\n")
    if found.failed > len(found.problems):
        common.note(f"only the first {len(found.problems)} problems are listed.")
    if found.document_problem is not None:
        common.note(found.document_problem)
    if not found.statistics.trees:
        raise CorpusFormatError(f"{source_name(path)}: no tree could be read.", code="E_NO_TREES")


def _show_topics(path: str, plot: str | None, *, as_json: bool) -> None:
    from treelm.tasks.inspect.topics import draw_topics, inspect_topics, topic_lines, topic_record

    found = inspect_topics(path)
    if plot is not None:
        with write_atomically(plot) as file:
            file.write(draw_topics(found).encode())
    if as_json:
        write_record(topic_record(found), as_json=True)
        return
    for line in topic_lines(found):
        sys.stdout.write(printable(line) + "\n")
