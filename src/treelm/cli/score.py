"""`treelm score`."""

from __future__ import annotations

from itertools import chain

from treelm.cli.model_options import ModelPath, OutputFile, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles
from treelm.corpus.files import read_lines, write_atomically
from treelm.models.registry import load
from treelm.tasks.score import score_lines


def score(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    no_eos: bool = False,
    output: OutputFile = "-",
    line_buffered: bool = False,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the natural log probability of each sentence, one a line.

    A blank line gives a blank line.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
        no_eos: Leave the end of the sentence out.
        output: File to write; standard output by default.
        line_buffered: Write every score at once, for use in pipes.
        text: Text.
        common: Common.
    """
    del common
    text = text or TextOptions()
    flush = at_once(output, line_buffered=line_buffered)
    loaded = load(model)
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
