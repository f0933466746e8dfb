"""`treelm tokenize`."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.cli.terminal import is_terminal
from treelm.corpus.files import read_lines, write_atomically
from treelm.corpus.tokenize import tokenize_stream


def tokenize(
    files: InputFiles = None,
    /,
    *,
    split: Annotated[bool, Parameter(negative="--no-split")] = True,
    output: OutputFile = "-",
    line_buffered: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Turn raw text into Penn tokens, one sentence a line.

    A blank line ends a document and gives a blank line out.

    Args:
        files: Text files; standard input if none is given or for `-`.
        split: Find sentences; with --no-split every input line is one sentence.
        output: File to write; standard output by default.
        line_buffered: Write every sentence at once, for use in pipes.
        common: Common.
    """
    del common
    flush = line_buffered or (output == "-" and is_terminal(sys.stdout))
    with write_atomically(output) as out:
        for index, file in enumerate(files or ["-"]):
            if index:
                out.write(b"\n")  # a file is a document of its own
            for tokens in tokenize_stream(read_lines(file), split=split):
                out.write((" ".join(tokens) + "\n").encode())
                if flush:
                    out.flush()
