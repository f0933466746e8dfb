"""`treelm counts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from treelm.cli.apps import command_group, example_line
from treelm.cli.corpus_options import corpus_of, settler
from treelm.cli.engine_options import EngineOptions
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    Files,
    Folder,
    MemoryOptions,
    NewFolder,
    ThreadOptions,
    TreeOptions,
    VocabularyFile,
)
from treelm.cli.ranges import between
from treelm.cli.terminal import write_record
from treelm.errors import UsageError
from treelm.models.ngram.config import LARGEST_ORDER
from treelm.models.treelet.config import TreeletConfig, Variant
from treelm.models.treelet.model import TreeletModel
from treelm.tasks.counts import build_counts, counts_summary, inspect_counts, merge_counts
from treelm.tasks.treelet_counts import (
    build_treelet_counts,
    holds_treelet_counts,
    inspect_treelet_counts,
    merge_treelet_folders,
    treelet_counts_summary,
)
from treelm.transforms.treelet import transforms_without

#: Words in an n-gram unless another order is asked for.
_ORDER = 5
_VOCABULARY = "Vocabulary file. Counts to be merged need the same vocabulary, or none."

counts = command_group(
    "counts",
    "Count n-grams or treelets, and merge the counts of several machines.",
    "treelm counts build --text part1.txt --order 5 -o part1.counts",
)


@Parameter(name="*", group=Group("Options for counting treelets", sort_key=30))
@dataclass(frozen=True, kw_only=True)
class TreeletOptions:
    """What is counted in trees."""

    treelets: Variant | None = None
    """Count treelets of this variant instead of n-grams."""
    without: Annotated[list[str] | None, Parameter(metavar="TRANSFORM...")] = None
    """Transforms to leave out."""
    untransformed: bool = False
    """Leave all transforms out."""
    temporal: Annotated[
        str | None, Parameter(metavar="FILE", show_default="collected from the trees")
    ] = None
    """Lexicon of temporal nouns, or a treebank with function tags. Counts to be merged need the
    same one."""
    mark_tags: Annotated[
        list[str] | None, Parameter(metavar="TAG...", show_default="found in the trees")
    ] = None
    """Tags that are also labels of phrases and must be told apart. Finding them means counting the
    trees twice. Counts to be merged need the same ones."""

    def config(self) -> TreeletConfig:
        """Return how treelets are counted."""
        transforms: tuple[str, ...] | None = None
        if self.untransformed:
            transforms = ()
        elif self.without is not None:
            transforms = transforms_without(self.without)
        config = TreeletModel.make_config(
            {
                "variant": self.treelets,
                "transforms": transforms,
                "marked_tags": sorted(self.mark_tags or ()),
            }
        )
        assert isinstance(config, TreeletConfig)  # what a treelet model makes of options
        return config


@counts.command(
    help_epilogue=example_line("treelm counts build --text part1.txt --order 5 -o part1.counts")
)
def build(
    *,
    text: Files | None = None,
    trees: Files | None = None,
    output: NewFolder,
    order: Annotated[
        int | None, between(1, LARGEST_ORDER), Parameter(show_default=str(_ORDER))
    ] = None,
    vocabulary: Annotated[
        VocabularyFile, Parameter(help=_VOCABULARY, show_default="all words of the text")
    ] = None,
    json: AsJson = False,
    treelets: TreeletOptions = TreeletOptions(),
    memory: MemoryOptions = MemoryOptions(),
    reading: TreeOptions = TreeOptions(),
    engine: EngineOptions = EngineOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Count the n-grams of a text, or the treelets of trees.

    Parts of a text can be counted on different machines and merged. `treelm train ngram --counts`
    and `treelm train treelet --counts` make models of the counts.

    With --engine, other processes or machines count pieces of a text, or the treelets of pieces of
    trees, and their counts are merged: the result is the same. Counts of pieces are kept beside the
    output meanwhile, or in the folder that --temporary names, which all machines must see.

    Args:
        text: Files of tokenized text, one sentence per line.
        trees: Files of trees, whose words are the text; give either text or trees.
        order: Words in an n-gram.
    """
    if treelets.treelets is None:
        if treelets != TreeletOptions():
            raise UsageError(
                "--without, --untransformed, --temporal and --mark-tags go with --treelets."
            )
        if trees is not None and engine.is_given:
            raise UsageError(
                "--engine counts --text, or the treelets of --trees; the words of trees are "
                "counted by one process."
            )
        with engine.executor(reading) as workers:
            made = build_counts(
                corpus_of(text, trees, reading, common),
                output,
                _ORDER if order is None else order,
                vocabulary=vocabulary,
                threads=engine.threads(reading),
                memory=memory.limit(output),
                executor=workers,
                progress=common.progress,
            )
        write_record(counts_summary(made), as_json=json)
        return
    if text is not None or trees is None or order is not None:
        raise UsageError("--treelets needs --trees and cannot be combined with --text or --order.")

    with engine.executor(reading) as workers:
        counted = build_treelet_counts(
            reading.corpus(trees),
            output,
            treelets.config(),
            vocabulary=vocabulary,
            temporal=treelets.temporal,
            settle=settler(common),
            threads=engine.threads(reading),
            memory=memory.limit(output),
            executor=workers,
            progress=common.progress,
        )
    write_record(treelet_counts_summary(counted), as_json=json)


@counts.command(help_epilogue=example_line("treelm counts merge a.counts b.counts -o all.counts"))
def merge(
    *folders: Folder,
    output: NewFolder,
    json: AsJson = False,
    memory: MemoryOptions = MemoryOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Merge counts as if their texts had been counted together.

    Counts that know all words of their own texts become counts that know the words of all texts.

    Args:
        folders: Folders of counts, all of one order or of one variant.
    """
    del common
    limit = memory.limit(output)
    if holds_treelet_counts(folders):
        treelets = merge_treelet_folders(
            folders, output, threads=threads.thread_count, memory=limit
        )
        write_record(treelet_counts_summary(treelets), as_json=json)
        return
    merged = merge_counts(folders, output, threads=threads.thread_count, memory=limit)
    write_record(counts_summary(merged), as_json=json)


@counts.command(help_epilogue=example_line("treelm counts inspect all.counts --json"))
def inspect(
    folder: Folder,
    /,
    *,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Show what was counted, and how many events of every level occur once, twice, and so on.

    Args:
        folder: Folder of counts.
    """
    del common
    inspected = inspect_treelet_counts if holds_treelet_counts([folder]) else inspect_counts
    write_record(inspected(folder), as_json=json)
