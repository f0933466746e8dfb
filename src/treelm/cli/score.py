"""`treelm score`."""

from __future__ import annotations

from itertools import chain
from typing import Literal

from treelm.cli.model_options import ModelPath, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.files import read_lines, write_atomically
from treelm.corpus.score_files import write_score_table
from treelm.errors import UsageError
from treelm.models.registry import load
from treelm.tasks.evaluate.measured_text import read_measured_text
from treelm.tasks.evaluate.slr import score_text
from treelm.tasks.score import score_lines


def score(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    no_eos: bool = False,
    format: Literal["text", "tsv"] = "text",  # noqa: A002 (the name of the option)
    output: OutputFile = "-",
    line_buffered: bool = False,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the natural log probability of each sentence, one a line.

    A blank line gives a blank line. The table of --format tsv has one row a sentence, for
    `treelm compare` and `treelm evaluate`.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
        no_eos: Leave the end of the sentence out.
        format: One number a line, or a table with lengths and log probabilities of words alone.
        output: File to write; standard output by default.
        line_buffered: Write every score at once, for use in pipes.
        text: Text.
        common: Common.
    """
    del common
    text = text or TextOptions()
    flush = at_once(output, line_buffered=line_buffered)
    loaded = load(model)
    if format == "tsv":
        if no_eos or line_buffered or text.limit is not None or len(files or ["-"]) > 1:
            raise UsageError("--format tsv is for one whole file, with sentence ends.")
        counts = loaded.unigram_counts
        table = score_text(
            loaded,
            read_measured_text((files or ["-"])[0]),
            with_unigram=counts is not None and bool(counts.any()),
            threads=text.thread_count,
        )
        write_score_table(output, table)
        return
    scores = chain.from_iterable(
        score_lines(
            loaded,
            read_lines(file),
            eos=not no_eos,
            threads=text.thread_count,
            line_buffered=flush,
            source=file,
        )
        for file in files or ["-"]
    )
    with write_atomically(output) as out:
        for value in text.first(scores):
            out.write(b"\n" if value is None else f"{value!r}\n".encode())
            if flush:
                out.flush()
