"""`treelm parse`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from cyclopts import Group, Parameter

from treelm.cli.engine_options import EngineOptions
from treelm.cli.model_options import (
    LengthOptions,
    NumberOfTrees,
    SearchOptions,
    UsualModelPath,
    at_once,
    note_unknown_words,
    open_model,
)
from treelm.cli.options import (
    SHOWN_PROBLEMS,
    CommonOptions,
    LineBuffered,
    OutputFile,
    TextFiles,
    TextOptions,
)
from treelm.cli.parse_incremental import IncrementalCall, write_partial_parses
from treelm.cli.tree_reranking import RerankOptions, meaning_of_scores
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import text_of
from treelm.grammar.parser_options import Long, ParserOptions, Pruning
from treelm.grammar.scored_tree import ParseStatus
from treelm.models.interface.abilities import GivesForests, has_ability
from treelm.models.interface.model import Task
from treelm.tasks.parse import LongSentences, lines_at_once, parser_options
from treelm.tasks.parse_file import FileParsed, parse_into_file, parser_fingerprint
from treelm.tasks.parse_shards import LINES_A_SHARD, ParsedText, TextParsing, text_shards
from treelm.tasks.text_check import TextCheck

#: How the name of a file of parses ends.
FOREST = ".forest"

#: K-best lists of a file of parses that are written at once.
_LISTS_AT_ONCE = 256

_REASONS = {
    ParseStatus.FAILED: "no tree was found; a flat one was written.",
    ParseStatus.TOO_LONG: "the sentence is too long to be parsed; a flat tree was written.",
    ParseStatus.SPLIT: "the sentence is too long to be parsed; trees of its pieces were joined.",
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PruningOptions:
    """How much a grammar prunes."""

    fast: bool = False
    """Prune more: faster, a little less accurate."""
    accurate: bool = False
    """Prune less: slower, a little more accurate."""

    @property
    def pruning(self) -> Pruning:
        """The name of the choice."""
        if self.fast and self.accurate:
            raise UsageError("choose one of --fast and --accurate.")
        return "fast" if self.fast else "accurate" if self.accurate else "default"


@Parameter(name="*", group=Group("Options for files of parses", sort_key=30))
@dataclass(frozen=True, kw_only=True)
class ForestOptions:
    """Options of files of parses."""

    forests: bool = False
    """With `-o FILE.forest`: keep all that pruning leaves instead of k-best lists; -k is then the
    number of trees that a reader lists."""
    restart: bool = False
    """With `-o FILE.forest`: start again, whatever the file contains."""
    parsed: Annotated[str | None, Parameter(name="--from", metavar="FILE")] = None
    """Write the trees of this file of parses, without a model."""

    @property
    def given(self) -> bool:
        """Whether any of them is given."""
        return self.forests or self.restart or self.parsed is not None

    def check(self, output: str) -> None:
        """Refuse what needs a file of parses where none is written."""
        if not output.endswith(FOREST):
            for name in ("restart", "forests"):
                if getattr(self, name):
                    raise UsageError(f"--{name} is used with -o FILE.forest only.")


def parse(
    files: TextFiles = None,
    /,
    *,
    model: UsualModelPath = None,
    k: NumberOfTrees = 1,
    pruning: PruningOptions = PruningOptions(),
    long: Long = "split",
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    rerank: RerankOptions = RerankOptions(),
    incremental: bool = False,
    forest: ForestOptions = ForestOptions(),
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    text: TextOptions = TextOptions(),
    engine: EngineOptions = EngineOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write the best tree of each sentence, one per line; or k-best lists; or a file of parses.

    A blank line gives a blank line. A sentence for which the grammar has no tree gets a flat one,
    and a warning with its line. With -k, each sentence gives a block: lines of a score, a tab and a
    tree, the best first, all different; a blank line ends the block. The score is what the grammar
    maximizes (--decoding when it was trained), which standard error names, not the probability of
    the tree; `treelm score --trees` gives that. A flat tree has the score -inf, and one that was
    joined from pieces has none: nan.

    With --rerank, another model of trees decides which of the parser's best trees is the best: more
    accurate, and slower, because the parser must list them.

    With `-o FILE.forest`, trees and scores go into a compressed file, a batch of sentences at a
    time. If the program is interrupted, the same command resumes where it stopped. `--from
    FILE.forest` writes such a file as text.

    With --engine, other processes or machines parse batches of sentences. What is written is the
    same, and a run that was begun by one engine can be resumed by another.

    Args:
        k: Number of trees for each sentence; with more than one, scores are written too.
        long: Sentences of more words than --max-words, 200 for grammars: split parses pieces, cut
            at punctuation, and joins their trees under one root; flat writes flat trees; refuse is
            an error. Standard error says how many there were. With --forests, split is flat.
        incremental: Show what the parser holds possible after each word: the -k best partial trees
            with their probabilities, which of them survive, and which come back. Text, or by the
            name of the output .svg, .html (with a slider over the words) or .json. For models that
            parse word by word: hhmm, and mixtures with one.
    """
    chosen = pruning.pruning
    if incremental:
        write_partial_parses(
            IncrementalCall(files, model, k, output),
            refused=forest.given or engine.is_given or chosen != "default" or long != "split",
            search=search,
            length=length,
            text=text,
            common=common,
        )
        return
    forest.check(output)
    rerank.check(forests=forest.forests)
    is_forest = output.endswith(FOREST)
    if forest.parsed is not None:
        how_to_parse = (
            chosen != "default"
            or search.given
            or long != "split"
            or length.max_words
            or rerank.rerank is not None
        )
        if model is not None or files or is_forest or how_to_parse or engine.is_given:
            raise UsageError(
                "--from cannot be combined with a model, text, --engine or -o FILE.forest: it "
                "writes a file of parses as text."
            )
        _write_parsed(forest.parsed, k, output, text, common)
        return
    if line_buffered and engine.is_given:
        raise UsageError("--line-buffered cannot be combined with --engine: one process answers.")
    workers = engine.executor(text)  # refuses options before anything is read
    opened = open_model(model, Task.PARSE, text, common)
    text = opened.text
    loaded = length.apply(search.apply(opened.model))
    if chosen != "default" and not has_ability(loaded, GivesForests):
        raise UsageError(
            f"--{chosen} is for grammars; {loaded.system} models keep a beam: --beam-width and "
            "--beam-ratio say how wide it is."
        )
    options = parser_options(loaded, chosen, long=long, max_words=length.max_words)
    loaded = rerank.apply(loaded)
    check = TextCheck(loaded.vocabulary, tokenized=text.is_raw)
    sources = ((file, check.watch(lines)) for file, lines in text.first_lines(files or ["-"]))
    if is_forest:
        with workers:
            done = parse_into_file(
                loaded,
                sources,
                output,
                fingerprint=parser_fingerprint(
                    opened.folder, {**search.given, **rerank.facts(loaded)}
                ),
                k=k,
                forests=forest.forests,
                options=options,
                threads=engine.threads(text),
                restart=forest.restart,
                executor=workers,
                progress=common.progress,
            )
        _note_done(done, source_name(output), common)
        _note_long(done.long, options, common)
        note_unknown_words(check, common)
        return
    loaded.require(Task.PARSE)  # asked before the first line is read
    if k > 1:
        common.note(f"the score of a tree is {meaning_of_scores(loaded, options)}.")
    flush = at_once(output, line_buffered=line_buffered)
    size = lines_at_once(rerank.trees(k))
    size = min(size, LINES_A_SHARD) if engine.is_given else 1 if flush else size
    shards = (shard for file, lines in sources for shard in text_shards(file, lines, size))
    parsing = TextParsing(model=loaded, k=k, options=options, threads=engine.threads(text))
    counted = LongSentences()
    with workers, write_atomically(output) as out:
        notes = _Fallbacks(counted, common)
        for parsed in workers.map(parsing, shards):
            notes.add(parsed)
            out.write(parsed.text)
            if flush:
                out.flush()
        notes.finish()
    _note_long(counted, options, common)
    note_unknown_words(check, common)


