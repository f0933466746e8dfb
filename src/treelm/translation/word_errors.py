"""Word errors: the fewest words to put in, leave out or replace that make one text the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.words import split_words

#: Columns of the statistics: errors, and words of the reference.
COLUMNS = 2

Statistics = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class WordErrors(NamedTuple):
    """Errors of a text.

    Args:
        substitutions: Words that are others.
        insertions: Words too many.
        deletions: Words too few.
        words: Words of the reference.
        wrong_sentences: Sentences with an error.
        sentences: All sentences.
    """

    substitutions: int = 0
    insertions: int = 0
    deletions: int = 0
    words: int = 0
    wrong_sentences: int = 0
    sentences: int = 0

    @property
    def errors(self) -> int:
        """All errors."""
        return self.substitutions + self.insertions + self.deletions

    def added(self, other: WordErrors) -> WordErrors:
        """Return the errors of both texts together."""
        return WordErrors(*map(sum, zip(self, other, strict=True)))


def word_errors(reference: str, hypothesis: str) -> WordErrors:
    """Return the errors of a sentence; of several ways to count them that with most substitutions.

    Args:
        reference: What was said, words separated by white space.
        hypothesis: What was recognised.

    Examples:
        >>> word_errors("the cat sat", "a cat sat down")[:4]
        (1, 1, 0, 3)
    """
    right, found = split_words(reference), split_words(hypothesis)
    # Of each cell: errors, then insertions and deletions, the fewest first.
    before = [(place, place, 0) for place in range(len(found) + 1)]
    for number, word in enumerate(right, 1):
        row = [(number, 0, number)]
        for place, other in enumerate(found):
            errors, inserted, deleted = before[place]
            cells = [(errors + (word != other), inserted, deleted)]
            errors, inserted, deleted = before[place + 1]
            cells.append((errors + 1, inserted, deleted + 1))
            errors, inserted, deleted = row[place]
            cells.append((errors + 1, inserted + 1, deleted))
            row.append(min(cells, key=lambda cell: (cell[0], cell[1] + cell[2])))
        before = row
    errors, inserted, deleted = before[-1]
    return WordErrors(
        errors - inserted - deleted, inserted, deleted, len(right), int(errors > 0), 1
    )


def list_errors(hypotheses: Sequence[str], reference: Sequence[str]) -> Statistics:
    """Return errors and reference words of many hypotheses for one sentence, a row each.

    Args:
        hypotheses: Texts whose words are separated by white space.
        reference: Words of the sentence.

    Examples:
        >>> list_errors(["a cat sat down", "the cat"], ["the", "cat", "sat"]).tolist()
        [[2, 3], [1, 3]]
    """
    ids = {word: number for number, word in enumerate(dict.fromkeys(reference))}
    sentences = [[ids.get(word, -1) for word in split_words(text)] for text in hypotheses]
    lengths = np.array([len(each) for each in sentences], dtype=np.int64)
    words = np.full((len(sentences), int(lengths.max(initial=0))), -1, dtype=np.int64)
    for row, each in zip(words, sentences, strict=True):
        row[: len(each)] = each
    places = np.arange(words.shape[1] + 1)
    table = np.tile(places, (len(sentences), 1))
    for word in reference:
        fewest = table + 1
        fewest[:, 1:] = np.minimum(fewest[:, 1:], table[:, :-1] + (words != ids[word]))
        # A word too many may follow any cell to the left.
        table = np.minimum.accumulate(fewest - places, axis=1) + places
    errors = table[np.arange(len(sentences)), lengths]
    return np.stack([errors, np.full(len(sentences), len(reference))], axis=1)
