"""How long a sentence may be: one limit for each model, one error, checked before the work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus
from treelm.errors import CorpusFormatError, EstimationError, spelled


class TooLongSentence(EstimationError):
    """A sentence of more words than a model reads.

    Args:
        place: Its place among those given together, counted from 0.
        words: Number of its words.
        reason: What it is too long for, and what may be done about it, in sentences.
    """

    default_code = "E_TOO_LONG"

    def __init__(self, place: int, words: int, reason: str) -> None:
        super().__init__(f"sentence {place + 1} of those given has {words} words: {reason}")
        self.place = place
        self.words = words
        self.reason = reason

    def __reduce__(self) -> tuple[type[Self], tuple[int, int, str]]:
        return type(self), (self.place, self.words, self.reason)

    def after(self, sentences: int) -> TooLongSentence:
        """Return the error with its place among more sentences, some of which came before."""
        return TooLongSentence(self.place + sentences, self.words, self.reason)

    def in_line(self, name: str, line: int) -> CorpusFormatError:
        """Return the error for a sentence of a file.

        Args:
            name: The file.
            line: Line of the sentence, counted from 1.
        """
        return CorpusFormatError(
            f"{name}:{line}: this sentence has {self.words} words: {self.reason}",
            code=self.code,
            path=name,
            line=line,
        )


def _more(words: int) -> str:
    """Return how a reader of the message asks for longer sentences."""
    return spelled(command_line=f"--max-words {words}", python=f"`model.with_max_words({words})`")


def check_lengths(lengths: Iterable[int], limit: int | None, system: str) -> None:
    """Refuse sentences that a model would take far too long for.

    Args:
        lengths: Words of each sentence.
        limit: Most words; None for any number.
        system: System of the model, for the message.

    Raises:
        TooLongSentence: naming the first such sentence.

    Examples:
        >>> try:
        ...     check_lengths([3, 5], 4, "lsvm")
        ... except TooLongSentence as error:
        ...     print(error.code, error.place, error.words)
        E_TOO_LONG 1 5
    """
    if limit is None:
        return
    for place, words in enumerate(lengths):
        if words > limit:
            raise TooLongSentence(
                place,
                words,
                f"this {system} model reads at most {limit}. Split it, or raise the limit with "
                f"{_more(words)}, which may take minutes and gigabytes.",
            )


def check_starts(starts: npt.NDArray[np.unsignedinteger], limit: int | None, system: str) -> None:
    """Do the same for sentences given by where each begins, and the total."""
    if limit is not None:
        lengths = np.diff(starts.astype(np.int64))
        if len(lengths) and int(lengths.max()) > limit:
            check_lengths(lengths.tolist(), limit, system)


def check_charts(values: npt.NDArray[np.float64], lengths: Iterable[int]) -> None:
    """Refuse scores that are NaN because a chart became too large.

    Raises:
        TooLongSentence: naming the first such sentence.
    """
    wrong = np.flatnonzero(np.isnan(values))
    if len(wrong):
        place = int(wrong[0])
        words = list(lengths)[place]
        pruned = spelled(command_line="--pruning", python="`model.pruned()`")
        raise TooLongSentence(
            place,
            words,
            "the grammar would need minutes for its exact score, or more memory than is sensible. "
            f"Split it, score with {pruned}, or ask for it with {_more(words)}.",
        )


@contextmanager
def after_sentences(count: int) -> Iterator[None]:
    """Give the error for a sentence its place among all, where some were done before.

    Args:
        count: How many.
    """
    try:
        yield
    except TooLongSentence as error:
        raise error.after(count) from error


@contextmanager
def lines_of_sentences(corpus: TextCorpus) -> Iterator[None]:
    """Give the error for a sentence of a text its file and line, where the text can be read again.

    Args:
        corpus: The text; places of sentences are those among all of its sentences.
    """
    try:
        yield
    except TooLongSentence as error:
        found = corpus.place_of(error.place)
        if found is None:
            raise
        raise error.in_line(*found) from error
