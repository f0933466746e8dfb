"""`treelm sample`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import ModelPath, SearchOptions, at_once
from treelm.cli.options import CommonOptions, Count, OutputFile, Seed
from treelm.cli.ranges import at_least
from treelm.corpus.files import write_atomically
from treelm.errors import UsageError
from treelm.models.interface.abilities import has_ability
from treelm.models.interface.model import Task
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.registry import load
from treelm.seeds import given_or_fresh
from treelm.tasks.sample import SamplingReport, sample_sentences


def sample(
    *,
    model: ModelPath,
    count: Count = 1,
    seed: Annotated[Seed | None, Parameter(show_default="a new one, reported")] = None,
    max_words: Annotated[int, at_least(1)] = 1000,
    min_words: Annotated[int, at_least(0)] = 0,
    reject: bool = False,
    with_trees: bool = False,
    output: OutputFile = "-",
    search: SearchOptions = SearchOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Sample sentences from a model, one per line.

    Args:
        count: Number of sentences.
        seed: Sentence i depends only on the seed and i. Without a seed every run differs.
        max_words: Cut sentences after this many words; a note says how many were cut.
        min_words: Replace sentences with fewer words by others.
        reject: Replace longer sentences too, instead of cutting them. Models of trees always do.
        with_trees: Models of trees: write a tab and the tree after each sentence.
    """
    flush = at_once(output, line_buffered=False)
    loaded = search.apply(load(model))
    if with_trees and not has_ability(loaded, TreeScorer):
        raise UsageError(
            f"this {loaded.system} model samples no trees: --with-trees cannot be used with it."
        )
    report = SamplingReport()
    loaded.require(Task.SAMPLE)
    chosen = given_or_fresh(seed)
    if seed is None:
        common.note(f"sampling with --seed {chosen}.")
    drawn = sample_sentences(
        loaded,
        count,
        seed=chosen,
        max_words=max_words,
        min_words=min_words,
        reject=reject,
        report=report,
    )
    with write_atomically(output) as out:
        for sentence in drawn:
            tree = f"\t{sentence.tree}" if with_trees else ""
            out.write(f"{' '.join(sentence.words)}{tree}\n".encode())
            if flush:
                out.flush()
    if report.cut:
        common.note(f"{report.cut} of {count} sentences were cut after {max_words} words.")
    if report.too_short or report.too_long:
        common.note(
            f"{report.drawn} sentences were sampled; {report.too_long} of more than {max_words} "
            f"words and {report.too_short} of fewer than {min_words} were left out."
        )
