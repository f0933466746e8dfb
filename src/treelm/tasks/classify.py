"""Sentences called good or bad by a classifier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

from treelm.corpus.corpus import split_words
from treelm.errors import UnsupportedTask
from treelm.models.classifier import Classifier
from treelm.models.model import LanguageModel, Task


class Decision(NamedTuple):
    """What a classifier says about a sentence."""

    label: Literal["good", "bad"]
    margin: float
    """Above zero for good sentences; minus infinity for one that it cannot analyse."""
    probability: float
    """That the sentence is good."""


def classify_lines(
    model: LanguageModel, lines: Iterable[str], *, batch: int = 1024, threads: int = 1
) -> Iterator[Decision | None]:
    """Yield what a classifier says about each line, None for one without words.

    Args:
        model: A classifier.
        lines: Tokenized sentences.
        batch: Sentences that are looked at together.
        threads: Kernel threads; results do not depend on it.

    Raises:
        UnsupportedTask: if the model is no classifier.
    """
    model.require(Task.CLASSIFY)
    if not isinstance(model, Classifier):
        raise UnsupportedTask(f"a model of the system {model.system} is no classifier.")
    rest = iter(lines)
    while block := [split_words(line) for line in islice(rest, batch)]:
        given = [words for words in block if words]
        margins = model.margins(given, threads=threads)
        pairs = zip(margins.tolist(), model.probabilities(margins).tolist(), strict=True)
        for words in block:
            if not words:
                yield None
                continue
            margin, probability = next(pairs)
            yield Decision("good" if margin > 0 else "bad", margin, probability)
