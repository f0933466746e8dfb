"""Counting the treelets of trees in pieces, by any number of workers.

Every piece is read once, with ids of its own for words, labels and rules. These become ids of the
whole in order of first occurrence, as if one process had read everything; then the workers give
their counts the new ids, and merge what all pieces have about a range of outcomes.

A file with brackets that do not match cannot be cut where its trees end, so one process reads it.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.brackets import (
    KEPT_PROBLEMS,
    ReadOptions,
    ReadReport,
    read_packed,
    warn_of_many_roots,
)
from treelm.corpus.corpus import Fingerprint, TreeCorpus
from treelm.corpus.encoder import no_words, open_encoder
from treelm.corpus.files import Content, Source, source_name
from treelm.corpus.pieces import (
    LEAST_TREE_BYTES,
    Piece,
    bytes_if_known,
    piece_size,
    pieces_in_place,
    read_piece,
    tree_pieces,
)
from treelm.corpus.temporary import temporary_folder
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import SENTENCE_END, SENTENCE_START, Vocabulary
from treelm.errors import CorpusFormatError, TreelmWarning, VocabularyError
from treelm.events.count_runs import Runs, merge_runs, open_run, write_run
from treelm.events.counts import EventCounter, EventCounts, Ids
from treelm.events.extract import EventSymbols, TreeEvents, tree_event_errors
from treelm.models.interface.trained_model import corpus_record
from treelm.models.interface.tree_events import has_late_words, note_reading
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.counts import EVENTS, NewIds, SymbolUnion, largest_ids
from treelm.models.treelet.events import TreeletCounts, count_treelets, transform_of
from treelm.models.treelet.train import with_temporal_nouns
from treelm.parallel.executor import Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.transforms.temporal_lexicon import collect_temporal_words
from treelm.transforms.treelet import Treelet
from treelm.trees.packed import PackedTrees
from treelm.trees.profile import ProfileSource, load_profile


class _Numbered(NamedTuple):
    """A piece and its number, counted from 1."""

    number: int
    piece: Piece


def _content(piece: Piece) -> tuple[str, bytes]:
    """Return what a piece is called, and its trees."""
    source, lines_before, data = read_piece(piece)
    # Only a file may begin with a byte order mark; a blank line says that these do not begin one.
    return source_name(source), b"\n" + data if lines_before else data


@dataclass(frozen=True)
class _TemporalWords:
    """Finds the nouns that head temporal phrases in pieces.

    Args:
        profile: Language profile.
        threads: Number of threads.
    """

    profile: ProfileSource
    threads: int

    def __call__(self, shard: _Numbered) -> frozenset[str]:
        content = Content(*_content(shard.piece))
        return collect_temporal_words([content], self.profile, threads=self.threads)


class _ReadWords(NamedTuple):
    """Words of trees, of all that are well formed."""

    sentences: int
    tokens: int
    counts: dict[str, int]


class _Counted(NamedTuple):
    """A piece whose treelets were counted into a file, with ids of its own."""

    report: ReadReport
    file: Path
    labels: tuple[str, ...]
    bases: tuple[str, ...]
    words: tuple[str, ...]
    """Words by id, unless the vocabulary was given."""
    read: _ReadWords
    """The same words and how often they occur, with those of trees that cannot be transformed."""


@dataclass(frozen=True)
class _CountTrees:
    """Counts the treelets of pieces.

    Args:
        config: What is counted.
        transform: How trees are transformed.
        options: How brackets are read.
        vocabulary: The words to know; None for all words of the piece.
        threads: Number of threads.
        folder: Where files of counts are made.
    """

    config: TreeletConfig
    transform: Treelet
    options: ReadOptions
    vocabulary: Vocabulary | None
    threads: int
    folder: Path

    def __call__(self, shard: _Numbered) -> _Counted:
        name, data = _content(shard.piece)
        report = ReadReport()
        templates = [self.config.nonterminal_template, self.config.terminal_template]
        events = TreeEvents(templates, self.vocabulary, marked_tags=self.config.marked_tags)
        counters = [
            EventCounter(1 + len(template.context), threads=self.threads) for template in templates
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TreelmWarning)  # said once, for all pieces
            recipe = self.transform.recipe_with(self.options)
            events.count(self._batches(name, data, report, recipe), counters, threads=self.threads)
        nonterminal, terminal = (counter.finish() for counter in counters)
        symbols = events.symbols
        file = self.folder / f"{shard.number}.counts"
        write_run(
            file,
            {
                "yield_labels": symbols.yield_labels,
                "yield_starts": symbols.yield_starts,
                "rules": symbols.rules,
                **nonterminal.to_tensors(EVENTS[0]),
                **terminal.to_tensors(EVENTS[1]),
            },
        )
        words: tuple[str, ...] = ()
        read = _ReadWords(0, 0, {})
        if self.vocabulary is None:
            words = events.words
            rows, found = terminal.summed(1)
            counts = zip(rows[:, 0].tolist(), found.tolist(), strict=True)
            read = _ReadWords(
                report.trees, report.tokens, {words[word]: count for word, count in counts}
            )
            if report.failed:
                read = self._all_words(name, data)
        return _Counted(report, file, symbols.labels, symbols.bases, words, read)

    def _batches(
        self,
        name: str,
        data: bytes,
        report: ReadReport,
        recipe: _native.TreeRecipe | None,
    ) -> Iterator[PackedTrees]:
        return read_packed(
            iter([data]),
            self.options,
            recipe=recipe,
            name=name,
            on_error="skip",
            report=report,
            threads=self.threads,
        )

    def _all_words(self, name: str, data: bytes) -> _ReadWords:
        """Return the words of a piece, with those of trees that cannot be transformed."""
        encoder = open_encoder()
        for batch in self._batches(name, data, ReadReport(), None):
            with tree_event_errors():
                batch.native.encode_words(encoder)
            encoder.take()
        counts = dict(zip(encoder.words(), encoder.counts().tolist(), strict=True))
        return _ReadWords(encoder.sentences, encoder.tokens, counts)


def _symbols_of(part: _Counted) -> EventSymbols:
    """Return what the ids of a piece mean, but for those of words."""
    tables = open_run(part.file)
    return EventSymbols(
        part.labels,
        np.array(tables["yield_labels"]),
        np.array(tables["yield_starts"]),
        np.array(tables["rules"]),
        0,
        0,
        0,
        part.bases,
    )


class _Renamed(NamedTuple):
    """A piece, and the ids that it gets."""

    file: Path
    ids: NewIds


@dataclass(frozen=True)
class _Rename:
    """Gives the counts of pieces the ids of the whole.

    Args:
        threads: Number of threads.
    """

    threads: int

    def __call__(self, shard: _Renamed) -> tuple[Path, tuple[int, ...]]:
        tables = open_run(shard.file)
        tensors: dict[str, npt.NDArray[Any]] = {}
        rows = []
        for name in EVENTS:
            columns = len(tables[f"{name}.bits"]) - 1
            largest = [max(len(ids) - 1, 0) for ids in shard.ids.columns(name)[:columns]]
            counter = EventCounter(columns, threads=self.threads)
            shard.ids.add(EventCounts.from_tensors(tables, name, largest=largest), name, counter)
            made = counter.finish()
            rows.append(len(made))
            tensors |= made.to_tensors(name)
        file = shard.file.with_suffix(".renamed")
        write_run(file, tensors)
        return file, tuple(rows)


class _Malformed(Exception):
    """Something is wrong with the trees; one process says what."""


@dataclass(frozen=True, eq=False)
class _Pieces:
    """The trees of a corpus in pieces.

    Args:
        corpus: The trees.
        places: Where the pieces are.
        sha256: Hash of the whole.
    """

    corpus: TreeCorpus
    places: list[Piece]
    sha256: str

    @classmethod
    def of(cls, corpus: TreeCorpus, size: int, folder: Path) -> _Pieces:
        """Cut a corpus into pieces.

        Args:
            corpus: The trees.
            size: Bytes of a piece.
            folder: Where what is not a plain file is unpacked.
        """
        digest = hashlib.sha256()
        places = list(pieces_in_place(corpus.paths, tree_pieces, size, digest, folder))
        return cls(corpus, places, digest.hexdigest())

    def numbered(self) -> Iterator[_Numbered]:
        """Yield the pieces with their numbers."""
        return (_Numbered(*item) for item in enumerate(self.places, 1))

    def __len__(self) -> int:
        return len(self.places)


def count_treelets_in_pieces(
    corpus: TreeCorpus,
    config: TreeletConfig,
    executor: Executor,
    folder: Path,
    *,
    vocabulary: Vocabulary | None = None,
    temporal: Source | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    report: ReadReport | None = None,
    progress: Progress = SILENT,
    piece_bytes: int | None = None,
) -> TreeletCounts:
    """Count the events of trees as `count_treelets` does, by many workers.

    Args:
        corpus: Treebank trees.
        config: Options; temporal nouns are found here unless they are given.
        executor: Counts pieces of the trees.
        folder: Where the counts of the pieces are kept meanwhile; all workers must see it.
        vocabulary: The words to know; by default all words of the trees.
        temporal: Lexicon of temporal nouns, or a treebank with function tags.
        threads: Number of threads of every worker, and of the merging.
        memory: Memory limit of the merging.
        report: Filled with counts and problems.
        progress: Progress callback.
        piece_bytes: Bytes that a worker counts at a time; results do not depend on it.

    Raises:
        CorpusFormatError: for malformed trees.
        EstimationError: ``E_NO_DATA`` without trees.
        EngineError: if a worker does not see the folder.
    """
    size = piece_bytes or piece_size(bytes_if_known(corpus.paths), LEAST_TREE_BYTES)
    try:
        if vocabulary is not None and has_late_words(vocabulary):
            raise _Malformed  # which words are known depends on all trees before
        with temporary_folder(folder) as own:
            pieces = _Pieces.of(corpus, size, own.absolute())
            return _count_pieces(
                pieces,
                config,
                executor,
                own.absolute(),
                vocabulary=vocabulary,
                temporal=temporal,
                threads=threads,
                memory=memory,
                report=report,
                progress=progress,
            )
    except (_Malformed, CorpusFormatError, VocabularyError):
        config = with_temporal_nouns(config, corpus, temporal, threads=threads)
        return count_treelets(
            corpus,
            config,
            vocabulary=vocabulary,
            threads=threads,
            memory=memory,
            report=report,
            progress=progress,
        )


def _count_pieces(
    pieces: _Pieces,
    config: TreeletConfig,
    executor: Executor,
    folder: Path,
    *,
    vocabulary: Vocabulary | None,
    temporal: Source | None,
    threads: int,
    memory: MemoryLimit | None,
    report: ReadReport | None,
    progress: Progress,
) -> TreeletCounts:
    corpus = pieces.corpus

    def collect(_: list[Source]) -> frozenset[str]:
        work = _TemporalWords(corpus.options.profile, threads)
        found: set[str] = set()
        with progress.step("collecting temporal nouns", total=len(pieces), unit="pieces") as step:
            for nouns in executor.map(work, pieces.numbered()):
                found |= nouns
                step.advance(1)
        return frozenset(found)

    config = with_temporal_nouns(config, corpus, temporal, threads=threads, collect=collect)
    marked = set(config.marked_tags)
    while True:
        counts, reading = _count_once(
            pieces,
            config.model_copy(update={"marked_tags": tuple(sorted(marked))}),
            executor,
            folder,
            vocabulary=vocabulary,
            threads=threads,
            memory=memory,
            progress=progress,
        )
        both = counts.tags_that_are_phrases
        if not both:
            break
        marked.update(both)  # rare, and known only now: count again
    if reading.many_rooted:
        warn_of_many_roots(source_name(corpus.paths[0]))
    note_reading(report, reading)
    counts.check()
    return counts


def _count_once(
    pieces: _Pieces,
    config: TreeletConfig,
    executor: Executor,
    folder: Path,
    *,
    vocabulary: Vocabulary | None,
    threads: int,
    memory: MemoryLimit | None,
    progress: Progress,
) -> tuple[TreeletCounts, ReadReport]:
    corpus = pieces.corpus
    transform = transform_of(config, corpus.options.profile)
    work = _CountTrees(config, transform, corpus.options, vocabulary, threads, folder)
    parts: list[tuple[_Counted, tuple[Ids, Ids, Ids]]] = []
    reading, words, sentences, tokens = ReadReport(), Counter[str](), 0, 0
    union: SymbolUnion | None = None
    places = _Places(pieces)
    with progress.step("counting treelets", total=len(pieces), unit="pieces") as step:
        for part in executor.map(work, pieces.numbered()):
            _check_problems(part.report, corpus)
            _add_report(reading, part.report, places)
            symbols = _symbols_of(part)
            union = SymbolUnion(symbols) if union is None else union
            parts.append((part, union.add(symbols)))
            words.update(part.read.counts)
            sentences += part.read.sentences
            tokens += part.read.tokens
            step.advance(1)
    known = vocabulary
    if known is None:
        known = _vocabulary(corpus, _ReadWords(sentences, tokens, words))
    if union is None:
        raise no_words(corpus.paths)
    whole = union.symbols(len(known))

    def renamed() -> Iterator[_Renamed]:
        for part, ids in parts:
            yield _Renamed(
                part.file, NewIds(*ids, _word_ids(part, known, is_given=vocabulary is not None))
            )

    files: list[Path] = []
    rows = np.zeros(2, np.int64)
    with progress.step("giving out ids", total=len(parts), unit="pieces") as step:
        for file, sizes in executor.map(_Rename(threads), renamed()):
            files.append(file)
            rows += sizes
            step.advance(1)
    word_weights = np.ones(len(known), np.uint64)
    word_weights[known.ids_of(tuple(words))] += np.fromiter(words.values(), np.uint64, len(words))
    nonterminal, terminal = (
        merge_runs(
            Runs(tuple(files), name, tuple(largest[:columns])),
            weights,
            int(size),
            executor,
            folder,
            threads=threads,
            memory=memory,
            progress=progress,
            unit=unit,
        )
        for name, largest, columns, weights, size, unit in zip(
            EVENTS,
            largest_ids(whole),
            _widths(config),
            (np.ones(len(whole.yield_starts) - 1, np.uint64), word_weights),
            rows.tolist(),
            ("right-hand sides", "words"),
            strict=True,
        )
    )
    fingerprint = Fingerprint(pieces.sha256, reading.trees, reading.tokens)
    counts = TreeletCounts(
        nonterminal,
        terminal,
        whole,
        known,
        transform,
        reading.trees,
        (corpus_record(corpus, fingerprint),),
        config.marked_tags,
    )
    return counts, reading


def _word_ids(part: _Counted, vocabulary: Vocabulary, *, is_given: bool) -> Ids:
    """Return the ids in a vocabulary of the words of a piece, which has its own unless given."""
    size = len(vocabulary)
    if is_given:
        return np.arange(size + 2, dtype=np.uint32)
    ends = {SENTENCE_END: size, SENTENCE_START: size + 1}
    ids = vocabulary.ids_of(UNKNOWN if word in ends else word for word in part.words)
    for word, number in ends.items():
        ids[part.words.index(word)] = number
    return ids


def _widths(config: TreeletConfig) -> Sequence[int]:
    templates = (config.nonterminal_template, config.terminal_template)
    return [1 + len(template.context) for template in templates]


def _vocabulary(corpus: TreeCorpus, read: _ReadWords) -> Vocabulary:
    """Return the vocabulary of all words.

    Raises:
        VocabularyError: ``E_NO_DATA`` without words.
    """
    if not read.counts:
        raise no_words(corpus.paths)
    return Vocabulary.from_counts(
        read.counts,
        profile=load_profile(corpus.options.profile),
        style="full",
        source={"name": "all", "sentences": read.sentences, "tokens": read.tokens},
    )


#: Problems after which nobody can say where the next tree begins.
_UNCERTAIN = frozenset(("E_UNBALANCED", "E_TEXT_OUTSIDE", "E_ENCODING"))


def _check_problems(report: ReadReport, corpus: TreeCorpus) -> None:
    """Leave it to one process to read what cannot be cut, or must not be read on."""
    if report.failed and (
        corpus.on_error == "raise"
        or report.stray
        or report.failed > len(report.problems)
        or any(problem.code in _UNCERTAIN for problem in report.problems)
    ):
        raise _Malformed


class _Places:
    """Where pieces stand in their files, as they come."""

    def __init__(self, pieces: _Pieces) -> None:
        self._coming = iter(pieces.places)
        self._file: Source | None = None
        self._trees = 0

    def next(self, report: ReadReport) -> tuple[int, int]:
        """Return the number of trees and of lines before the next piece of a file."""
        piece = next(self._coming)
        if piece.source is not self._file or not piece.lines_before:
            self._file, self._trees = piece.source, 0
        trees = self._trees
        self._trees += report.seen
        # A blank line was put before the piece.
        return trees, max(piece.lines_before - 1, 0)


def _add_report(total: ReadReport, part: ReadReport, places: _Places) -> None:
    """Add the report of a piece, with problems where they are in the file."""
    trees, lines = places.next(part)
    for item in fields(part):
        if item.name != "problems":
            setattr(total, item.name, getattr(total, item.name) + getattr(part, item.name))
    for problem in part.problems[: KEPT_PROBLEMS - len(total.problems)]:
        total.problems.append(
            replace(problem, tree=problem.tree + trees, line=problem.line + lines)
        )
