"""`treelm parse`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import ModelPath, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import UsageError
from treelm.grammar.chart import ParserOptions, ParseStatus, Pruning
from treelm.grammar.k_best import text_of
from treelm.models.grammar_model import GrammarModel
from treelm.models.registry import load
from treelm.tasks.parse import parse_batches


def parse(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    trees: Annotated[int, Parameter(name=["--trees", "-k"])] = 1,
    fast: bool = False,
    accurate: bool = False,
    output: OutputFile = "-",
    line_buffered: bool = False,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the best tree of each sentence, one a line; or the k best.

    A blank line gives a blank line. A sentence for which the grammar has no tree gets a flat one,
    and a warning with its line. With -k, each sentence gives a block: lines of a score, a tab and a
    tree, the best first, all different; a blank line ends the block.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
        trees: Trees of each sentence; with more than one, scores are written too.
        fast: Prune more: faster, a little less accurate.
        accurate: Prune less: slower, a little more accurate.
        output: File to write; standard output by default.
        line_buffered: Write every tree at once, for use in pipes.
        text: Text.
        common: Common.
    """
    text, common = text or TextOptions(), common or CommonOptions()
    if fast and accurate:
        raise UsageError("choose one of --fast and --accurate.")
    if trees < 1:
        raise UsageError("-k must be 1 or more.")
    pruning: Pruning = "fast" if fast else "accurate" if accurate else "default"
    flush = at_once(output, line_buffered=line_buffered)
    loaded = load(model)
    own = loaded.parser_options if isinstance(loaded, GrammarModel) else ParserOptions()
    options = replace(own, pruning=pruning)
    with write_atomically(output) as out:
        for file, lines in text.first_lines(files or ["-"]):
            for batch in parse_batches(
                loaded,
                lines,
                trees,
                options=options,
                threads=text.thread_count,
                line_buffered=flush,
                source=file,
            ):
                for line, status in batch.statuses:
                    if status in _REASONS:
                        common.note(f"warning: {source_name(file)}:{line}: {_REASONS[status]}")
                out.write(text_of(batch.lists, scores=trees > 1))
                if flush:
                    out.flush()


_REASONS = {
    ParseStatus.FAILED: "no tree was found; a flat one was written.",
    ParseStatus.TOO_LONG: "the sentence is too long to be parsed; a flat tree was written.",
}
