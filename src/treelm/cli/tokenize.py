"""`treelm tokenize`."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import CommonOptions, InputFiles, LineBuffered, OutputFile
from treelm.cli.terminal import is_terminal
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import read_lines, write_atomically
from treelm.corpus.tokenize import tokenize_stream
from treelm.tasks.text_check import NO_SENTENCE


def tokenize(
    files: InputFiles = None,
    /,
    *,
    split: Annotated[bool, Parameter(negative="--no-split")] = True,
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Turn raw English text into Penn tokens, one sentence per line.

    A blank line ends a document and is written as a blank line.

    Args:
        files: Files of raw text.
        split: Find the sentences; with --no-split every input line is one sentence.
    """
    sentences = 0
    flush = line_buffered or (output == "-" and is_terminal(sys.stdout))
    with write_atomically(output) as out:
        for index, file in enumerate(files or ["-"]):
            if index:
                out.write(b"\n")  # a file is a document of its own
            for tokens in tokenize_stream(read_lines(file, Wanted.RAW_TEXT), split=split):
                sentences += bool(tokens)
                out.write((" ".join(tokens) + "\n").encode())
                if flush:
                    out.flush()
    if not sentences:
        common.note(NO_SENTENCE)
