"""`treelm surprisal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from treelm.cli.model_options import ModelPath, SearchOptions, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.errors import UsageError
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import load
from treelm.tasks.surprisal.measures import chosen_measures
from treelm.tasks.surprisal.pictures import ParserStateDrawings, SurprisalPlot
from treelm.tasks.surprisal.stimuli import read_stimuli, stimuli_table
from treelm.tasks.surprisal.surprisal import surprisal_rows
from treelm.tasks.surprisal.tables import table_lines


def surprisal(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    eos: bool = False,
    measures: list[str] | None = None,
    format: Literal["tsv", "csv", "jsonl", "parquet", "itemmeasures", "minicons"] = "tsv",  # noqa: A002 (the option's name)
    stimuli: str | None = None,
    sentence: list[str] | None = None,
    plot: str | None = None,
    parser_states: Annotated[str | None, Parameter(name=["--parser-states", "--beliefs"])] = None,
    best: int = 3,
    output: OutputFile = "-",
    line_buffered: bool = False,
    search: SearchOptions | None = None,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the surprisal of each word, in bits, as a table.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given. A
            blank line ends a document, and so does a file.
        model: Model folder of an incremental model.
        eos: Add a row </s> for the end of each sentence.
        measures: Columns about the parser state: all, or any of entropy, entropy_reduction,
            depth, open_nodes, embedding_difference, beam_mass.
        format: tsv (never quoted), csv, jsonl, parquet, itemmeasures or minicons.
        stimuli: Table with a column word, tabs or .csv; its rows come back with columns added.
        sentence: With --stimuli: columns by which neighbouring rows are one sentence; default:
            sent_id, sentence, item and condition, or item.
        plot: SVG file to write: bars above the words, for the first 20 sentences.
        parser_states: File to write: the most probable stacks of an HHMM after each word of the
            first 20 sentences; .svg for a picture, else text.
        best: With --parser-states: how many stacks.
        output: File to write; standard output by default.
        line_buffered: Write every sentence at once, for use in pipes.
        search: Search.
        text: Text.
        common: Common.
    """
    del common
    text = text or TextOptions()
    loaded = (search or SearchOptions()).apply(load(model))
    chosen = chosen_measures(loaded, measures or ())
    if stimuli is not None:
        if files or eos or plot or parser_states or format in ("itemmeasures", "minicons"):
            raise UsageError(
                "--stimuli keeps the rows of its table: give no other files, and tsv, csv, jsonl "
                "or parquet."
            )
        table = read_stimuli(stimuli, sentence or ())
        made = stimuli_table(
            loaded,
            table,
            format,  # type: ignore[arg-type]  # checked above
            measures=chosen,
            threads=text.thread_count,
        )
        with write_atomically(output) as out:
            out.write(made)
        return
    if sentence is not None:
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
    pictures = _pictures(loaded, plot, parser_states, best)
    with write_atomically(output) as out:
        for piece in table_lines(pictures.watch(rows), format, chosen):
            out.write(piece)
            if flush:
                out.flush()
    pictures.write()


def _pictures(
    model: LanguageModel, plot: str | None, parser_states: str | None, best: int
) -> SurprisalPlot:
    drawings = None
    if parser_states is not None:
        drawings = ParserStateDrawings(model, Path(parser_states), best)
    return SurprisalPlot(model, None if plot is None else Path(plot), drawings)
