"""Labelled sentences, good and bad: what classifiers are trained on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import source_name
from treelm.errors import CorpusFormatError, EstimationError, UsageError


@dataclass(frozen=True)
class LabelledSentences:
    """Good and bad sentences, read once and kept.

    Args:
        good: Text of good sentences, as people write them, or its file.
        bad: Text of bad sentences.
    """

    good: TextCorpus
    bad: TextCorpus

    def __post_init__(self) -> None:
        for kind in ("good", "bad"):
            given = getattr(self, kind)
            if isinstance(given, str | os.PathLike):
                object.__setattr__(self, kind, TextCorpus((given,)))
            elif not isinstance(given, TextCorpus):
                raise UsageError(
                    f"the {kind} sentences are {type(given).__name__}; give a file, a TextCorpus, "
                    "or TextCorpus.of_sentences([...]) for sentences in memory."
                )

    @cached_property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """All sentences, the good ones first.

        Raises:
            CorpusFormatError: ``E_EMPTY_SENTENCE`` for a line without words.
            EstimationError: ``E_NO_DATA`` if one of the two classes is empty.
        """
        found: list[tuple[str, ...]] = []
        for corpus, kind in ((self.good, "good"), (self.bad, "bad")):
            before = len(found)
            for number, words in enumerate(corpus, 1):
                if not words:
                    raise CorpusFormatError(
                        f"sentence {number} of the {kind} text has no words, so it cannot be "
                        "classified. Remove empty lines.",
                        code="E_EMPTY_SENTENCE",
                        path=source_name(corpus.paths[0]) if corpus.paths else None,
                    )
                found.append(words)
            if len(found) == before:
                raise EstimationError(
                    f"there are no {kind} sentences; a classifier needs both kinds, in the "
                    "training set and in the tuning set.",
                    code="E_NO_DATA",
                )
        return tuple(found)

    @cached_property
    def labels(self) -> npt.NDArray[np.int8]:
        """1 for good sentences and -1 for bad ones, in the order of `sentences`."""
        number = sum(1 for _ in self.good)
        labels = np.full(len(self.sentences), -1, dtype=np.int8)
        labels[:number] = 1
        return labels
