"""What is in a file: trees, parses, text or a language profile, with all errors in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from treelm.characters import visible
from treelm.corpus.brackets import (
    OnError,
    Problem,
    ReadOptions,
    ReadReport,
    looks_like_brackets,
    read_packed,
    tree_blocks,
)
from treelm.corpus.corpus import docs_path, document_names, sentences_in_documents
from treelm.corpus.file_kinds import Wanted, check_kind
from treelm.corpus.files import Source, is_forest, lines_of, read_blocks, source_name
from treelm.grammar.forest_file import ForestFile
from treelm.parallel.progress import SILENT, Progress
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.profile import load_profile

#: How many of the most frequent labels and words are kept.
TOP = 12


@dataclass(slots=True)
class TreeStatistics:
    """Counts over trees; add batches to it.

    Examples:
        >>> from treelm.trees.tree import Tree
        >>> statistics = TreeStatistics()
        >>> statistics.add(PackedTrees.from_trees([Tree("NP", [Tree("DT", "a"), Tree("NN", "b")])]))
        >>> statistics.trees, statistics.tokens, statistics.words["a"]
        (1, 2, 1)
    """

    trees: int = 0
    tokens: int = 0
    nodes: int = 0
    longest: int = 0
    deepest: int = 0
    words: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    phrases: Counter[str] = field(default_factory=Counter)

    def add(self, batch: PackedTrees) -> None:
        """Count one batch."""
        is_tag = batch.node_word != NO_WORD
        self.trees += len(batch)
        self.nodes += len(is_tag)
        self.tokens += int(is_tag.sum())
        starts = batch.tree_start.astype(np.int64)
        lengths = np.add.reduceat(is_tag.astype(np.int64), starts[:-1])
        self.longest = max(self.longest, int(lengths.max()))
        self.deepest = max(self.deepest, _deepest(batch))
        _count(self.words, batch.words, batch.node_word[is_tag])
        _count(self.tags, batch.labels, batch.node_label[is_tag])
        _count(self.phrases, batch.labels, batch.node_label[~is_tag])

    @property
    def clashes(self) -> list[str]:
        """Labels used both on words and on phrases; models need them distinct."""
        return sorted(self.tags.keys() & self.phrases.keys())


def _count(counter: Counter[str], names: tuple[str, ...], ids: np.ndarray) -> None:
    for index, count in enumerate(np.bincount(ids, minlength=len(names)).tolist()):
        if count:
            counter[str(names[index])] += count


def _deepest(batch: PackedTrees) -> int:
    """Return the largest number of nodes on a path down, from where subtrees begin and end."""
    first = np.arange(len(batch.node_size), dtype=np.int64)
    change = np.zeros(len(first) + 1, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, first + batch.node_size, -1)
    return int(np.cumsum(change).max())


@dataclass(frozen=True, slots=True)
class TreeFileReport:
    """What `inspect_trees` found."""

    statistics: TreeStatistics
    documents: int | None
    document_problem: str | None
    failed: int
    dropped: int
    problems: tuple[Problem, ...]
    parses: dict[str, object] | None = None
    """What a file of parses says about itself; its trees are the best of each sentence."""

    def rows(self) -> Iterator[tuple[str, object]]:
        """Yield names and values in reading order."""
        counts = self.statistics
        yield from (self.parses or {}).items()
        yield "trees", counts.trees
        yield "tokens", counts.tokens
        yield "word_types", len(counts.words)
        yield "documents", self.documents
        yield "mean_length", round(counts.tokens / counts.trees, 2) if counts.trees else 0.0
        yield "longest", counts.longest
        yield "deepest", counts.deepest
        yield "tags", len(counts.tags)
        yield "phrase_labels", len(counts.phrases)
        yield "tags_that_are_phrases", counts.clashes
        yield "malformed", self.failed
        yield "only_empty_elements", self.dropped
        yield "frequent_tags", dict(counts.tags.most_common(TOP))
        yield "frequent_phrases", dict(counts.phrases.most_common(TOP))
        yield "frequent_words", dict(counts.words.most_common(TOP))


def inspect_trees(
    source: Source,
    options: ReadOptions,
    *,
    blocks: Iterable[bytes] | None = None,
    on_error: OnError = "skip",
    threads: int = 1,
    progress: Progress = SILENT,
) -> TreeFileReport:
    """Return counts and problems of a file of trees.

    Args:
        source: File name, or ``-``.
        options: How brackets are read.
        blocks: The content of the file, if it is already open.
        on_error: ``skip`` malformed trees and list them, or ``raise`` at the first.
        threads: Number of threads.
        progress: Called with the number of bytes read.
    """
    statistics = TreeStatistics()
    report = ReadReport()
    for batch in read_packed(
        source if blocks is None else blocks,
        options,
        name=source_name(source),
        on_error=on_error,
        report=report,
        threads=threads,
        progress=progress,
    ):
        statistics.add(batch)
    names = document_names(source)
    problem = None
    if names is not None and len(names) != report.seen:
        problem = (
            f"{visible(str(docs_path(source)))}: names the documents of {len(names)} trees, but "
            f"there are {report.seen} (E_DOCUMENTS). It needs one line for each tree."
        )
    return TreeFileReport(
        statistics,
        None if names is None else len(set(names)),
        problem,
        report.failed,
        report.dropped,
        tuple(report.problems),
    )


def inspect_text(lines: Iterable[str]) -> dict[str, object]:
    """Return counts of lines of tokenized text."""
    words: Counter[str] = Counter()
    sentences = longest = 0
    documents = 0
    for document, sentence in sentences_in_documents(lines):
        documents = document + 1
        words.update(sentence)
        sentences += 1
        longest = max(longest, len(sentence))
    tokens = words.total()
    return {
        "sentences": sentences,
        "tokens": tokens,
        "word_types": len(words),
        "documents": documents,
        "mean_length": round(tokens / sentences, 2) if sentences else 0.0,
        "longest": longest,
        "frequent_words": dict(words.most_common(TOP)),
    }


def inspect_file(
    source: Source,
    options: ReadOptions,
    *,
    on_error: OnError = "skip",
    threads: int = 1,
    progress: Progress = SILENT,
) -> TreeFileReport | dict[str, object]:
    """Return what is in a file of trees, a file of text, or a profile; a pipe is read once."""
    if Path(source).suffix == ".toml":
        return inspect_profile(source)
    parses = inspect_parses(source) if is_forest(source) else None
    blocks = tree_blocks(source) if parses else read_blocks(source)
    first = next(blocks, b"")
    rest = chain([first], blocks)
    if not (parses or looks_like_brackets(first) or Path(source).suffix == ".mrg"):
        check_kind(first, Wanted.TEXT, source_name(source))
        return inspect_text(lines_of(rest, source))
    check_kind(first, Wanted.TREES, source_name(source))
    found = inspect_trees(
        source, options, blocks=rest, on_error=on_error, threads=threads, progress=progress
    )
    return replace(found, parses=parses)


def inspect_parses(source: Source) -> dict[str, object]:
    """Return what a file of parses says about itself."""
    with ForestFile(source) as file:
        return {
            "parses": file.header.content,
            "sentences": len(file),
            "trees_per_sentence": file.header.k,
            "finished": file.is_complete,
        }


def inspect_profile(path: Source) -> dict[str, object]:
    """Return a summary of a language profile."""
    profile = load_profile(str(path))
    return {
        "name": profile.name,
        "description": profile.description,
        "head_rules": sorted(profile.heads.rules),
        "punctuation_tags": list(profile.punctuation.tags),
        "drop_tags": list(profile.reading.drop_tags),
        "flatten": dict(profile.reading.flatten),
        "temporal_tags": dict(profile.treelet.temporal_tags),
        "fingerprint": profile.fingerprint,
    }
