"""Transforming files of trees, in constant memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

from treelm import _native
from treelm.corpus.brackets import (
    KEPT_PROBLEMS,
    OnError,
    Problem,
    ReadOptions,
    ReadReport,
    looks_like_brackets,
    read_packed,
    rewrite_brackets,
)
from treelm.corpus.files import Source, can_be_read_twice, first_block, source_name
from treelm.errors import CorpusFormatError, TreelmWarning
from treelm.parallel.progress import SILENT, Progress
from treelm.transforms.clean import Clean
from treelm.transforms.temporal_lexicon import TemporalLexicon
from treelm.transforms.transform import Pipeline
from treelm.transforms.treelet import Treelet
from treelm.trees.profile import ProfileSource, load_profile


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


def find_temporal_words(
    files: Iterable[Source], lexicon: Source | None, profile: ProfileSource, *, threads: int = 1
) -> frozenset[str]:
    """Return the temporal nouns for T1.

    Args:
        files: The trees about to be transformed; used when they have function tags.
        lexicon: A saved lexicon, or a treebank with function tags; takes precedence.
        profile: Language profile.
        threads: Number of threads.
    """
    if lexicon is not None and not looks_like_brackets(first_block(lexicon)):
        return TemporalLexicon.load(lexicon).words()
    given = (
        [lexicon] if lexicon is not None else [file for file in files if can_be_read_twice(file)]
    )
    if not load_profile(profile).treelet.temporal_tags:
        return frozenset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # the actual reading repeats it
        words = TemporalLexicon.collect(given, profile, on_error="skip", threads=threads).words()
    if not words:
        warnings.warn(
            "no temporal nouns are known, so T1 (temporal_nouns) changes nothing. They are "
            "collected from files with function tags (NP-TMP), never from standard input; give "
            "--temporal with a lexicon or such a treebank.",
            TreelmWarning,
            stacklevel=2,
        )
    return words
