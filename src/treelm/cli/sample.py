"""`treelm sample`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import ModelPath, SearchOptions, at_once
from treelm.cli.options import CommonOptions, OutputFile
from treelm.corpus.files import write_atomically
from treelm.errors import UsageError
from treelm.models.interface.abilities import has_ability
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.registry import load
from treelm.tasks.sample import SamplingReport, sample_sentences


def sample(
    *,
    model: ModelPath,
    count: Annotated[int, Parameter(name=["--count", "-n"])] = 1,
    seed: int = 0,
    max_words: int = 1000,
    min_words: int = 0,
    reject: bool = False,
    with_trees: bool = False,
    output: OutputFile = "-",
    search: SearchOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Draw sentences from a model, one a line.

    Args:
        model: Model folder.
        count: Number of sentences.
        seed: Sentence i depends on the seed and on i alone.
        max_words: Cut a sentence after so many words; a note says how many were cut.
        min_words: Leave out sentences with fewer words, and draw others instead.
        reject: Leave out longer sentences too instead of cutting them; models of trees always do.
        with_trees: Write a tab and the tree after each sentence; for models of trees.
        output: File to write; standard output by default.
        search: Search.
        common: Common.
    """
    common = common or CommonOptions()
    flush = at_once(output, line_buffered=False)
    loaded = (search or SearchOptions()).apply(load(model))
    if with_trees and not has_ability(loaded, TreeScorer):
        raise UsageError(f"{loaded.system} models draw no trees; leave --with-trees out.")
    report = SamplingReport()
    drawn = sample_sentences(
        loaded,
        count,
        seed=seed,
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
            f"{report.drawn} sentences were drawn; {report.too_long} of more than {max_words} "
            f"words and {report.too_short} of fewer than {min_words} were left out."
        )
