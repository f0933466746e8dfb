"""`treelm counts`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from treelm.cli.corpus_options import corpus_of, settler, tree_corpus
from treelm.cli.options import CommonOptions, TreeOptions, memory_limit, thread_count
from treelm.cli.terminal import write_record
from treelm.cli.treelet_options import transform_options
from treelm.errors import UsageError
from treelm.models.interface.model import make_config
from treelm.models.treelet.config import TreeletConfig, Variant
from treelm.tasks.counts import build_counts, counts_summary, inspect_counts, merge_counts
from treelm.tasks.treelet_counts import (
    build_treelet_counts,
    holds_treelet_counts,
    inspect_treelet_counts,
    merge_treelet_folders,
    treelet_counts_summary,
)

#: The folder that is made.
NewFolder = Annotated[str, Parameter(name=["--output", "-o"])]

counts = App(
    name="counts",
    help="Count n-grams or treelets, and merge the counts of several machines.",
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
    order: int | None = None,
    treelets: Variant | None = None,
    without: list[str] | None = None,
    untransformed: bool = False,
    temporal: str | None = None,
    mark_tags: list[str] | None = None,
    vocabulary: str | None = None,
    memory: str | None = None,
    temporary: str | None = None,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Count the n-grams of a text, or the treelets of trees.

    Args:
        text: Files of tokenized text, one sentence a line.
        trees: Files of trees, whose words are the text; give either text or trees.
        output: Folder to write.
        order: Words in an n-gram. Default: 5.
        treelets: Count the treelets of trees instead, of the variant full, rule, trans or pcfg.
        without: Treelets: transforms to leave out.
        untransformed: Treelets: leave all transforms out.
        temporal: Treelets: lexicon of temporal nouns, or a treebank with function tags. Counts to
            be merged need the same. Default: they are collected from the trees.
        mark_tags: Treelets: tags that are those of phrases too, to be told apart. Default: found in
            the trees, which are then counted twice. Counts to be merged need the same.
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
    if treelets is not None:
        if text is not None or trees is None or order is not None:
            raise UsageError("--treelets counts --trees, and has no --order.")
        counted = build_treelet_counts(
            tree_corpus(trees, reading),
            output,
            make_config(
                TreeletConfig,
                {
                    "variant": treelets,
                    "marked_tags": sorted(mark_tags or ()),
                    **transform_options(without, untransformed=untransformed),
                },
                "treelet",
            ),
            vocabulary=vocabulary,
            temporal=temporal,
            settle=settler(common),
            threads=reading.thread_count,
            memory=memory_limit(memory, temporary, output),
            progress=common.progress,
        )
        write_record(treelet_counts_summary(counted), as_json=json)
        return
    if untransformed or any(each is not None for each in (without, temporal, mark_tags)):
        raise UsageError(
            "--without, --untransformed, --temporal and --mark-tags go with --treelets."
        )
    made = build_counts(
        corpus_of(text, trees, reading, common),
        output,
        5 if order is None else order,
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
        folders: Folders of counts, all of one order or of one variant.
        output: Folder to write.
        memory: How much memory may be used, such as 4G. Default: as much as it takes.
        temporary: Folder for what does not fit; default: that of the output.
        threads: Threads; default: the cores available. Results do not depend on it.
        json: One JSON object instead of lines.
        common: Common.
    """
    del common
    limit = memory_limit(memory, temporary, output)
    if holds_treelet_counts(folders):
        treelets = merge_treelet_folders(
            folders, output, threads=thread_count(threads), memory=limit
        )
        write_record(treelet_counts_summary(treelets), as_json=json)
        return
    merged = merge_counts(folders, output, threads=thread_count(threads), memory=limit)
    write_record(counts_summary(merged), as_json=json)


@counts.command(help_epilogue="Example: `treelm counts inspect all.counts --json`")
def inspect(
    folder: str,
    /,
    *,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Say what was counted, and how many events of every level occur once, twice, and so on.

    Args:
        folder: Folder of counts.
        json: One JSON object instead of lines.
        common: Common.
    """
    del common
    inspected = inspect_treelet_counts if holds_treelet_counts([folder]) else inspect_counts
    write_record(inspected(folder), as_json=json)
