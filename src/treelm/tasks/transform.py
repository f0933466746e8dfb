"""Transforming files of trees, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator

from treelm import _native
from treelm.corpus.brackets import (
    KEPT_PROBLEMS,
    OnError,
    Problem,
    ReadOptions,
    ReadReport,
    read_packed,
    rewrite_brackets,
)
from treelm.corpus.files import Source, source_name
from treelm.errors import CorpusFormatError
from treelm.parallel.progress import SILENT, Progress
from treelm.transforms.clean import Clean
from treelm.transforms.transform import Pipeline
from treelm.transforms.treelet import Treelet
from treelm.trees.profile import load_profile


def transform_brackets(
    source: Source,
    pipeline: Pipeline,
    options: ReadOptions,
    *,
    undo: bool = False,
    on_error: OnError = "raise",
    report: ReadReport | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
    line_buffered: bool = False,
) -> Iterator[bytes]:
    """Yield the trees of a file after a pipeline as brackets, one per line, many lines at a time.

    Args:
        source: File name, or ``-``.
        pipeline: Applied to each tree after it was read with `options`.
        options: How brackets are read; with `undo` give options that keep labels whole.
        undo: Run the pipeline backwards.
        on_error: ``raise`` at the first malformed tree, or ``skip`` and report it.
        report: Filled with counts and problems.
        threads: Number of threads.
        progress: Called with the number of bytes read.
        line_buffered: Pass on every tree at once.
    """
    report = ReadReport() if report is None else report
    recipe = None if undo else _kernel_recipe(pipeline, options)
    if recipe is not None:
        yield from rewrite_brackets(
            source,
            recipe,
            on_error=on_error,
            report=report,
            threads=threads,
            progress=progress,
            line_buffered=line_buffered,
        )
        return
    profile = load_profile(options.profile).native
    name = source_name(source)
    rewrite = pipeline.undo if undo else pipeline.apply
    for batch in read_packed(
        source,
        options,
        on_error=on_error,
        report=report,
        threads=threads,
        progress=progress,
        line_buffered=line_buffered,
    ):
        lines: list[str] = []
        trees = batch.trees(batch.native.find_heads(profile))
        for tree, ordinal, line in zip(trees, batch.ordinal, batch.line, strict=True):
            try:
                lines.append(f"{rewrite(tree)}\n")
            except CorpusFormatError as error:
                place = f"{name}:{line}: tree {ordinal}: "
                if on_error == "raise":
                    raise CorpusFormatError(
                        f"{place}{error}", code=error.code, path=name, line=int(line)
                    ) from error
                sentence = str(error).partition("\n")[0]
                _note_failure(
                    report, Problem(error.code, name, int(ordinal), int(line), 0, "", sentence)
                )
        if lines:
            yield "".join(lines).encode()


def _kernel_recipe(pipeline: Pipeline, options: ReadOptions) -> _native.TreeRecipe | None:
    """Return one recipe that reads and transforms in the kernel, if the pipeline allows it."""
    if not pipeline.steps:
        return options.recipe()
    step = pipeline.steps[0]
    if len(pipeline.steps) == 1 and isinstance(step, Clean) and options.strip:
        return options.recipe()
    if len(pipeline.steps) == 1 and isinstance(step, Treelet):
        return step.recipe_with(options)
    return None


def _note_failure(report: ReadReport, problem: Problem) -> None:
    report.trees -= 1
    report.failed += 1
    if len(report.problems) < KEPT_PROBLEMS:
        report.problems.append(problem)
