"""Texts on which models are measured: read once, hashed, and kept separate from training."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import hashed_blocks
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, can_be_read_twice, lines_of, source_name
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, UsageError, flag
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.training_sentences import warn_of_overlap
from treelm.tasks.raw_text import RawText


@dataclass(frozen=True, eq=False)
class MeasuredText:
    """Sentences of a file.

    Args:
        sentences: Their words.
        lines: The line of each, from 1.
        documents: The number of each sentence's document; a blank line ends one.
        name: What messages call the file.
        sha256: Hash of the decompressed bytes, as in a corpus fingerprint; None without a file.
        word_counts: Number of words of each sentence, as white space separates them, if the
            sentences were tokenized after that; None where its words are its tokens.
    """

    sentences: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    documents: npt.NDArray[np.int64]
    name: str
    sha256: str | None = None
    word_counts: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of words of each sentence."""
        counts = map(len, self.sentences) if self.word_counts is None else self.word_counts
        return np.fromiter(counts, np.int64, len(self.sentences))


def read_measured_text(
    source: Source, *, tokenizing: bool = False, tokenize: Tokenizing = tokenize_words
) -> MeasuredText:
    """Return the sentences of a file of text, one per line.

    Args:
        source: The file.
        tokenizing: Whether it is raw text, which is tokenized first.
        tokenize: What takes sentences of raw text apart.

    Raises:
        InputFileError: if it cannot be read.
        CorpusFormatError: ``E_NO_DATA`` if it has no sentence, ``E_ENCODING`` if it is not UTF-8.
    """
    digest = hashlib.sha256()
    wanted = Wanted.RAW_TEXT if tokenizing else Wanted.TEXT
    lines = list(lines_of(hashed_blocks(source, digest, wanted), source))
    if not tokenizing:
        return text_of_lines(lines, source, digest.hexdigest())
    raw = RawText(tokenize)
    text = text_of_lines(raw.tokenized(lines), source, digest.hexdigest())
    return replace(text, word_counts=raw.word_counts())


def text_of_lines(lines: Iterable[str], source: Source, sha256: str | None = None) -> MeasuredText:
    """Return the sentences of lines that were already read."""
    name = source_name(source)
    sentences: list[tuple[str, ...]] = []
    places: list[int] = []
    documents: list[int] = []
    document, starts = -1, True
    for number, line in enumerate(lines, 1):
        words = split_words(line)
        if not words:
            starts = True
            continue
        document += starts
        starts = False
        sentences.append(words)
        places.append(number)
        documents.append(document)
    if not sentences:
        raise CorpusFormatError(
            f"{name}: contains no sentence. Is it the right file?", code="E_NO_DATA", path=name
        )
    return MeasuredText(
        tuple(sentences), tuple(places), np.array(documents, dtype=np.int64), name, sha256
    )


def check_not_trained_on(model: LanguageModel, texts: Sequence[MeasuredText]) -> None:
    """Refuse to evaluate a model on a file that it was trained on, and warn of single sentences.

    Raises:
        UsageError: ``E_TEST_IN_TRAINING``, naming the file.
    """
    _check_not_among(
        {record.sha256 for record in model.corpora}, [(text.name, text.sha256) for text in texts]
    )
    for text in texts:
        warn_of_overlap(model.training_sentences, text.sentences, text.name)


def _check_not_among(seen: Collection[str], texts: Iterable[tuple[str, str | None]]) -> None:
    for name, sha256 in texts:
        if sha256 in seen:
            raise UsageError(
                f"{name}: the model was trained on this very text, so it says nothing about "
                "how good the model is. Evaluate it on other text, or use "
                f"{flag('allow_overlap')}.",
                code="E_TEST_IN_TRAINING",
            )


def check_files_not_trained_on(model: LanguageModel, files: Sequence[Source]) -> None:
    """Refuse to evaluate a model on files that it was trained on: all of them, or one.

    Standard input and pipes can be read only once, so they are not looked at.

    Raises:
        UsageError: ``E_TEST_IN_TRAINING``, naming the file.
        InputFileError: if a file cannot be read.
    """
    if not model.corpora:
        return
    known = [file for file in files if can_be_read_twice(file)]
    groups: list[Sequence[Source]] = [[file] for file in known]
    if 1 < len(known) == len(files):  # several files of one training have one checksum
        groups.append(known)
    _check_not_among(
        {record.sha256 for record in model.corpora},
        ((" ".join(map(source_name, group)), _sha256_of(group)) for group in groups),
    )


def _sha256_of(files: Sequence[Source]) -> str:
    """Return the checksum of some files, as the fingerprint of a corpus has it."""
    digest = hashlib.sha256()
    for file in files:
        for _ in hashed_blocks(file, digest):
            pass
    return digest.hexdigest()


def check_apart(
    tuning: Iterable[tuple[str, str | None]], testing: Iterable[tuple[str, str | None]]
) -> None:
    """Refuse a threshold that is tuned on the test set.

    Args:
        tuning: Names and checksums of the tuning files.
        testing: Those of the test files.

    Raises:
        UsageError: ``E_TUNED_ON_TEST``, naming the files.
    """
    tuned = {checksum: name for name, checksum in tuning if checksum is not None}
    for name, checksum in testing:
        if checksum in tuned:
            raise UsageError(
                f"{tuned[checksum]} and {name} have the same content: a threshold must be tuned on "
                "sentences that are not in the test set.",
                code="E_TUNED_ON_TEST",
            )
