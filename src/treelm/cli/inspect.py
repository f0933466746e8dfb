"""`treelm inspect`."""

from __future__ import annotations

import sys

from treelm.cli.options import CommonOptions, InputFile, TreeOptions
from treelm.cli.terminal import write_record
from treelm.corpus.files import source_name
from treelm.errors import CorpusFormatError
from treelm.tasks.inspect import inspect_profile, inspect_text, inspect_trees, looks_like_trees


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
    if path.endswith(".toml"):
        write_record(inspect_profile(path), as_json=json)
        return
    if not looks_like_trees(path):
        write_record(inspect_text(path), as_json=json)
        return
    options = trees.read_options(strip=not raw)
    found = inspect_trees(
        path,
        options,
        on_error=trees.error_policy,
        threads=trees.thread_count,
        progress=common.progress,
    )
    record = dict(found.rows())
    if json:
        record["problems"] = [
            {"code": p.code, "tree": p.tree, "line": p.line, "column": p.column}
            for p in found.problems
        ]
    write_record(record, as_json=json)
    if not json:
        for problem in found.problems:
            sys.stdout.write(problem.message + "\n")
    if not found.statistics.trees:
        raise CorpusFormatError(f"{source_name(path)}: no tree could be read.", code="E_NO_TREES")
