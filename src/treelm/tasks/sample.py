"""Sentences drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from treelm.errors import UsageError
from treelm.models.interface.abilities import has_ability
from treelm.models.interface.model import LONGEST_SAMPLE, LanguageModel, Task
from treelm.models.interface.scores import Sample
from treelm.models.interface.tree_model import TreeScorer

#: Sentences that are drawn at once.
SAMPLES_AT_ONCE = 1024

_REDRAWN_AT_ONCE = 64

#: So many sentences are drawn for each that is wanted before lengths are called impossible.
_MOST_DRAWS = 1000


@dataclass(slots=True)
class SamplingReport:
    """What became of the sentences that were drawn; filled while they come."""

    drawn: int = 0
    """All of them."""
    cut: int = 0
    """Given out although they were cut at the largest number of words."""
    too_short: int = 0
    """Left out: fewer words than asked for."""
    too_long: int = 0
    """Left out: more words than asked for."""


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
    """Yield sentences drawn from a model.

    Args:
        model: A model that samples.
        count: How many.
        seed: Sentence i depends on the seed and on i alone.
        max_words: A sentence is cut after so many words and marked.
        min_words: Sentences with fewer words are left out, and others drawn instead.
        reject: Leave out longer sentences too instead of cutting them. Trees cannot be cut, so
            models of trees always do this.
        report: Filled with how many were left out.

    Raises:
        UsageError: if a number is negative, or hardly any sentence has such a length.
    """
    model.require(Task.SAMPLE)
    if count < 0 or max_words < 1 or seed < 0:
        raise UsageError("--count and --seed must be 0 or more, --max-words 1 or more.")
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
        # After some were left out, more are drawn than are missing: the next may be left out too.
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
