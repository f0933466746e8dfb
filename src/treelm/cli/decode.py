"""`treelm decode`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

from cyclopts import Group, Parameter

from treelm.cli.engine_options import EngineOptions
from treelm.cli.model_options import SearchOptions, at_once, load_for_tokens
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    File,
    LineBuffered,
    NewFile,
    OutputFile,
    TextFiles,
    TextOptions,
)
from treelm.cli.ranges import Range, at_least, within
from treelm.corpus.files import write_atomically
from treelm.errors import UsageError
from treelm.limits import LARGEST_WEIGHT

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel
    from treelm.translation.decoder import DecoderConfig, Translation

_MEBIBYTE = 1 << 20


@Parameter(name="*", group=Group("Decoder options", sort_key=40))
@dataclass(frozen=True, kw_only=True)
class DecoderOptions:
    """How the decoder searches."""

    search: Literal["stack", "cube"] = "stack"
    """Stack extends every hypothesis by every phrase. Cube takes the most promising pairs of both
    first, and asks slow language models far less often."""
    stack_size: Annotated[int, at_least(1)] = 200
    """Hypotheses kept for each number of translated words."""
    beam_threshold: Annotated[float, within(Range(least=0, below=1))] = 1e-5
    """Drop hypotheses whose probability is below this share of the best one's; 0 keeps all."""
    distortion_limit: Annotated[int, at_least(-1)] = 10
    """Words that a jump may be long; 0 for none, -1 for any."""
    ttable_limit: Annotated[int, at_least(0)] = 20
    """Translations of a phrase that are tried; 0 for all."""
    max_trans_opt: Annotated[int, at_least(0)] = 50
    """Translations of a span that are tried; 0 for all."""
    max_phrase_length: Annotated[int, at_least(1)] = 7
    """Source words of a phrase."""
    early_discard: bool = False
    """Drop hypotheses that look bad by estimates before language models are asked."""
    pop_limit: Annotated[int, at_least(1)] = 1000
    """Cube search: pairs taken for each number of translated words."""
    min_pops_per_coverage: Annotated[int, at_least(0)] = 1
    """Cube search: pairs taken at least for each set of translated words."""
    max_seconds: Annotated[float | None, within(Range(above=0, most=LARGEST_WEIGHT))] = None
    """Time for a sentence. A note says how many sentences were cut."""
    max_mebibytes: Annotated[int | None, at_least(1)] = None
    """Memory for a sentence, in MiB. A note says how many sentences were cut."""

    def config(self) -> DecoderConfig:
        """Return the options as the decoder takes them."""
        from treelm.translation.decoder import DecoderConfig

        memory = None if self.max_mebibytes is None else self.max_mebibytes * _MEBIBYTE
        return DecoderConfig(
            search=self.search,
            stack_size=self.stack_size,
            beam_threshold=self.beam_threshold,
            distortion_limit=self.distortion_limit,
            ttable_limit=self.ttable_limit,
            max_trans_opt=self.max_trans_opt,
            max_phrase_length=self.max_phrase_length,
            early_discard=self.early_discard,
            pop_limit=self.pop_limit,
            min_pops_per_coverage=self.min_pops_per_coverage,
            max_seconds=self.max_seconds,
            max_bytes=memory,
        )


@Parameter(name="*", group=Group("Options of n-best lists", sort_key=45))
@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """What is written beside the best translations."""

    n_best: Annotated[tuple[int, str] | None, Parameter(metavar="N FILE")] = None
    """Write the N best translations of each sentence to a file, in the format of Moses."""
    distinct: bool = False
    """Write each string of words once into the n-best list."""
    alignments: bool = False
    """Write word alignments as a last column of the n-best list, where the table has them."""
    search_graph: NewFile | None = None
    """File to write: all hypotheses that lead to a translation."""

    @property
    def count(self) -> int:
        """Translations of a sentence that are asked for."""
        return 1 if self.n_best is None else self.n_best[0]

    def check(self) -> None:
        """Refuse what cannot be written, before the work."""
        from treelm.corpus.target import check_file_target

        if self.n_best is None:
            if self.distinct or self.alignments:
                raise UsageError("--distinct and --alignments are about the list of --n-best.")
            return
        count, file = self.n_best
        if not 1 <= count < 1 << 31:
            raise UsageError(f"--n-best {count}: at least 1 translation must be asked for.")
        check_file_target(file)


