"""`treelm surprisal`."""

from __future__ import annotations

from typing import Literal

from treelm.cli.model_options import ModelPath, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.models.registry import load
from treelm.tasks.surprisal import surprisal_rows, table_lines


def surprisal(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    eos: bool = False,
    format: Literal["tsv", "csv", "jsonl", "parquet", "itemmeasures", "minicons"] = "tsv",  # noqa: A002 (the option's name)
    output: OutputFile = "-",
    line_buffered: bool = False,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the surprisal of each word, in bits, as a table.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given. A
            blank line ends a document, and so does a file.
        model: Model folder of an incremental model.
        eos: Add a row </s> for the end of each sentence.
        format: tsv (never quoted), csv, jsonl, parquet, itemmeasures or minicons.
        output: File to write; standard output by default.
        line_buffered: Write every sentence at once, for use in pipes.
        text: Text.
        common: Common.
    """
    del common
    text = text or TextOptions()
    flush = at_once(output, line_buffered=line_buffered)
    rows = surprisal_rows(
        load(model),
        text.first(TextCorpus(tuple(files or ["-"])).with_documents()),
        eos=eos,
        threads=text.thread_count,
        line_buffered=flush,
    )
    with write_atomically(output) as out:
        for piece in table_lines(rows, format):
            out.write(piece)
            if flush:
                out.flush()
