"""Lines of text in batches, with the line in every error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from treelm.corpus.files import Source, source_name
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, VocabularyError

Result = TypeVar("Result")


def worked_batches(  # noqa: PLR0917 (all of them are needed)
    vocabulary: Vocabulary | None,
    lines: Iterable[str],
    size: int,
    work: Callable[[list[tuple[str, ...]]], Result],
    source: Source,
    first_line: int,
) -> Iterator[tuple[int, list[tuple[str, ...]], Result]]:
    """Yield the number of the first line, the sentences and the result of work, batch by batch.

    Args:
        vocabulary: That of the model that works, to find out which line it refuses.
        lines: Tokenized sentences, one per line.
        size: Lines in a batch.
        work: What is done with a batch.
        source: Where the lines come from, for messages.
        first_line: Number of the first line.

    Raises:
        CorpusFormatError: with the line, for what is no sentence of words.
    """
    rest = iter(lines)
    while batch := [split_words(line) for line in islice(rest, size)]:
        try:
            found = work(batch)
        except VocabularyError as error:
            raise _with_line(error, vocabulary, batch, first_line - 1, source) from error
        except TooLongSentence as error:
            raise error.in_line(source_name(source), first_line + error.place) from error
        yield first_line, batch, found
        first_line += len(batch)


def _with_line(
    error: VocabularyError,
    vocabulary: Vocabulary | None,
    batch: Sequence[Sequence[str]],
    done: int,
    source: Source,
) -> CorpusFormatError | VocabularyError:
    """Return the error with the first line of a batch that gives it."""
    name = source_name(source)
    if vocabulary is None:
        return error
    for number, words in enumerate(batch, done + 1):
        try:
            vocabulary.encode(words)
        except VocabularyError as found:
            return CorpusFormatError(
                f"{name}:{number}: {found}", code=found.code, path=name, line=number
            )
    return error
