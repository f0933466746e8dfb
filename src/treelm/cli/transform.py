"""`treelm transform`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from treelm.cli.options import (
    CommonOptions,
    InputFiles,
    LineBuffered,
    OutputFile,
    TreeOptions,
    settle_reading,
)
from treelm.cli.ranges import at_least
from treelm.cli.terminal import is_terminal
from treelm.corpus.brackets import ReadReport
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import UsageError
from treelm.tasks.transform import transform_brackets
from treelm.transforms.pipelines import PipelineOptions, named_pipeline
from treelm.transforms.temporal_lexicon import find_temporal_words


def transform(
    files: InputFiles = None,
    /,
    *,
    pipeline: Annotated[str, Parameter(metavar="PIPELINE")] = "treelet",
    undo: bool = False,
    without: Annotated[list[str] | None, Parameter(metavar="TRANSFORM...")] = None,
    temporal: Annotated[
        Path | None, Parameter(metavar="FILE", show_default="those of the input files")
    ] = None,
    vp_label: Literal["lowest", "highest"] = "lowest",
    direction: Literal["right", "left", "head"] = "right",
    horizontal_order: Annotated[
        int | None, at_least(0), Parameter(show_default="that of the pipeline")
    ] = None,
    vertical_order: Annotated[int, at_least(1)] = 2,
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    trees: TreeOptions = TreeOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Rewrite bracketed trees, one per line.

    Args:
        files: Files of trees, or of parses (.forest), whose best trees are taken.
        pipeline: clean, treelet, binarize, unary-chains, markovize, right-corner or lexicalize.
        undo: Run the pipeline backwards, on trees it has made. Labels are then read whole.
        without: Treelet transforms to leave out, such as temporal_nouns vp_flattening.
        temporal: Temporal nouns: a saved lexicon, or a treebank with function tags (.mrg). None are
            collected from standard input, which cannot be read twice.
        vp_label: Whose annotation a flattened verb phrase keeps.
        direction: Direction in which binarization branches.
        horizontal_order: Number of sisters that binarized labels remember.
        vertical_order: Number of ancestors that Markovized labels remember, the node itself
            included.
    """
    sources = files or ["-"]
    if without and pipeline != "treelet":
        raise UsageError("--without leaves out treelet transforms: it needs --pipeline treelet.")
    wants_temporal = pipeline == "treelet" and "temporal_nouns" not in (without or [])
    options = PipelineOptions(
        profile=trees.profile,
        temporal=find_temporal_words(sources, temporal, trees.profile, threads=trees.thread_count)
        if wants_temporal
        else frozenset(),
        without=frozenset(without or ()),
        vp_label=vp_label,
        direction=direction,
        horizontal_order=horizontal_order,
        vertical_order=vertical_order,
    )
    steps = named_pipeline(pipeline, options)
    with write_atomically(output) as out:
        for source in sources:
            report = ReadReport()
            for text in transform_brackets(
                source,
                steps,
                trees.read_options(strip=not undo, normalize_root=not undo),
                undo=undo,
                on_error=trees.on_error,
                report=report,
                threads=trees.thread_count,
                progress=common.progress,
                line_buffered=line_buffered or (output == "-" and is_terminal(sys.stdout)),
            ):
                out.write(text)
                if line_buffered:
                    out.flush()
            settle_reading(report, common, source_name(source))
