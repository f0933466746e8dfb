"""From text to parse files, and back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import JsonValue

from treelm.corpus.files import Source
from treelm.corpus.words import split_words
from treelm.grammar.forest_format import ForestHeader
from treelm.grammar.forest_writer import open_forest
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.abilities import GivesForests, ask_for
from treelm.models.interface.model import LanguageModel, Task
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import ModelFolder, open_folder
from treelm.tasks.parse import LongSentences, lines_at_once
from treelm.tasks.parse_shards import ForestParsing, TextShard, TreeParsing, text_shards


class FileParsed(NamedTuple):
    """What a run did."""

    before: int
    """Number of sentences that the file already had."""
    sentences: int
    """Number of sentences it has now."""
    fallbacks: int
    """Number of new ones that got a flat tree for lack of a parse."""
    long: LongSentences
    """What became of new ones that are too long to be parsed as a whole."""


class _Counted(Iterator[str]):
    """Lines of a file, and how many were read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.taken = 0

    def __next__(self) -> str:
        line = next(self._lines)
        self.taken += 1
        return line


def parser_fingerprint(folder: Path, search: Mapping[str, float | str] | None = None) -> str:
    """Return what identifies a parser in a folder: a checksum over those of its files.

    Args:
        folder: Model folder.
        search: What else decides about its trees: search options that differ from the model's,
            a reranker.
    """

    def facts(opened: ModelFolder) -> object:
        files = {name: record.sha256 for name, record in opened.manifest.files.items()}
        parts = {name: facts(opened.part(name)) for name in sorted(opened.part_names)}
        return [opened.manifest.system, opened.manifest.config, files, parts]

    known = facts(open_folder(folder))
    text = json.dumps([known, dict(search)] if search else known, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def parse_into_file(
    model: LanguageModel,
    sources: Iterable[tuple[Source, Iterable[str]]],
    path: Source,
    *,
    fingerprint: str,
    k: int = 1,
    forests: bool = False,
    options: ParserOptions | None = None,
    threads: int = 1,
    restart: bool = False,
    executor: Executor = SERIAL,
    progress: Progress = SILENT,
) -> FileParsed:
    """Parse text into a parse file; resume a file that was begun.

    Args:
        model: Any model that parses.
        sources: Files and their lines, tokenized sentences.
        path: The file to write.
        fingerprint: What identifies the model, as `parser_fingerprint` returns it.
        k: Number of trees per sentence.
        forests: Keep pruned forests instead, from which up to `k` trees are listed on reading.
        options: Parser options.
        threads: Number of threads of every worker.
        restart: Start over, whatever the file contains.
        executor: Parses batches of sentences; the file is the same whoever does.
        progress: Progress callback.

    Raises:
        UnsupportedTask: for forests of a model that is not a grammar.
        UsageError: ``E_FOREST_OTHER`` if the file was begun with a different model, options or
            text.
        OutputFileError: if the file cannot be written.
    """
    if forests:  # asked before the file is opened
        ask_for(model, GivesForests, "give forests of trees")
    else:
        model.require(Task.PARSE)
    chosen: dict[str, JsonValue] = {
        name: value if value is None or isinstance(value, (str, int)) else repr(value)
        for name, value in dataclasses.asdict(options or ParserOptions()).items()
    }
    content: Literal["trees", "forests"] = "forests" if forests else "trees"
    header = ForestHeader(content=content, k=k, parser=fingerprint, options=chosen)
    texts = [(source, _Counted(lines)) for source, lines in sources]
    size = lines_at_once(k, forests=forests)
    kind = ForestParsing if forests else TreeParsing
    parsing = kind(model=model, k=k, options=options, threads=threads)

    def shards() -> Iterator[TextShard]:
        for source, lines in texts:
            yield from text_shards(source, lines, size, lines.taken + 1)

    fallbacks, long = 0, LongSentences()
    with (
        open_forest(path, header, restart=restart) as writer,
        progress.step("parsing", unit="sentences") as step,
    ):
        before = writer.sentences
        writer.skip(map(split_words, chain.from_iterable(lines for _, lines in texts)))
        step.advance(before)
        for parsed in executor.map(parsing, shards()):
            for batch in parsed.batches:
                writer.add_batch(batch)
                step.advance(batch.sentences)
            fallbacks += parsed.fallbacks
            long.add(parsed.long)
        writer.finish()
        return FileParsed(before, writer.sentences, fallbacks, long)
