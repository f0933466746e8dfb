"""Corpora: trees or plain text, in documents, that can be read again and again.

A corpus is a list of files. It is read from the start each time it is iterated, in constant
memory, and has a fingerprint of its content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from treelm.corpus.brackets import (
    DEFAULT_OPTIONS,
    OnError,
    ReadOptions,
    ReadReport,
    read_packed,
    tree_blocks,
)
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import (
    COMPRESSION,
    Content,
    Source,
    can_be_read_twice,
    lines_of,
    read_blocks,
    read_lines,
    source_name,
)
from treelm.corpus.words import SPACE, Words, sentences_of, split_words
from treelm.errors import CorpusFormatError, UsageError
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.tree import Tree


class Fingerprint(NamedTuple):
    """What a corpus is, in one line of a manifest."""

    sha256: str
    sentences: int
    tokens: int


class TreeInDocument(NamedTuple):
    """A tree and the name of the document it belongs to (None: the file is one document)."""

    document: str | None
    tree: Tree


class SentenceInDocument(NamedTuple):
    """A sentence and the number of its document in the corpus, counted from 0."""

    document: int
    words: tuple[str, ...]


@dataclass(frozen=True, init=False)
class TreeCorpus:
    """Files of bracketed trees, or of parses (``.forest``), whose best trees are read.

    Args:
        paths: A file, or several, read in this order; ``X.docs`` beside ``X.mrg`` names the
            document of each tree and is read automatically.
        options: How brackets are read.
        on_error: ``raise`` at the first malformed tree, or ``skip`` it.
        threads: Number of threads.
    """

    paths: tuple[Source, ...]
    options: ReadOptions
    on_error: OnError
    threads: int

    def __init__(
        self,
        paths: Source | Iterable[Source],
        options: ReadOptions = DEFAULT_OPTIONS,
        on_error: OnError = "raise",
        threads: int = 1,
    ) -> None:
        object.__setattr__(self, "paths", _as_paths(paths, "TreeCorpus.of_trees"))
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "on_error", on_error)
        object.__setattr__(self, "threads", threads)

    @classmethod
    def of_trees(cls, trees: Iterable[Tree], options: ReadOptions = DEFAULT_OPTIONS) -> TreeCorpus:
        """Return trees in memory as a corpus; they are cleaned as those of a file are.

        Args:
            trees: The trees.
            options: How brackets are read.

        Examples:
            >>> corpus = TreeCorpus.of_trees([Tree("S", [Tree("NN", "rain")])])
            >>> [str(tree) for tree in corpus]
            ['(ROOT (S (NN rain)))']
        """
        lines = [f"{tree}\n" for tree in trees]
        name = f"<{len(lines)} trees in memory>"
        return cls((Content(name, "".join(lines).encode("utf-8", "surrogatepass")),), options)

    def batches(self, report: ReadReport | None = None) -> Iterator[PackedTrees]:
        """Yield the trees in packed batches."""
        for path in self.paths:
            yield from read_packed(
                path, self.options, on_error=self.on_error, report=report, threads=self.threads
            )

    def read_through(self) -> ReadReport:
        """Return what a quick pass of the kernel finds: counts, and everything malformed."""
        report = ReadReport()
        for _ in self.batches(report):
            pass
        return report

    def __iter__(self) -> Iterator[Tree]:
        for batch in self.batches():
            yield from batch

    def with_documents(self) -> Iterator[TreeInDocument]:
        """Yield every tree with the name of its document.

        Raises:
            CorpusFormatError: ``E_DOCUMENTS`` if a ``.docs`` file does not match its trees.
        """
        for path in self.paths:
            names = document_names(path)
            report = ReadReport()
            for batch in read_packed(
                path, self.options, on_error=self.on_error, report=report, threads=self.threads
            ):
                for ordinal, tree in zip(batch.ordinal.tolist(), batch, strict=True):
                    if names is None:
                        yield TreeInDocument(None, tree)
                    elif ordinal <= len(names):
                        yield TreeInDocument(names[ordinal - 1], tree)
            if names is not None and report.seen != len(names):
                raise CorpusFormatError(
                    f"{source_name(path)} contains {report.seen} trees, but {docs_path(path)} "
                    f"names the documents of {len(names)}. It needs one line for each tree, "
                    "malformed ones included; recreate it or move it away.",
                    code="E_DOCUMENTS",
                    path=str(docs_path(path)),
                )

    def check_tags_and_phrases(self) -> None:
        """Refuse a corpus in which one label is used for words and for phrases.

        Raises:
            CorpusFormatError: ``E_TAG_IS_PHRASE``; the transform ``disambiguate_tags`` fixes it.
        """
        clash = self.tags_that_are_phrases()
        if clash:
            shown = ", ".join(sorted(clash)[:8])
            raise CorpusFormatError(
                f"{len(clash)} labels are used both as tags and as phrases: {shown}. Models need "
                "them distinct: apply the transform disambiguate_tags (tags become X~T).",
                code="E_TAG_IS_PHRASE",
                path=source_name(self.paths[0]) if self.paths else None,
            )

    def tags_that_are_phrases(self) -> frozenset[str]:
        """Return the labels used both on words and on phrases."""
        tags: set[str] = set()
        phrases: set[str] = set()
        for batch in self.batches():
            batch_tags, batch_phrases = batch.label_sets()
            tags |= batch_tags
            phrases |= batch_phrases
        return frozenset(tags & phrases)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """SHA-256 of the files' decompressed bytes, and the trees and words read from them.

        A file of parses has that of its best trees in brackets.
        """
        report = ReadReport()
        digest = hashlib.sha256()
        for path in self.paths:
            for _ in read_packed(
                hashed_blocks(path, digest, Wanted.TREES),
                self.options,
                name=source_name(path),
                on_error=self.on_error,
                report=report,
                threads=self.threads,
            ):
                pass
        return Fingerprint(digest.hexdigest(), report.trees, report.tokens)


@dataclass(frozen=True)
class TreeSentences:
    """The sentences of a tree corpus, as tuples of words; can be read again and again."""

    corpus: TreeCorpus

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for batch in self.corpus.batches():
            words, starts = batch.words, batch.tree_start.tolist()
            node_word = batch.node_word
            for first, last in pairwise(starts):
                ids = node_word[first:last]
                yield tuple(words[i] for i in ids[ids != NO_WORD].tolist())


@dataclass(frozen=True, init=False)
class TextCorpus:
    """Files of plain text: one tokenized sentence per line; a blank line ends a document.

    Words are split at white space and at nothing else. Blank lines count nowhere.

    Args:
        paths: A file, or several, read in this order.

    Raises:
        UsageError: for sentences, which `of_sentences` takes.
    """

    paths: tuple[Source, ...]

    def __init__(self, paths: Source | Iterable[Source]) -> None:
        object.__setattr__(self, "paths", _as_paths(paths, "TextCorpus.of_sentences"))

    @classmethod
    def of_sentences(cls, sentences: Iterable[Words]) -> TextCorpus:
        """Return sentences in memory as a corpus of one document.

        Args:
            sentences: The words of each, or strings that are split at white space.

        Raises:
            CorpusFormatError: ``E_EMPTY_SENTENCE`` for what no line of a file can hold.

        Examples:
            >>> list(TextCorpus.of_sentences([["rain", "fell"], ["it", "rained"]]))
            [('rain', 'fell'), ('it', 'rained')]
        """
        lines = []
        for number, words in enumerate(sentences_of(sentences), 1):
            line = " ".join(words)
            if not words or split_words(line) != words or "\n" in line or "\r" in line:
                raise CorpusFormatError(
                    f"sentence {number} has no words, or a word with white space in it. Give each "
                    "sentence as a list of words.",
                    code="E_EMPTY_SENTENCE",
                )
            lines.append(f"{line}\n")
        name = f"<{len(lines)} sentences in memory>"
        return cls((Content(name, "".join(lines).encode("utf-8", "surrogatepass")),))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for sentence in self.with_documents():
            yield sentence.words

    def with_documents(
        self, tokenizing: Callable[[Iterable[str]], Iterable[str]] | None = None
    ) -> Iterator[SentenceInDocument]:
        """Yield every sentence with the number of its document.

        Args:
            tokenizing: Turns the lines of raw text into those of tokenized text; None if the files
                are tokenized.
        """
        documents = 0
        for path in self.paths:
            last = -1
            lines: Iterable[str] = (
                read_lines(path, Wanted.TEXT)
                if tokenizing is None
                else tokenizing(read_lines(path, Wanted.RAW_TEXT))
            )
            for last, words in sentences_in_documents(lines):
                yield SentenceInDocument(documents + last, words)
            documents += last + 1

    def place_of(self, sentence: int) -> tuple[str, int] | None:
        """Return the file and the line of a sentence; None where they cannot be read again.

        Args:
            sentence: Its number in the corpus, counted from 0.
        """
        for path in self.paths:
            if not can_be_read_twice(path):
                return None
            for line, text in enumerate(read_lines(path), 1):
                if not text.strip(SPACE):
                    continue
                if sentence == 0:
                    return source_name(path), line
                sentence -= 1
        return None

    def lines(self) -> Iterator[str]:
        """Yield every sentence as its line, not split."""
        for path in self.paths:
            yield from (line for line in read_lines(path, Wanted.TEXT) if line.strip(SPACE))

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """SHA-256 of the files' decompressed bytes, and their number of sentences and words."""
        sentences = tokens = 0
        digest = hashlib.sha256()
        for path in self.paths:
            blocks = hashed_blocks(path, digest, Wanted.TEXT)
            for _, words in sentences_in_documents(lines_of(blocks, path)):
                sentences += 1
                tokens += len(words)
        return Fingerprint(digest.hexdigest(), sentences, tokens)


