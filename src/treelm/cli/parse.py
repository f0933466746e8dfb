"""`treelm parse`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import SearchOptions, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import KBest, text_of
from treelm.grammar.parser_options import Pruning
from treelm.grammar.scored_tree import ParseStatus
from treelm.models.registry import load
from treelm.tasks.parse import ParsedBatch, parse_batches
from treelm.tasks.parse_file import parse_into_file, parser_fingerprint

#: How the name of a file of parses ends.
FOREST = ".forest"


def parse(
    files: InputFiles = None,
    /,
    *,
    model: Annotated[str | None, Parameter(name=["--model", "-m"])] = None,
    trees: Annotated[int, Parameter(name=["--trees", "-k"])] = 1,
    fast: bool = False,
    accurate: bool = False,
    output: OutputFile = "-",
    forests: bool = False,
    restart: bool = False,
    parsed: Annotated[str | None, Parameter(name="--from")] = None,
    line_buffered: bool = False,
    search: SearchOptions | None = None,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the best tree of each sentence, one a line; or the k best; or a file of parses.

    A blank line gives a blank line. A sentence for which the grammar has no tree gets a flat one,
    and a warning with its line. With -k, each sentence gives a block: lines of a score, a tab and a
    tree, the best first, all different; a blank line ends the block.

    With -o FILE.forest, trees and scores go into a compressed file, a batch of sentences at a time.
    If the program is stopped, the same command goes on where it was. --from FILE.forest writes such
    a file as text.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
        trees: Trees of each sentence; with more than one, scores are written too.
        fast: Prune more: faster, a little less accurate.
        accurate: Prune less: slower, a little more accurate.
        output: File to write; standard output by default.
        forests: With -o FILE.forest: keep all that pruning leaves instead of lists of trees; -k is
            then how many trees a reader lists.
        restart: With -o FILE.forest: begin anew whatever the file holds.
        parsed: Write the trees of this file of parses, without a model.
        line_buffered: Write every tree at once, for use in pipes.
        search: Search.
        text: Text.
        common: Common.
    """
    text, common = text or TextOptions(), common or CommonOptions()
    search = search or SearchOptions()
    if fast and accurate:
        raise UsageError("choose one of --fast and --accurate.")
    if trees < 1:
        raise UsageError("-k must be 1 or more.")
    is_forest = output.endswith(FOREST)
    if (restart or forests) and not is_forest:
        name = "--restart" if restart else "--forests"
        raise UsageError(f"{name} is used with -o FILE.forest only.")
    if parsed is not None:
        if model is not None or files or is_forest or fast or accurate or search.given:
            raise UsageError("--from takes neither a model, nor text, nor writes a file of parses.")
        _write_parsed(parsed, trees, output, text, common)
        return
    if model is None:
        raise UsageError("name the model that parses, with -m FOLDER.")
    loaded = search.apply(load(model))
    pruning: Pruning = "fast" if fast else "accurate" if accurate else "default"
    options = replace(loaded.parser_options, pruning=pruning)
    if not is_forest:
        flush = at_once(output, line_buffered=line_buffered)
        with write_atomically(output) as out:
            for file, lines in text.first_lines(files or ["-"]):
                batches = parse_batches(
                    loaded,
                    lines,
                    trees,
                    options=options,
                    threads=text.thread_count,
                    line_buffered=flush,
                    source=file,
                )
                for batch in batches:
                    _note_fallbacks(batch, file, common)
                    out.write(text_of(batch.lists, scores=trees > 1))
                    if flush:
                        out.flush()
        return
    done = parse_into_file(
        loaded,
        text.first_lines(files or ["-"]),
        output,
        fingerprint=parser_fingerprint(Path(model), search.given),
        k=trees,
        forests=forests,
        options=options,
        threads=text.thread_count,
        restart=restart,
        progress=common.progress,
    )
    if done.before:
        common.note(f"{source_name(output)}: {done.before} sentences were there already.")
    if done.fallbacks:
        common.note(f"warning: {done.fallbacks} sentences without a tree were given a flat one.")
    common.note(f"{source_name(output)}: parses of {done.sentences} sentences.")


def _note_fallbacks(batch: ParsedBatch, file: str, common: CommonOptions) -> None:
    for line, status in batch.statuses:
        if status in _REASONS:
            common.note(f"warning: {source_name(file)}:{line}: {_REASONS[status]}")


def _write_parsed(
    parsed: str, trees: int, output: str, text: TextOptions, common: CommonOptions
) -> None:
    with ForestFile(parsed) as file, write_atomically(output) as out:
        if not file.is_complete:
            common.note(f"warning: {file.name}: the parsing of this text was not finished.")
        if trees > file.header.k:
            common.note(f"warning: {file.name}: holds at most {file.header.k} trees of a sentence.")
        lists: Iterator[KBest | None] = text.first(iter(file))
        while batch := list(islice(lists, 256)):
            shown = [found and found.first(trees) for found in batch]
            out.write(text_of(shown, scores=trees > 1))


_REASONS = {
    ParseStatus.FAILED: "no tree was found; a flat one was written.",
    ParseStatus.TOO_LONG: "the sentence is too long to be parsed; a flat tree was written.",
}
