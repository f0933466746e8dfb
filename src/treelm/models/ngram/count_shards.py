"""Counting the n-grams of a text in pieces, by any number of workers.

Every piece becomes a file of sorted counts, and the counts of a range of words are merged: a map
and a reduce. Ids do not depend on the pieces, because words are counted first unless the vocabulary
is given. Workers read plain files themselves; what must be unpacked is sent to them.
"""

from __future__ import annotations

import hashlib
import itertools
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import Fingerprint, TextCorpus
from treelm.corpus.encoder import TextPiece, encode_piece, no_words, text_pieces
from treelm.corpus.files import Content, Source, size_if_known, source_name
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
from treelm.store.tables import Tables, open_tables, write_tables
from treelm.trees.profile import load_profile

#: Bytes of text that a worker counts at a time, at most: some hundred megabytes of its memory.
PIECE_BYTES = 32 << 20
#: And at least, of a text that is not large enough to keep many workers busy otherwise.
LEAST_PIECE_BYTES = 4 << 20
#: Pieces of a text that is neither small nor large.
PIECES = 64
#: Distinct n-grams of all pieces that are merged at a time, and the largest number of such ranges.
ROWS_A_RANGE = 1 << 20
MOST_RANGES = 256


class _Range(NamedTuple):
    """Some lines of a plain file, which workers read themselves."""

    source: Source
    """The file, as messages name it."""
    path: str
    lines_before: int
    first: int
    """Bytes of the file before them."""
    size: int
    checksum: int

    def read(self) -> TextPiece:
        """Return the lines.

        Raises:
            EngineError: if the file is not to be seen from here.
            InputFileError: ``E_TEXT_CHANGED`` if something else is in it by now.
        """
        try:
            with Path(self.path).open("rb") as file:
                file.seek(self.first)
                data = file.read(self.size)
        except OSError as error:
            raise EngineError(
                f"{source_name(self.source)}: a worker cannot read it ({error.strerror}). Workers "
                "read the text themselves, so it must be on a file system that all machines share."
            ) from error
        if zlib.crc32(data) != self.checksum:
            raise _changed(source_name(self.source))
        return TextPiece(self.source, self.lines_before, data)


_Piece = TextPiece | _Range


def _pieces(paths: Iterable[Source], size: int, digest: hashlib._Hash | None) -> Iterator[_Piece]:
    """Yield a text in pieces, of plain files only where they stand."""
    for path in paths:
        is_plain = not isinstance(path, Content) and size_if_known(path) is not None
        first = 0
        for piece in text_pieces([path], size, digest):
            if is_plain:
                yield _Range(
                    path,
                    str(Path(path).absolute()),
                    piece.lines_before,
                    first,
                    len(piece.data),
                    zlib.crc32(piece.data),
                )
            else:
                yield piece
            first += len(piece.data)


def _read(piece: _Piece) -> TextPiece:
    return piece.read() if isinstance(piece, _Range) else piece


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

    def __call__(self, place: _Piece) -> _PieceWords:
        piece = _read(place)
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
    pieces: list[_Piece] = field(default_factory=list)
    """The pieces, if all of them are in plain files; otherwise they are read again."""


