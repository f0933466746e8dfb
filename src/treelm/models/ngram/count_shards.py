"""Counting the n-grams of a text in pieces, by any number of workers.

Every piece becomes a file of sorted counts, and the counts are merged: a map and a reduce. Ids do
not depend on the pieces, because words are counted first unless the vocabulary is given.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treelm.corpus.corpus import Fingerprint, TextCorpus
from treelm.corpus.encoder import TextPiece, encode_piece, no_words, text_pieces
from treelm.corpus.files import size_if_known
from treelm.corpus.temporary import temporary_folder
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EngineError, EstimationError, InputFileError, option
from treelm.events.counts import EventCounter, EventCounts, Places
from treelm.models.interface.trained_model import corpus_name, corpus_record
from treelm.models.interface.tree_events import has_late_words
from treelm.models.ngram.counts import EVENTS, NgramCounts, count_encoded, largest_ids
from treelm.models.ngram.events import WordSpace
from treelm.parallel.executor import Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.schema import UNIGRAM_COUNTS, read_tensors
from treelm.store.tables import open_tables, write_tables
from treelm.trees.profile import load_profile

#: Bytes of text that a worker counts at a time: some hundred megabytes of its memory.
PIECE_BYTES = 32 << 20


class _PieceWords(NamedTuple):
    """What is in a piece."""

    bytes: int
    sentences: int
    tokens: int
    words: dict[str, int]


@dataclass(frozen=True)
class _CountWords:
    """Counts the words of pieces.

    Args:
        keeps_words: Whether the words are wanted, or only their number.
    """

    keeps_words: bool

    def __call__(self, piece: TextPiece) -> _PieceWords:
        text, encoder = encode_piece(piece)
        words: dict[str, int] = {}
        if self.keeps_words:
            words = dict(zip(encoder.words(), encoder.counts().tolist(), strict=True))
        return _PieceWords(len(piece.data), len(text), len(text.ids), words)


@dataclass(eq=False)
class _Survey:
    """What a first reading has found."""

    sha256: str
    first_sentences: list[int]
    """Number of the first sentence of every piece in the text, counted from 1."""
    sentences: int
    tokens: int
    words: Counter[str]


class _Numbered(NamedTuple):
    """A piece, its number, and that of its first sentence in the text, both counted from 1."""

    number: int
    first_sentence: int
    piece: TextPiece


class _Counted(NamedTuple):
    """A piece whose n-grams were counted into a file."""

    bytes: int
    sentences: int
    tokens: int
    file: Path


@dataclass(frozen=True)
class _CountNgrams:
    """Counts the n-grams of pieces.

    Args:
        order: Length of the n-grams.
        vocabulary: The words to know.
        training: Whether this is the text that the vocabulary was made from.
        threads: Number of threads.
        folder: Where files of counts are made.
    """

    order: int
    vocabulary: Vocabulary
    training: bool
    threads: int
    folder: Path

    def __call__(self, shard: _Numbered) -> _Counted:
        text, _ = encode_piece(
            shard.piece,
            self.vocabulary,
            training=self.training,
            first_sentence=shard.first_sentence,
        )
        events, unigrams = count_encoded(text, self.order, self.vocabulary, threads=self.threads)
        if not self.folder.is_dir():
            raise _not_shared(self.folder)
        file = self.folder / f"{shard.number}.counts"
        # Whoever does a shard a second time leaves the same file.
        write_tables(file, {**events.to_tensors(EVENTS), UNIGRAM_COUNTS.name: unigrams})
        return _Counted(len(shard.piece.data), len(text), len(text.ids), file)


def count_in_pieces(
    corpus: TextCorpus,
    order: int,
    executor: Executor,
    folder: Path,
    *,
    vocabulary: Vocabulary | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
    piece_bytes: int = PIECE_BYTES,
) -> NgramCounts:
    """Count the n-grams of a text as `NgramCounts.count` does, by many workers.

    Args:
        corpus: The text.
        order: Length of the n-grams.
        executor: Counts pieces of the text.
        folder: Where the counts of the pieces are kept meanwhile; all workers must see it.
        vocabulary: The words to know; by default all words of the text, which is then read twice.
        threads: Number of threads of every worker, and of the merging.
        memory: Memory limit of the merging.
        progress: Progress callback.
        piece_bytes: Bytes of text that a worker counts at a time; results do not depend on it.

    Raises:
        EstimationError: ``E_NO_DATA`` for an empty text.
        VocabularyError: the same, without a vocabulary.
        InputFileError: ``E_TEXT_CHANGED`` if the text changes while it is being counted.
        EngineError: if a worker does not see the folder.
    """
    survey, training = None, False
    if vocabulary is None or has_late_words(vocabulary):
        survey = _survey(corpus, executor, progress, piece_bytes, keeps_words=vocabulary is None)
        found = {"sentences": survey.sentences, "tokens": survey.tokens}
        if vocabulary is None:
            if not survey.words:
                raise no_words(corpus.paths)
            vocabulary = Vocabulary.from_counts(
                survey.words, profile=load_profile("english"), source={"name": "all", **found}
            )
        else:
            # In the text that the streaming rule made it from, words are unknown until the place
            # where they entered it.
            training = all(vocabulary.source.get(name) == found[name] for name in found)
    digest = hashlib.sha256()
    firsts = survey.first_sentences if survey is not None and training else []
    # A text that has grown since the first reading is refused afterwards.
    numbered = itertools.starmap(
        _Numbered,
        zip(
            itertools.count(1),
            itertools.chain(firsts, itertools.repeat(1)),
            text_pieces(corpus.paths, piece_bytes, digest),
            strict=False,
        ),
    )
    with temporary_folder(folder) as own:
        work = _CountNgrams(order, vocabulary, training, threads, own.absolute())
        parts: list[_Counted] = []
        with progress.step("counting n-grams", total=_bytes_of(corpus), unit="B") as step:
            for part in executor.map(work, numbered):
                parts.append(part)
                step.advance(part.bytes)
        if survey is not None and survey.sha256 != digest.hexdigest():
            raise InputFileError(
                f"{corpus_name(corpus)}: the text changed while it was being counted. Count it "
                "again once it is complete.",
                code="E_TEXT_CHANGED",
            )
        sentences, tokens = (
            sum(part.sentences for part in parts),
            sum(part.tokens for part in parts),
        )
        if not tokens:
            raise EstimationError(
                f"{corpus_name(corpus)}: contains no words to train on.", code="E_NO_DATA"
            )
        space = WordSpace.of(vocabulary)
        counter = EventCounter(order, threads=threads, memory=memory)
        unigrams: Places = np.zeros(space.words + 1, dtype=np.uint64)
        for part in parts:
            events, numbers = _read_part(part.file, order, space)
            counter.merge(events)
            unigrams += numbers
        merged = counter.finish(progress)
    fingerprint = Fingerprint(digest.hexdigest(), sentences, tokens)
    return NgramCounts(order, vocabulary, merged, unigrams, (corpus_record(corpus, fingerprint),))


def _survey(
    corpus: TextCorpus,
    executor: Executor,
    progress: Progress,
    piece_bytes: int,
    *,
    keeps_words: bool,
) -> _Survey:
    """Read a text for its words, and where its pieces begin."""
    digest = hashlib.sha256()
    found = _Survey("", [], 0, 0, Counter())
    with progress.step("counting words", total=_bytes_of(corpus), unit="B") as step:
        pieces = text_pieces(corpus.paths, piece_bytes, digest)
        for part in executor.map(_CountWords(keeps_words), pieces):
            found.first_sentences.append(found.sentences + 1)
            found.sentences += part.sentences
            found.tokens += part.tokens
            found.words.update(part.words)
            step.advance(part.bytes)
    found.sha256 = digest.hexdigest()
    return found


def _read_part(file: Path, order: int, space: WordSpace) -> tuple[EventCounts, Places]:
    """Return the counts of a piece, mapped from its file."""
    if not file.is_file():
        raise _not_shared(file.parent)
    tables = open_tables(file)
    unigrams = read_tensors(tables, (UNIGRAM_COUNTS,), words=space.words)[UNIGRAM_COUNTS.name]
    events = EventCounts.from_tensors(tables, EVENTS, largest=largest_ids(order, space))
    return events, unigrams


def _not_shared(folder: Path) -> EngineError:
    return EngineError(
        f"{folder.parent}: workers keep their counts here, but not all machines see the same "
        f"folder. Write the output, or what {option('temporary')} names, to a file system that "
        "they share."
    )


def _bytes_of(corpus: TextCorpus) -> int | None:
    """Return the bytes of a text, where they can be known."""
    known = [size for path in corpus.paths if (size := size_if_known(path)) is not None]
    return sum(known) if len(known) == len(corpus.paths) else None