def _as_paths(paths: Source | Iterable[Source], in_memory: str) -> tuple[Source, ...]:
    """Return the files of a corpus; one file need not stand in a list.

    Raises:
        UsageError: for what is no name of a file, naming what takes it if it is in memory.
    """
    found = (paths,) if isinstance(paths, str | os.PathLike) else tuple(paths)
    for path in found:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"a corpus is made of names of files, not of {type(path).__name__}. Use "
                f"`{in_memory}` for what is in memory."
            )
    return found


def sentences_in_documents(lines: Iterable[str]) -> Iterator[SentenceInDocument]:
    """Yield the sentences of lines with the number of their document; a blank line ends one."""
    document = -1
    starts_document = True
    for line in lines:
        words = split_words(line)
        if not words:
            starts_document = True
            continue
        document += starts_document
        starts_document = False
        yield SentenceInDocument(document, words)


def have_words(lines: Iterable[str]) -> list[bool]:
    """Return which lines contain a word: anything but ASCII white space."""
    return [bool(line.strip(SPACE)) for line in lines]


def read_sentences(source: Source) -> Iterator[tuple[str, ...]]:
    """Yield the sentences of a text file as tuples of words; blank lines are skipped."""
    yield from TextCorpus((source,))


def docs_path(path: Source) -> Path:
    """Return the file of document names: ``X.docs`` for ``X.mrg`` or ``X.mrg.gz``."""
    tree_file = Path(path)
    while tree_file.suffix in COMPRESSION:
        tree_file = tree_file.with_suffix("")
    return tree_file.with_suffix(".docs")


def document_names(path: Source) -> Sequence[str] | None:
    """Return the document of each tree of a file, or None if it has no ``.docs`` beside it."""
    if os.fspath(path) == "-":
        return None
    plain = docs_path(path)
    for candidate in (plain, *(plain.with_name(plain.name + end) for end in COMPRESSION)):
        if candidate != Path(path) and candidate.is_file():
            return list(read_lines(candidate))
    return None


def hashed_blocks(
    path: Source, digest: hashlib._Hash | None, wanted: Wanted | None = None
) -> Iterator[bytes]:
    """Yield the blocks of a file and hash them, and their length, so that files stay apart."""
    if digest is None:
        yield from _blocks_of(path, wanted)
        return
    size = 0
    for block in _blocks_of(path, wanted):
        digest.update(block)
        size += len(block)
        yield block
    digest.update(f"\n{size}\n".encode())


def _blocks_of(path: Source, wanted: Wanted | None) -> Iterator[bytes]:
    """Yield the blocks of a file; trees may come from a file of parses."""
    return tree_blocks(path) if wanted is Wanted.TREES else read_blocks(path, wanted=wanted)
