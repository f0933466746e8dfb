"""`treelm parse`."""

from __future__ import annotations

from treelm.cli.model_options import ModelPath, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.files import read_lines, source_name, write_atomically
from treelm.errors import UsageError
from treelm.grammar.chart import ParserOptions, ParseStatus, Pruning
from treelm.models.registry import load
from treelm.tasks.parse import parse_lines


def parse(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    fast: bool = False,
    accurate: bool = False,
    output: OutputFile = "-",
    line_buffered: bool = False,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the best tree of each sentence, one a line.

    A blank line gives a blank line. A sentence for which the grammar has no tree gets a flat one,
    and a warning with its line.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
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
    pruning: Pruning = "fast" if fast else "accurate" if accurate else "default"
    flush = at_once(output, line_buffered=line_buffered)
    loaded = load(model)
    options = ParserOptions(pruning=pruning)
    with write_atomically(output) as out:
        for file in files or ["-"]:
            parsed = parse_lines(
                loaded,
                text.first(read_lines(file)),
                options=options,
                threads=text.thread_count,
                line_buffered=flush,
                source=file,
            )
            for line, found in parsed:
                if found is not None and found.is_fallback:
                    common.note(f"warning: {source_name(file)}:{line}: {_REASONS[found.status]}")
                out.write(b"\n" if found is None else f"{found.tree}\n".encode())
                if flush:
                    out.flush()


_REASONS = {
    ParseStatus.FAILED: "no tree was found; a flat one was written.",
    ParseStatus.TOO_LONG: "the sentence is too long to be parsed; a flat tree was written.",
}
