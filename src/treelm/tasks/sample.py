"""Sampling sentences from a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from treelm.errors import UsageError, option
from treelm.models.interface.abilities import has_ability
from treelm.models.interface.model import LONGEST_SAMPLE, LanguageModel, Task
from treelm.models.interface.scores import Sample
from treelm.models.interface.tree_model import TreeScorer

#: Number of sentences sampled at once.
SAMPLES_AT_ONCE = 1024

_REDRAWN_AT_ONCE = 64

#: Number of samples per wanted sentence before lengths are considered impossible.
_MOST_DRAWS = 1000


@dataclass(slots=True)
class SamplingReport:
    """Counts of the sampled sentences; filled while they are yielded."""

    drawn: int = 0
    """All of them."""
    cut: int = 0
    """Cut at the largest number of words."""
    too_short: int = 0
    """Left out: fewer words than wanted."""
    too_long: int = 0
    """Left out: more words than wanted."""


def sample_sentences(
    model: LanguageModel,
    count: int,
    *,
    seed: int = 0,
    max_words: int = LONGEST_SAMPLE,
    min_words: int = 0,
    reject: bool = False,
    report: SamplingReport | None = None,
) -> Iterator[Sample]:
    """Yield sentences sampled from a model.

    Args:
        model: A model that samples.
        count: Number of sentences.
        seed: Sentence i depends on the seed and on i alone.
        max_words: A longer sentence is cut after this many words and marked.
        min_words: Sentences with fewer words are left out, and others sampled instead.
        reject: Leave out longer sentences instead of cutting them. Trees cannot be cut, so tree
            models always do this.
        report: Filled with how many were left out.

    Raises:
        UsageError: if a number is negative, or hardly any sentence has the wanted length.
    """
    model.require(Task.SAMPLE)
    if count < 0 or max_words < 1 or seed < 0:
        raise UsageError(
            f"{option('count')} and {option('seed')} must be 0 or more, "
            f"{option('max_words')} 1 or more."
        )
    if min_words > max_words:
        raise UsageError(f"no sentence has {min_words} words or more and {max_words} or fewer.")
    report = SamplingReport() if report is None else report
    has_trees = has_ability(model, TreeScorer)
    given = 0
    while given < count:
        if report.drawn > _MOST_DRAWS * count:
            raise UsageError(
                f"of {report.drawn} sentences, {report.too_short} had fewer than {min_words} words "
                f"and {report.too_long} more than {max_words}. Choose lengths that occur."
            )
        # After some were left out, more are sampled than are missing: the next may be left out too.
        least = 1 if report.drawn == given else _REDRAWN_AT_ONCE
        size = min(SAMPLES_AT_ONCE, max(least, count - given))
        for sample in model.sample(size, seed=seed, first=report.drawn, max_words=max_words):
            if given == count:
                break
            report.drawn += 1
            lost = not sample.complete
            if lost and (reject or has_trees):
                report.too_long += 1
            elif len(sample.words) < min_words:
                report.too_short += 1
            else:
                report.cut += lost
                given += 1
                yield sample
