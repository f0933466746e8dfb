"""`treelm phrases`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import AsJson, CommonOptions, File, NewFile, OutputFile
from treelm.cli.ranges import at_least, between
from treelm.cli.terminal import write_record
from treelm.errors import UsageError, option
from treelm.tasks.phrases import make_phrase_tables
from treelm.translation.phrases import LONGEST

#: Longer phrases than this are never seen twice, and tables of them fill disks.
_LONGEST_ALLOWED = 20


def phrases(
    *,
    source: File,
    target: File,
    output: Annotated[OutputFile, Parameter(show_default=False)],
    alignment: File | None = None,
    reordering: NewFile | None = None,
    write_alignment: NewFile | None = None,
    longest: Annotated[int, between(1, _LONGEST_ALLOWED)] = LONGEST,
    min_count: Annotated[int, at_least(1)] = 1,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Make a phrase table from parallel text.

    Words are aligned by eflomal (`pip install "treelm[align]"`), or as --alignment says; phrases
    are all that agree with the alignment. The table is in Moses format; names that end in .gz or
    .xz are compressed.

    Args:
        source: Tokenized text, one sentence per line.
        target: Its translation, line by line.
        alignment: Word alignments in Pharaoh format (0-0 1-2 ...), one line per sentence pair.
        reordering: Also write the table of lexicalised reordering (msd-bidirectional-fe).
        write_alignment: Also write the word alignments that were found.
        longest: Words per side of a phrase at most.
        min_count: Leave phrase pairs out that occur less often.
    """
    if output == "-" and json:
        raise UsageError(f"{option('json')} needs a file for the table. Name one with -o.")
    report = make_phrase_tables(
        source,
        target,
        output,
        alignment=alignment,
        reordering=reordering,
        write_alignment=write_alignment,
        longest=longest,
        min_count=min_count,
        progress=common.progress,
    )
    if output != "-":
        write_record(report, as_json=json)
