"""`treelm counts`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from treelm.cli.corpus_options import corpus_of
from treelm.cli.options import CommonOptions, TreeOptions, memory_limit, thread_count
from treelm.cli.terminal import write_record
from treelm.tasks.counts import build_counts, counts_summary, inspect_counts, merge_counts

#: The folder that is made.
NewFolder = Annotated[str, Parameter(name=["--output", "-o"])]

counts = App(
    name="counts",
    help="Count n-grams, and merge the counts of several machines.",
    help_epilogue="Example: `treelm counts build --text part1.txt --order 5 -o part1.counts`",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    version_flags=[],
)


@counts.command
def build(
    *,
    text: list[str] | None = None,
    trees: list[str] | None = None,
    output: NewFolder,
    order: int = 5,
    vocabulary: str | None = None,
    memory: str | None = None,
    temporary: str | None = None,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Count the n-grams of a text.

    Args:
        text: Files of tokenized text, one sentence a line.
        trees: Files of trees, whose words are the text; give either text or trees.
        output: Folder to write.
        order: Words in an n-gram.
        vocabulary: Vocabulary file; default: all words of the text are known. Counts to be merged
            need the same vocabulary, or none.
        memory: How much memory may be used, such as 4G; what does not fit is sorted on disk, with
            the same result. Default: as much as it takes.
        temporary: Folder for what does not fit; default: that of the output. Nothing is left there.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    made = build_counts(
        corpus_of(text, trees, reading, common),
        output,
        order,
        vocabulary=vocabulary,
        threads=reading.thread_count,
        memory=memory_limit(memory, temporary, output),
        progress=common.progress,
    )
    write_record(counts_summary(made), as_json=json)


@counts.command(help_epilogue="Example: `treelm counts merge a.counts b.counts -o all.counts`")
def merge(
    *folders: str,
    output: NewFolder,
    memory: str | None = None,
    temporary: str | None = None,
    threads: int | None = None,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Merge counts as if their texts had been counted together.

    Args:
        folders: Folders of counts, all of one order.
        output: Folder to write.
        memory: How much memory may be used, such as 4G. Default: as much as it takes.
        temporary: Folder for what does not fit; default: that of the output.
        threads: Threads; default: the cores available. Results do not depend on it.
        json: One JSON object instead of lines.
        common: Common.
    """
    del common
    merged = merge_counts(
        folders,
        output,
        threads=thread_count(threads),
        memory=memory_limit(memory, temporary, output),
    )
    write_record(counts_summary(merged), as_json=json)


@counts.command(help_epilogue="Example: `treelm counts inspect all.counts --json`")
def inspect(
    folder: str,
    /,
    *,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Say what was counted, and how many n-grams of every order occur once, twice, and so on.

    Args:
        folder: Folder of counts.
        json: One JSON object instead of lines.
        common: Common.
    """
    del common
    write_record(inspect_counts(folder), as_json=json)
