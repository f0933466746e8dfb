"""`treelm surprisal`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from treelm.cli.model_options import ModelPath, SearchOptions, at_once
from treelm.cli.options import (
    CommonOptions,
    File,
    LineBuffered,
    NewFile,
    OutputFile,
    TextFiles,
    TextOptions,
)
from treelm.cli.ranges import at_least
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.errors import UsageError
from treelm.tasks.surprisal.tables import TableFormat, table_lines

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel
    from treelm.tasks.surprisal.pictures import SurprisalPlot


@Parameter(name="*", group=Group("Options for stimuli", sort_key=30))
@dataclass(frozen=True, kw_only=True)
class StimuliOptions:
    """Options of tables of stimuli."""

    stimuli: File | None = None
    """Table with a column word, tab-separated or .csv; its rows are written with columns added."""
    sentence: Annotated[
        list[str] | None,
        Parameter(
            metavar="COLUMN...",
            show_default="sent_id; or sentence; or item and condition; or item",
        ),
    ] = None
    """With --stimuli: columns whose values tell sentences apart; neighbouring rows that agree in
    all of them are one sentence."""


@Parameter(name="*", group=Group("Options for pictures", sort_key=31))
@dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """Options of pictures of the first 20 sentences."""

    plot: NewFile | None = None
    """SVG file to write: bars above the words of the first 20 sentences."""
    parser_states: NewFile | None = None
    """File to write: the most probable parser states of an HHMM after each word of the first 20
    sentences; .svg for a picture, else text."""
    best: Annotated[int, at_least(1)] = 3
    """With --parser-states: how many parser states are shown after each word."""

    @property
    def is_given(self) -> bool:
        """Whether anything is drawn."""
        return self.plot is not None or self.parser_states is not None

    def drawer(self, model: LanguageModel) -> SurprisalPlot:
        """Return what draws while rows go by."""
        from treelm.tasks.surprisal.pictures import ParserStateDrawings, SurprisalPlot

        drawings = None
        if self.parser_states is not None:
            drawings = ParserStateDrawings(model, Path(self.parser_states), self.best)
        return SurprisalPlot(model, None if self.plot is None else Path(self.plot), drawings)


def surprisal(
    files: TextFiles = None,
    /,
    *,
    model: Annotated[ModelPath, Parameter(help="Model folder of an incremental model.")],
    eos: bool = False,
    measures: Annotated[list[str] | None, Parameter(metavar="MEASURE...")] = None,
    format: TableFormat = "tsv",  # noqa: A002 (the option's name)
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    stimuli: StimuliOptions = StimuliOptions(),
    pictures: PictureOptions = PictureOptions(),
    search: SearchOptions = SearchOptions(),
    text: TextOptions = TextOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write the surprisal of each word, in bits, as a table with one row per word.

    A blank line ends a document, and so does the end of a file.

    Args:
        eos: Add a row `</s>` for the end of each sentence.
        measures: Columns about the states of a parser: all, or any of entropy, entropy_reduction,
            depth, open_nodes, embedding_difference, beam_mass.
        format: How the table is written; tsv is never quoted.
    """
    from treelm.models.registry import load
    from treelm.tasks.surprisal.measures import chosen_measures
    from treelm.tasks.surprisal.surprisal import surprisal_rows

    del common
    loaded = search.apply(load(model))
    chosen = chosen_measures(loaded, measures or ())
    if stimuli.stimuli is not None:
        if files or eos or pictures.is_given or format in ("itemmeasures", "minicons"):
            raise UsageError(
                "--stimuli keeps the rows of its table: it cannot be combined with files, --eos, "
                "--plot or --states, and writes tsv, csv, jsonl or parquet."
            )
        from treelm.tasks.surprisal.stimuli import read_stimuli, stimuli_table

        made = stimuli_table(
            loaded,
            read_stimuli(stimuli.stimuli, stimuli.sentence or ()),
            format,  # type: ignore[arg-type]  # checked above
            measures=chosen,
            threads=text.thread_count,
        )
        with write_atomically(output) as out:
            out.write(made)
        return
    if stimuli.sentence is not None:
        raise UsageError("--sentence goes with --stimuli.")
    flush = at_once(output, line_buffered=line_buffered)
    rows = surprisal_rows(
        loaded,
        text.first(TextCorpus(tuple(files or ["-"])).with_documents()),
        eos=eos,
        measures=chosen,
        threads=text.thread_count,
        line_buffered=flush,
    )
    drawer = pictures.drawer(loaded) if pictures.is_given else None
    watched = rows if drawer is None else drawer.watch(rows)
    with write_atomically(output) as out:
        for piece in table_lines(watched, format, chosen):
            out.write(piece)
            if flush:
                out.flush()
    if drawer is not None:
        drawer.write()