def decode(
    files: TextFiles = None,
    /,
    *,
    phrase_table: File,
    model: Annotated[
        list[str],
        Parameter(
            name=["--model", "-m"],
            metavar="MODEL",
            help="Model folder of a language model; give the option once for each.",
            consume_multiple=False,
        ),
    ],
    weights: File | None = None,
    reordering_table: File | None = None,
    allow_deletion: bool = False,
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    json: Annotated[AsJson, Parameter(help="Write one JSON object per line.")] = False,
    decoder: DecoderOptions = DecoderOptions(),
    lists: ListOptions = ListOptions(),
    search: SearchOptions = SearchOptions(),
    text: TextOptions = TextOptions(),
    engine: EngineOptions = EngineOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Translate sentences by phrases, one translation per line.

    A blank line gives a blank line. Words that the table does not have are copied. Language models
    are the features LM0, LM1 and so on, in the order in which they are given. With --engine, other
    processes or machines translate batches of sentences; each reads the tables for itself, and what
    is written is the same.

    Args:
        phrase_table: Phrase table in the format of Moses, or what treelm convert made of one.
        weights: File of weights, JSON or lines such as LM0= 0.5; a whole moses.ini will do.
        reordering_table: Table of orientations, msd-bidirectional-fe.
        allow_deletion: Take phrases that are translated by nothing.
    """
    from treelm.tasks.decode import (
        DecodingReport,
        make_decoder,
        record_of,
        tokenization_notes,
        unknown_word_notes,
    )

    lists.check()
    if engine.is_given and line_buffered:
        raise UsageError("--engine cannot be combined with --line-buffered: one process answers.")
    workers = engine.executor(text)  # refuses options before anything is read
    config = decoder.config()
    models = [_loaded(folder, search) for folder in model]
    made = make_decoder(
        phrase_table,
        models,
        weights,
        config,
        reordering=reordering_table,
        allow_deletion=allow_deletion,
        progress=common.progress,
    )
    for message in (*tokenization_notes(models), *unknown_word_notes(made)):
        common.note(message)
    if made.recombination != "exact" and common.verbose:
        common.note(f"recombination={made.recombination}")
    flush = at_once(output, line_buffered=line_buffered)
    report = DecodingReport()
    lines = (line for _, some in text.first_lines(files or ["-"]) for line in some)
    if engine.is_given:
        from treelm.tasks.decode_shards import Translating, translate_in_shards

        translating = Translating(
            phrase_table=str(Path(phrase_table).absolute()),
            models=models,
            weights=None if weights is None else str(Path(weights).absolute()),
            config=config,
            reordering=None if reordering_table is None else str(Path(reordering_table).absolute()),
            allow_deletion=allow_deletion,
            n_best=lists.count,
            distinct=lists.distinct,
            alignments=lists.alignments,
            graph=lists.search_graph is not None,
            threads=engine.threads(text),
        )
        found = translate_in_shards(translating, lines, workers, common.progress)
    else:
        found = made.translate(
            lines,
            n_best=lists.count,
            distinct=lists.distinct,
            alignments=lists.alignments,
            graph=lists.search_graph is not None,
            threads=text.thread_count,
            batch=1 if flush else None,
            progress=common.progress,
        )
    with ExitStack() as files_of:
        files_of.enter_context(workers)
        out = files_of.enter_context(write_atomically(output))
        beside = [
            (files_of.enter_context(write_atomically(file)), what)
            for file, what in (
                (lists.n_best[1] if lists.n_best else None, _list_lines),
                (lists.search_graph, _graph_lines),
            )
            if file is not None
        ]
        for each in report.watch(found):
            line = dumps(record_of(each)) if json else each.text
            out.write(f"{line}\n".encode())
            if flush:
                out.flush()
            for file, what in beside:
                _write(file, what(each))
    for message in report.messages():
        common.note(message)
    if common.verbose and report.seconds:
        common.note(
            f"{report.sentences} sentences in {report.seconds:.1f} seconds of all threads, "
            f"{report.counts.model_reads} phrases read by language models."
        )


def _loaded(folder: str, search: SearchOptions) -> LanguageModel:
    """Return a model; options of the search are for those that have them."""
    return search.apply_if_possible(load_for_tokens(folder))


def _list_lines(translation: Translation) -> Iterator[str]:
    from treelm.corpus.nbest import moses_lines

    return moses_lines([translation.n_best])


def _graph_lines(translation: Translation) -> Iterable[str]:
    return translation.graph.splitlines()


def _write(file: BinaryIO, lines: Iterable[str]) -> None:
    file.writelines(f"{line}\n".encode() for line in lines)
