"""`treelm inspect`."""

from __future__ import annotations

import sys

from treelm.characters import printable
from treelm.cli.options import CommonOptions, InputFile, TreeOptions
from treelm.cli.terminal import write_record
from treelm.corpus.files import source_name
from treelm.errors import CorpusFormatError
from treelm.tasks.inspect import inspect_file


def inspect(
    path: InputFile,
    /,
    *,
    json: bool = False,
    raw: bool = False,
    trees: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Say what is in a file, and everything wrong in it.

    Args:
        path: A file of trees, a file of tokenized text, or a language profile (.toml).
        json: One JSON object instead of lines.
        raw: Count labels and empty elements as they are written.
        trees: Reading.
        common: Common.
    """
    trees, common = trees or TreeOptions(), common or CommonOptions()
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