class _Numbered(NamedTuple):
    """A piece, its number, and that of its first sentence in the text, both counted from 1."""

    number: int
    first_sentence: int
    piece: _Piece


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
        piece = _read(shard.piece)
        text, _ = encode_piece(
            piece,
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
        return _Counted(len(piece.data), len(text), len(text.ids), len(events), file)


class _WordRange(NamedTuple):
    """N-grams that end in one of some words."""

    number: int
    first: int
    last: int
    """The first id after them."""


@dataclass(frozen=True)
class _MergeRange:
    """Merges the counts of all pieces for a range of last words.

    Args:
        files: Counts of the pieces.
        order: Length of the n-grams.
        space: The ids.
        threads: Number of threads.
        folder: Where files of counts are made.
    """

    files: tuple[Path, ...]
    order: int
    space: WordSpace
    threads: int
    folder: Path

    def __call__(self, shard: _WordRange) -> Path:
        counter = EventCounter(self.order, threads=self.threads)
        bits = np.zeros(self.order, np.int64)
        for file in self.files:
            tables = _part_tables(file)
            counter.merge(
                EventCounts.from_tensors(
                    _rows_of(tables, shard.first, shard.last),
                    EVENTS,
                    largest=largest_ids(self.order, self.space),
                )
            )
            if len(tables[f"{EVENTS}.counts"]):
                bits = np.maximum(bits, _bits(tables))
        made = _with_bits(counter.finish(), bits.tolist())
        file = self.folder / f"range-{shard.number}.counts"
        write_tables(file, made)
        return file


def _bits(tensors: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Return how many bits each column of packed n-grams has."""
    return tensors[f"{EVENTS}.bits"][:-1].astype(np.int64)


def _rows_of(
    tensors: Mapping[str, npt.NDArray[Any]], first: int, last: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the counts of n-grams whose last word is in a range of ids."""
    keys, counts = tensors[f"{EVENTS}.keys"], tensors[f"{EVENTS}.counts"]
    width = int(_bits(tensors)[0])
    # The last word comes first, in the highest bits.
    ends = [
        bisect_left(keys, number << (64 - width), key=lambda key: int(key[0]))
        if number < 1 << width
        else len(keys)
        for number in (first, last)
    ]
    rows = slice(*ends)
    numbers = np.array(tensors[f"{EVENTS}.bits"])
    numbers[-1] = counts[rows].sum(dtype=np.uint64)
    return {
        f"{EVENTS}.keys": keys[rows],
        f"{EVENTS}.counts": counts[rows],
        f"{EVENTS}.bits": numbers,
    }


def _with_bits(events: EventCounts, bits: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    """Return counts as tensors with so many bits for every column, as all ranges have them."""
    tensors = events.to_tensors(EVENTS)
    if _bits(tensors).tolist() == list(bits):
        return tensors
    rows = events.rows.astype(np.uint64)
    words = max(1, -(-sum(bits) // 64))
    stored = words if words <= 2 else 4 if words <= 4 else 8
    keys = np.zeros((len(rows), stored), np.uint64)
    end = 0
    for column, width in enumerate(bits):
        begin, end = end, end + width
        if not width:
            continue
        word = (end - 1) // 64
        shift = 64 * (word + 1) - end
        keys[:, word] |= rows[:, column] << np.uint64(shift)
        if begin // 64 != word:
            keys[:, word - 1] |= rows[:, column] >> np.uint64(64 - shift)
    return {
        f"{EVENTS}.keys": keys,
        f"{EVENTS}.counts": tensors[f"{EVENTS}.counts"],
        f"{EVENTS}.bits": np.array([*bits, events.total], np.uint64),
    }


def _word_ranges(unigrams: Places, ranges: int) -> Iterator[_WordRange]:
    """Yield ranges of ids, with about as many words of the text in each."""
    sums = np.cumsum(unigrams)
    wanted = np.linspace(0, int(sums[-1]), ranges + 1)[1:-1]
    cuts = np.unique([0, *(np.searchsorted(sums, wanted) + 1).tolist(), len(unigrams)])
    for number, (first, last) in enumerate(itertools.pairwise(cuts.tolist()), 1):
        yield _WordRange(number, first, last)


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
        known = _bytes_of(corpus) or PIECES * PIECE_BYTES
        piece_bytes = min(max(known // PIECES, LEAST_PIECE_BYTES), PIECE_BYTES)
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
            else _pieces(corpus.paths, piece_bytes, digest),
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
        sha256 = digest.hexdigest() if survey is None else survey.sha256
        if survey is not None and not survey.pieces and sha256 != digest.hexdigest():
            raise _changed(corpus_name(corpus))
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
            found_words = read_tensors(
                _part_tables(part.file), (UNIGRAM_COUNTS,), words=space.words
            )
            unigrams += found_words[UNIGRAM_COUNTS.name]
        rows = sum(part.rows for part in parts)
        ranges = min(rows // ROWS_A_RANGE, MOST_RANGES)
        if memory is None and ranges > 1 and len(parts) > 1:
            files = tuple(part.file for part in parts)
            merging = _MergeRange(files, order, space, threads, own.absolute())
            merged = _merged_ranges(
                executor, merging, _word_ranges(unigrams, ranges), progress, len(unigrams)
            )
        else:
            counter = EventCounter(order, threads=threads, memory=memory)
            for part in parts:
                counter.merge(
                    EventCounts.from_tensors(
                        _part_tables(part.file), EVENTS, largest=largest_ids(order, space)
                    )
                )
            merged = counter.finish(progress)
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
    sent: list[_Piece] = []

    def pieces() -> Iterator[_Piece]:
        for piece in _pieces(corpus.paths, piece_bytes, digest):
            if isinstance(piece, _Range):
                sent.append(piece)
            yield piece

    with progress.step("counting words", total=_bytes_of(corpus), unit="B") as step:
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


def _merged_ranges(
    executor: Executor,
    merging: _MergeRange,
    ranges: Iterable[_WordRange],
    progress: Progress,
    words: int,
) -> EventCounts:
    """Return the counts of all pieces, merged by many workers and put one after the other."""
    shards = list(ranges)
    files = []
    with progress.step("merging counts", total=words, unit="words") as step:
        for file, shard in zip(executor.map(merging, shards), shards, strict=True):
            files.append(file)
            step.advance(shard.last - shard.first)
    tables = [_part_tables(file) for file in files]
    keys, counts = (
        np.concatenate([each[f"{EVENTS}.{name}"] for each in tables]) for name in ("keys", "counts")
    )
    numbers = np.array(tables[0][f"{EVENTS}.bits"])
    numbers[-1] = sum(int(each[f"{EVENTS}.bits"][-1]) for each in tables)
    return EventCounts.from_tensors(
        {f"{EVENTS}.keys": keys, f"{EVENTS}.counts": counts, f"{EVENTS}.bits": numbers},
        EVENTS,
        largest=largest_ids(merging.order, merging.space),
    )


def _part_tables(file: Path) -> Tables:
    """Return the counts that a worker has written, mapped from its file."""
    if not file.is_file():
        raise _not_shared(file.parent)
    return open_tables(file)


def _changed(name: str) -> InputFileError:
    return InputFileError(
        f"{name}: the text changed while it was being counted. Count it again once it is complete.",
        code="E_TEXT_CHANGED",
    )


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
