"""`treelm transform`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from treelm.cli.options import CommonOptions, InputFiles, OutputFile, TreeOptions, settle_reading
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
    pipeline: str = "treelet",
    undo: bool = False,
    without: list[str] | None = None,
    temporal: Path | None = None,
    vp_label: Literal["lowest", "highest"] = "lowest",
    direction: Literal["right", "left", "head"] = "right",
    horizontal_order: int | None = None,
    vertical_order: int = 2,
    output: OutputFile = "-",
    line_buffered: bool = False,
    trees: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Rewrite bracketed trees, one a line.

    Args:
        files: Files of trees; standard input if none is given or for `-`.
        pipeline: clean, treelet, binarize, unary-chains, markovize, right-corner or lexicalize.
        undo: Run the pipeline backwards, on trees it has made.
        without: Treelet transforms to leave out, such as temporal_nouns vp_flattening.
        temporal: Temporal nouns: a saved lexicon, or a treebank with function tags (.mrg). Default:
            those of the input files.
        vp_label: Whose annotation a flattened verb phrase keeps.
        direction: Way in which binarization branches.
        horizontal_order: Sisters that binarized labels remember; default: the pipeline's own.
        vertical_order: Ancestors that Markovized labels remember, the node itself included.
        output: File to write; standard output by default.
        line_buffered: Write every tree at once, for use in pipes.
        trees: Reading.
        common: Common.
    """
    trees, common = trees or TreeOptions(), common or CommonOptions()
    sources = files or ["-"]
    if without and pipeline != "treelet":
        raise UsageError("--without leaves out treelet transforms; use it with them only.")
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
