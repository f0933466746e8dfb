"""`treelm surprisal`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from treelm.cli.engine_options import EngineOptions
from treelm.cli.explain_option import write_explanations
from treelm.cli.model_options import (
    LengthOptions,
    SearchOptions,
    at_once,
    note_unknown_words,
    open_model,
)
from treelm.cli.options import (
    CommonOptions,
    File,
    LineBuffered,
    NewFile,
    NewPicture,
    OutputFile,
    TextFiles,
    TextOptions,
)
from treelm.cli.ranges import at_least
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.corpus.lengths import lines_of_sentences
from treelm.errors import UsageError
from treelm.tasks.surprisal.tables import TableFormat, table_lines
from treelm.tasks.text_check import TextCheck

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel
    from treelm.tasks.surprisal.pictures import SurprisalPlot
    from treelm.tasks.surprisal.stimuli import MeasuredStimuli


@Parameter(name="*", group=Group("Options for stimuli", sort_key=30))
@dataclass(frozen=True, kw_only=True)
class StimuliOptions:
    """Options of tables of stimuli."""

    stimuli: File | None = None
    """Table with a column word, or sentence for whole sentences: tab-separated, .csv or .parquet.
    Its rows are written with columns added, one for each word of a whole sentence."""
    sentence: Annotated[
        list[str] | None,
        Parameter(
            metavar="COLUMN...",
            show_default="sent_id; or sentence; or item and condition; or item",
        ),
    ] = None
    """With --stimuli: columns whose values tell sentences apart; neighbouring rows that agree in
    all of them are one sentence."""
    document: Annotated[
        list[str] | None, Parameter(metavar="COLUMN...", show_default="every sentence stands alone")
    ] = None
    """With --stimuli: columns whose values tell documents apart, which models with topics remember
    from one sentence to the next."""


@Parameter(name="*", group=Group("Options for pictures", sort_key=31))
@dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """Options of pictures of the first 20 sentences."""

    plot: NewPicture | None = None
    """Picture to write, .svg or .html: bars above the words of the first 20 sentences."""
    parser_states: NewFile | None = None
    """File to write: the most probable parser states of an HHMM after each word of the first 20
    sentences; .svg or .html for a picture, else text."""
    best: Annotated[int | None, at_least(1), Parameter(show_default="3")] = None
    """With --parser-states: how many parser states are shown after each word."""

    @property
    def is_given(self) -> bool:
        """Whether anything is drawn."""
        return self.plot is not None or self.parser_states is not None

    def check(self) -> None:
        """Refuse formats that are not written, before a model is loaded."""
        if self.parser_states is not None:
            from treelm.view.picture_files import check_picture_or_text

            check_picture_or_text(self.parser_states)

    def drawer(self, model: LanguageModel) -> SurprisalPlot:
        """Return what draws while rows go by."""
        from treelm.tasks.surprisal.pictures import ParserStateDrawings, SurprisalPlot

        drawings = None
        if self.parser_states is not None:
            drawings = ParserStateDrawings(model, Path(self.parser_states), self.best or 3)
        return SurprisalPlot(model, None if self.plot is None else Path(self.plot), drawings)


@dataclass(frozen=True)
class _Models:
    """The models that measure a table of stimuli, by name, and how its words are taken."""

    by_name: dict[str, LanguageModel]
    text: TextOptions

    @classmethod
    def opened(
        cls,
        names: Sequence[str | None],
        text: TextOptions,
        search: SearchOptions,
        length: LengthOptions,
        common: CommonOptions,
    ) -> _Models:
        """Return models, all for tokenized text."""
        from treelm.models.interface.model import Task
        from treelm.models.interface.raw_text import shared_tokenizing
        from treelm.tasks.surprisal.stimuli import model_names

        found = [open_model(name, Task.SURPRISAL, text, common) for name in names]
        if len({each.text for each in found}) > 1:
            raise UsageError(
                "some of the models take raw text and others tokenized text: say --tokenize or "
                "--tokenized."
            )
        if found[0].text.is_raw:
            shared_tokenizing(each.saved for each in found)  # else words differ between models
        models = search.apply_to_several([each.model for each in found])
        called = model_names(str(each.folder) for each in found)
        pairs = zip(called, map(length.apply, models), strict=True)
        return cls(dict(pairs), found[0].text)

    def measured(
        self, stimuli: StimuliOptions, measures: Sequence[str], common: CommonOptions
    ) -> MeasuredStimuli:
        """Return the table with columns of all models."""
        from treelm.tasks.surprisal.stimuli import measure_stimuli, read_stimuli

        assert stimuli.stimuli is not None  # else nobody asks
        raw = self.text.is_raw
        table = replace(
            read_stimuli(stimuli.stimuli, stimuli.sentence or (), tokenizing=raw),
            tokenize=self.text.tokenizing,
        )
        if stimuli.document:
            table = table.in_documents(stimuli.document)
        alone = len(self.by_name) == 1
        for name, model in self.by_name.items():
            check = TextCheck(model.vocabulary, tokenized=raw, model="the model" if alone else name)
            for regions in table.sentences():
                check.add_sentences([list(chain.from_iterable(regions))])
            note_unknown_words(check, common)
            _note_no_measures(model, measures, common)
        return measure_stimuli(
            next(iter(self.by_name.values())) if alone else self.by_name,
            table,
            measures=measures,
            threads=self.text.thread_count,
        )


def _note_no_measures(model: LanguageModel, measures: Sequence[str], common: CommonOptions) -> None:
    """Say that a model has none of the measures that were asked for."""
    from treelm.tasks.surprisal.measures import parsing_part

    if "all" in measures and parsing_part(model) is None:
        common.note(
            f"--measures all adds no column: {model.system} models do not parse word by word, so "
            "there are no parser states to measure."
        )


def surprisal(
    files: TextFiles = None,
    /,
    *,
    model: Annotated[
        list[str] | None,
        Parameter(
            name=["--model", "-m"],
            metavar="MODEL",
            consume_multiple=False,
            help="Model folder, or the name of a ready model; with --stimuli once for each of "
            "several models.",
            show_default="the ready model for this, if one is installed",
        ),
    ] = None,
    eos: bool = False,
    explain: bool = False,
    measures: Annotated[list[str] | None, Parameter(metavar="MEASURE...")] = None,
    format: TableFormat = "tsv",  # noqa: A002 (the option's name)
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    stimuli: StimuliOptions = StimuliOptions(),
    pictures: PictureOptions = PictureOptions(),
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    text: TextOptions = TextOptions(),
    engine: EngineOptions = EngineOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write the surprisal of each word, in bits, as a table with one row per word.

    A blank line ends a document, and so does the end of a file. With --engine, other processes or
    machines score batches of sentences, or of documents where the model remembers them; what is
    written is the same.

    Args:
        eos: Add a row `</s>` for the end of each sentence.
        explain: Write instead how the surprisal of each word is worked out, step by step, with the
            equations it follows.
        measures: Columns about the states of a parser: all, or any of syntactic, lexical, entropy,
            entropy_reduction, depth, open_nodes, embedding_difference, stacks, beam_mass. Of
            several models, those that parse word by word have them.
        format: How the table is written; tsv is never quoted.
    """
    from treelm.models.interface.model import Task
    from treelm.tasks.surprisal.measures import chosen_measures
    from treelm.tasks.surprisal.surprisal import surprisal_rows

    pictures.check()
    if explain and (measures or eos or pictures.is_given or stimuli.stimuli or engine.is_given):
        raise UsageError(
            "--explain writes the arithmetic of sentences: it cannot be combined with --eos, "
            "--measures, --stimuli, --engine or pictures."
        )
    if engine.is_given and (line_buffered or stimuli.stimuli is not None):
        raise UsageError("--engine cannot be combined with --line-buffered or --stimuli.")
    workers = engine.executor(text)  # refuses options before anything is read
    if stimuli.stimuli is not None:
        if files or eos or pictures.is_given or format in ("itemmeasures", "minicons"):
            raise UsageError(
                "--stimuli keeps the rows of its table: it cannot be combined with files, --eos, "
                "--plot or --parser-states, and writes tsv, csv, jsonl or parquet."
            )
        models = _Models.opened(model or [None], text, search, length, common)
        made = models.measured(stimuli, measures or (), common)
        with write_atomically(output) as out:
            out.write(made.to_bytes(format))  # type: ignore[arg-type]  # checked above
        return
    if model is not None and len(model) > 1:
        raise UsageError("several models go with --stimuli: a table of words has one.")
    opened = open_model(model[0] if model else None, Task.SURPRISAL, text, common)
    text = opened.text
    loaded = length.apply(search.apply(opened.model))
    if explain:
        write_explanations(loaded, files, output, text=text, common=common, in_bits=True)
        return
    check = TextCheck(loaded.vocabulary, tokenized=text.is_raw)
    chosen = chosen_measures(loaded, measures or ())
    _note_no_measures(loaded, measures or (), common)
    if pictures.best is not None and pictures.parser_states is None:
        raise UsageError("--best goes with --parser-states.")
    for name, given in (("--sentence", stimuli.sentence), ("--document", stimuli.document)):
        if given is not None:
            raise UsageError(f"{name} goes with --stimuli.")
    flush = at_once(output, line_buffered=line_buffered)
    raw = None
    if text.is_raw:
        from treelm.tasks.raw_text import RawText

        raw = RawText(text.tokenizing)
    corpus = TextCorpus(tuple(files or ["-"]))
    rows = surprisal_rows(
        loaded,
        text.first(corpus.with_documents(None if raw is None else raw.tokenized)),
        eos=eos,
        measures=chosen,
        threads=text.thread_count,
        line_buffered=flush,
        executor=workers,
    )
    rows = check.watch_rows(rows)
    shown = rows if raw is None else raw.word_rows(rows)
    drawer = pictures.drawer(loaded) if pictures.is_given else None
    watched = shown if drawer is None else drawer.watch(shown)
    with workers, lines_of_sentences(corpus), write_atomically(output) as out:
        for piece in table_lines(watched, format, chosen):
            out.write(piece)
            if flush:
                out.flush()
    if drawer is not None:
        drawer.write()
    note_unknown_words(check, common)