def _note_done(done: FileParsed, name: str, common: CommonOptions) -> None:
    if done.before:
        common.note(f"{name}: {done.before} sentences were there already.")
    if done.fallbacks:
        common.note(f"warning: {done.fallbacks} sentences without a tree were given a flat one.")
    common.note(f"{name}: parses of {done.sentences} sentences.")


class _Fallbacks:
    """Says which sentences have no tree: a few of them, or with --verbose all."""

    def __init__(self, counted: LongSentences, common: CommonOptions) -> None:
        self._counted = counted
        self._common = common
        self._found = 0

    def add(self, parsed: ParsedText) -> None:
        """Look at some more sentences."""
        for line, status in parsed.statuses:
            self._counted.count(status)
            if status == ParseStatus.FAILED or (self._common.verbose and status in _REASONS):
                self._found += 1
                if self._common.verbose or self._found <= SHOWN_PROBLEMS:
                    place = f"{source_name(parsed.source)}:{line}"
                    self._common.note(f"warning: {place}: {_REASONS[status]}")

    def finish(self) -> None:
        """Say how many were not named."""
        if self._found > SHOWN_PROBLEMS and not self._common.verbose:
            rest = self._found - SHOWN_PROBLEMS
            self._common.note(f"... and {rest} more without a tree; --verbose shows them.")


def _note_long(counted: LongSentences, options: ParserOptions, common: CommonOptions) -> None:
    for count, what in ((counted.split, "split"), (counted.flat, "given flat trees")):
        if count:
            sentences = "sentence" if count == 1 else "sentences"
            were = "was" if count == 1 else "were"
            common.note(f"{count} {sentences} of over {options.max_words} words {were} {what}.")


def _write_parsed(
    parsed: str, k: int, output: str, text: TextOptions, common: CommonOptions
) -> None:
    with ForestFile(parsed) as file, write_atomically(output) as out:
        if not file.is_complete:
            common.note(f"warning: {file.name}: the parsing of this text was not finished.")
        if k > file.header.k:
            common.note(
                f"warning: {file.name}: contains at most {file.header.k} trees of a sentence."
            )
        rest = text.first(iter(file))
        while batch := list(islice(rest, _LISTS_AT_ONCE)):
            out.write(text_of([found and found.first(k) for found in batch], scores=k > 1))
