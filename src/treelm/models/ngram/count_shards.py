"""Counting the n-grams of a text in pieces, by any number of workers.

Every piece becomes a file of sorted counts, and the counts of a range of words are merged: a map
and a reduce. Ids do not depend on the pieces, because words are counted first unless the vocabulary
is given; a piece is then kept as numbers, and its text is not read again. Workers read plain files
themselves; what must be unpacked is sent to them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treelm.corpus.corpus import Fingerprint, TextCorpus
from treelm.corpus.encoder import EncodedText, encode_piece, no_words, text_pieces
from treelm.corpus.pieces import (
    LEAST_TEXT_BYTES,
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
    file: Path | None
    """Its words as numbers of their own, if they were wanted."""


@dataclass(frozen=True)
class _CountWords:
    """Counts the words of pieces, and keeps the pieces as numbers of these.

    Args:
        folder: Where pieces are kept; None if only the number of words is wanted.
    """

    folder: Path | None

    def __call__(self, shard: _Numbered) -> _PieceWords:
        piece = read_piece(shard.piece)
        text, encoder = encode_piece(piece)
        sizes = len(piece.data), len(text), len(text.ids)
        if self.folder is None:
            return _PieceWords(*sizes, {}, None)
        words = encoder.words()
        file = self.folder / f"{shard.number}.ids"
        joined = np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), np.uint8)
        write_run(file, {"ids": text.ids, "starts": text.starts, "words": joined})
        return _PieceWords(*sizes, dict(zip(words, encoder.counts().tolist(), strict=True)), file)


class _Encoded(NamedTuple):
    """A piece that is kept as numbers of its own words, and its number."""

    number: int
    bytes: int
    file: Path

    def text(self, vocabulary: Vocabulary) -> EncodedText:
        """Return the piece as ids of a vocabulary, which has all its words."""
        tables = open_run(self.file)
        words = tables["words"].tobytes().decode("utf-8", "surrogatepass")
        ids = vocabulary.ids_of(words.split("\n") if words else ())
        starts = np.array(tables["starts"])
        documents = np.zeros(len(starts) - 1, np.uint32)
        return EncodedText(ids[tables["ids"]], starts, documents, 0)


@dataclass(eq=False)
class _Survey:
    """What a first reading has found."""

    sha256: str
    first_sentences: list[int]
    """Number of the first sentence of every piece in the text, counted from 1."""
    sentences: int
    tokens: int
    words: Counter[str]
    encoded: list[_Encoded] = field(default_factory=list)
    """The pieces as numbers, if their words were wanted."""
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

    def __call__(self, shard: _Numbered | _Encoded) -> _Counted:
        if isinstance(shard, _Encoded):
            size, text = shard.bytes, shard.text(self.vocabulary)
        else:
            piece = read_piece(shard.piece)
            size = len(piece.data)
            text, _ = encode_piece(
                piece,
                self.vocabulary,
                training=self.training,
                first_sentence=shard.first_sentence,
            )
        events, unigrams = count_encoded(text, self.order, self.vocabulary, threads=self.threads)
        file = self.folder / f"{shard.number}.counts"
        write_run(file, {**events.to_tensors(EVENTS), UNIGRAM_COUNTS.name: unigrams})
        return _Counted(size, len(text), len(text.ids), len(events), file)


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
        vocabulary: The words to know; by default all words of the text.
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
        piece_bytes = piece_size(bytes_if_known(corpus.paths), LEAST_TEXT_BYTES)
    survey, training = None, False
    with temporary_folder(folder) as made:
        own = made.absolute()
        if vocabulary is None or has_late_words(vocabulary):
            kept = own if vocabulary is None else None
            survey = _survey(corpus, executor, progress, piece_bytes, kept)
            found = {"sentences": survey.sentences, "tokens": survey.tokens}
            if vocabulary is None:
                if not survey.words:
                    raise no_words(corpus.paths)
                vocabulary = Vocabulary.from_counts(
                    survey.words, profile=load_profile("english"), source={"name": "all", **found}
                )
            else:
                # In the text that the streaming rule made it from, words are unknown until the
                # place where they entered it.
                training = all(vocabulary.source.get(name) == found[name] for name in found)
        digest = hashlib.sha256()
        shards: Iterable[_Numbered | _Encoded]
        if survey is not None and survey.encoded:
            shards = survey.encoded
        else:
            firsts = survey.first_sentences if survey is not None and training else []
            # A text that has grown since the first reading is refused afterwards.
            shards = itertools.starmap(
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
        work = _CountNgrams(order, vocabulary, training, threads, own)
        parts: list[_Counted] = []
        with progress.step(
            "counting n-grams", total=bytes_if_known(corpus.paths), unit="B"
        ) as step:
            for part in executor.map(work, shards):
                parts.append(part)
                step.advance(part.bytes)
        sha256 = digest.hexdigest() if survey is None else survey.sha256
        is_read_twice = survey is not None and not survey.pieces and not survey.encoded
        if is_read_twice and sha256 != digest.hexdigest():
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
            own,
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
    folder: Path | None,
) -> _Survey:
    """Read a text for its words, and where its pieces begin.

    Args:
        corpus: The text.
        executor: Reads pieces.
        progress: Progress callback.
        piece_bytes: Bytes of a piece.
        folder: Where pieces are kept as numbers; None to count words only.
    """
    digest = hashlib.sha256()
    found = _Survey("", [], 0, 0, Counter())
    sent: list[Piece] = []

    def pieces() -> Iterator[_Numbered]:
        coming = pieces_in_place(corpus.paths, text_pieces, piece_bytes, digest)
        for number, piece in enumerate(coming, 1):
            if isinstance(piece, FileRange):
                sent.append(piece)
            yield _Numbered(number, 1, piece)

    with progress.step("counting words", total=bytes_if_known(corpus.paths), unit="B") as step:
        for number, part in enumerate(executor.map(_CountWords(folder), pieces()), 1):
            found.first_sentences.append(found.sentences + 1)
            found.sentences += part.sentences
            found.tokens += part.tokens
            found.words.update(part.words)
            if part.file is not None:
                found.encoded.append(_Encoded(number, part.bytes, part.file))
            step.advance(part.bytes)
    found.sha256 = digest.hexdigest()
    if len(sent) == len(found.first_sentences):
        found.pieces = sent
    return found
