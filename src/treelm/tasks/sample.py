"""Sentences drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator

from treelm.errors import UnsupportedTask, UsageError
from treelm.models.incremental import LONGEST_SAMPLE, IncrementalModel
from treelm.models.model import LanguageModel, Task
from treelm.models.scores import Sample

#: Sentences that are drawn at once.
SAMPLES_AT_ONCE = 1024


def sample_sentences(
    model: LanguageModel, count: int, *, seed: int = 0, max_words: int = LONGEST_SAMPLE
) -> Iterator[Sample]:
    """Yield sentences drawn from a model.

    Args:
        model: A model that samples.
        count: How many.
        seed: Sentence i depends on the seed and on i alone.
        max_words: A sentence is cut after so many words and marked.

    Raises:
        UsageError: if a number is negative.
    """
    model.require(Task.SAMPLE)
    if not isinstance(model, IncrementalModel):
        raise UnsupportedTask(f"a model of the system {model.system} does not sample.")
    if count < 0 or max_words < 1 or seed < 0:
        raise UsageError("--count and --seed must be 0 or more, --max-words 1 or more.")
    for first in range(0, count, SAMPLES_AT_ONCE):
        size = min(SAMPLES_AT_ONCE, count - first)
        yield from model.sample(size, seed=seed, first=first, max_words=max_words)
