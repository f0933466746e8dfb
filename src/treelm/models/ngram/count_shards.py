"""Counting the n-grams of a text in pieces, by any number of workers.

Every piece becomes a file of sorted counts, and the counts of a range of words are merged: a map
and a reduce. Ids do not depend on the pieces, because words are counted first unless the vocabulary
is given. Workers read plain files themselves; what must be unpacked is sent to them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treelm.corpus.corpus import Fingerprint, TextCorpus
from treelm.corpus.encoder import encode_piece, no_words, text_pieces
from treelm.corpus.pieces import (
    FileRange,
    Piece,
    bytes_if_known,
    changed_text,
    piece_size,
    pieces_in_place,
    read_piece,
)
from treelm.corpus.temporary import temporary_folder
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError
from treelm.events.count_runs import Runs, merge_runs, open_run, write_run
from treelm.events.counts import Places
from treelm.models.interface.trained_model import corpus_name, corpus_record
from treelm.models.interface.tree_events import has_late_words
from treelm.models.ngram.counts import EVENTS, NgramCounts, count_encoded, largest_ids
from treelm.models.ngram.events import WordSpace
from treelm.parallel.executor import Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.schema import UNIGRAM_COUNTS, read_tensors
from treelm.trees.profile import load_profile


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

    def __call__(self, place: Piece) -> _PieceWords:
        piece = read_piece(place)
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
    pieces: list[Piece] = field(default_factory=list)
    """The pieces, if all of them are in plain files; otherwise they are read again."""


class _Numbered(NamedTuple):
    """A piece, its number, and that of its first sentence in the text, both counted from 1."""

    number: int
    first_sentence: int
    piece: Piece


class _Counted(NamedTuple):
    """A piece whose n-grams were counted into a file."""

    bytes: int
    sentences: int
    tokens: int
    rows: int
    """Number of distinct n-grams."""
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
        piece = read_piece(shard.piece)
        text, _ = encode_piece(
            piece,
            self.vocabulary,
            training=self.training,
            first_sentence=shard.first_sentence,
        )
        events, unigrams = count_encoded(text, self.order, self.vocabulary, threads=self.threads)
        file = self.folder / f"{shard.number}.counts"
        write_run(file, {**events.to_tensors(EVENTS), UNIGRAM_COUNTS.name: unigrams})
        return _Counted(len(piece.data), len(text), len(text.ids), len(events), file)


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
    piece_bytes: int | None = None,
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
        piece_bytes: Bytes of text that a worker counts at a time; results do not depend on it. By
            default a part of the text, and 32 MiB of a large one.

    Raises:
        EstimationError: ``E_NO_DATA`` for an empty text.
        VocabularyError: the same, without a vocabulary.
        InputFileError: ``E_TEXT_CHANGED`` if the text changes while it is being counted.
        EngineError: if a worker does not see the folder.
    """
    if piece_bytes is None:
        piece_bytes = piece_size(bytes_if_known(corpus.paths))
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
            survey.pieces
            if survey is not None and survey.pieces
            else pieces_in_place(corpus.paths, text_pieces, piece_bytes, digest),
            strict=False,
        ),
    )
    with temporary_folder(folder) as own:
        work = _CountNgrams(order, vocabulary, training, threads, own.absolute())
        parts: list[_Counted] = []
        with progress.step(
            "counting n-grams", total=bytes_if_known(corpus.paths), unit="B"
        ) as step:
            for part in executor.map(work, numbered):
                parts.append(part)
                step.advance(part.bytes)
        sha256 = digest.hexdigest() if survey is None else survey.sha256
        if survey is not None and not survey.pieces and sha256 != digest.hexdigest():
            raise changed_text(corpus_name(corpus))
        sentences, tokens = (
            sum(part.sentences for part in parts),
            sum(part.tokens for part in parts),
        )
        if not tokens:
            raise EstimationError(
                f"{corpus_name(corpus)}: contains no words to train on.", code="E_NO_DATA"
            )
        space = WordSpace.of(vocabulary)
        unigrams: Places = np.zeros(space.words + 1, dtype=np.uint64)
        for part in parts:
            found_words = read_tensors(open_run(part.file), (UNIGRAM_COUNTS,), words=space.words)
            unigrams += found_words[UNIGRAM_COUNTS.name]
        merged = merge_runs(
            Runs(tuple(part.file for part in parts), EVENTS, tuple(largest_ids(order, space))),
            unigrams,
            sum(part.rows for part in parts),
            executor,
            own.absolute(),
            threads=threads,
            memory=memory,
            progress=progress,
        )
    fingerprint = Fingerprint(sha256, sentences, tokens)
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
    sent: list[Piece] = []

    def pieces() -> Iterator[Piece]:
        for piece in pieces_in_place(corpus.paths, text_pieces, piece_bytes, digest):
            if isinstance(piece, FileRange):
                sent.append(piece)
            yield piece

    with progress.step("counting words", total=bytes_if_known(corpus.paths), unit="B") as step:
        for part in executor.map(_CountWords(keeps_words), pieces()):
            found.first_sentences.append(found.sentences + 1)
            found.sentences += part.sentences
            found.tokens += part.tokens
            found.words.update(part.words)
            step.advance(part.bytes)
    found.sha256 = digest.hexdigest()
    if len(sent) == len(found.first_sentences):
        found.pieces = sent
    return found
