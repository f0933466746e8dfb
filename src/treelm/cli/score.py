"""`treelm score`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from treelm.cli.model_options import (
    LengthOptions,
    ScoringOptions,
    SearchOptions,
    UsualModelPath,
    at_once,
    note_unknown_words,
    open_model,
)
from treelm.cli.options import CommonOptions, File, LineBuffered, OutputFile, TextFiles, TextOptions
from treelm.corpus.files import write_atomically
from treelm.errors import UsageError, option

if TYPE_CHECKING:
    from treelm.corpus.score_files import ScoreTable
    from treelm.models.interface.model import LanguageModel
    from treelm.tasks.score import ScoredLines

#: What scores are that are not exact.
_NOT_EXACT = {
    "beam": "the beam leaves out improbable parses",
    "lower_bound": "lower bounds, summed over the parses that were found",
    "margin": "they are margins of a classifier, not log probabilities",
}


@Parameter(name="*", group=Group("Options for scoring trees", sort_key=30))
@dataclass(frozen=True, kw_only=True)
class ScoredTrees:
    """Trees that are scored instead of sentences."""

    trees: File | None = None
    """File of trees: write the joint log probability of each tree and its words."""
    k_best: Annotated[File | None, Parameter(name="--k-best")] = None
    """File of k-best lists, as `treelm parse -k` and other parsers write them: write the log of
    the sum over the different trees of each list."""
    posterior: bool = False
    """With --trees: write the log probability of each tree given its words."""
    explain: bool = False
    """Write how each score is worked out, step by step, with the equations it follows. With --trees
    and a treelet model: a table of the factors of each tree, with the part of the context that
    decided."""

    @property
    def is_given(self) -> bool:
        """Whether trees are scored."""
        return self.trees is not None or self.k_best is not None

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.trees is not None and self.k_best is not None:
            raise UsageError("give one of files of text, --trees and --k-best.")
        if self.posterior and self.trees is None:
            raise UsageError("--posterior is that of trees: give them with --trees.")
        if self.explain and self.k_best is not None:
            raise UsageError("--explain cannot be combined with --k-best.")
        if self.explain and self.posterior:
            raise UsageError("--explain cannot be combined with --posterior.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SentenceScores:
    """What is written about sentences."""

    no_eos: bool = False
    """Leave out the end of the sentence."""
    no_bos: bool = False
    """N-gram models: score fragments, which do not begin with the start of a sentence."""
    slr: bool = False
    """Write the syntactic log-odds ratio instead: the log probability of each sentence minus that
    of its words alone, divided by its length."""
    format: Literal["text", "tsv"] = "text"
    """One number per line, or a table with lengths and log probabilities of the words alone."""

    @property
    def is_whole_file(self) -> bool:
        """Whether the sentences of a file are needed together."""
        return self.slr or self.format == "tsv"


def score(
    files: TextFiles = None,
    /,
    *,
    model: UsualModelPath = None,
    sentences: SentenceScores = SentenceScores(),
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    instead: ScoredTrees = ScoredTrees(),
    scoring: ScoringOptions = ScoringOptions(),
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    text: TextOptions = TextOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write the natural log probability of each sentence, one per line; or of each tree.

    A blank line gives a blank line. The table of `--format tsv` has one row per sentence, for
    `treelm compare` and `treelm evaluate`. The number of sentences without a tree is written to
    standard error. --trees scores trees instead of sentences, and --k-best sums k-best lists.
    """
    from treelm.models.interface.model import Task

    instead.check()
    flush = at_once(output, line_buffered=line_buffered)
    if instead.is_given:
        if files:
            raise UsageError("give one of files of text, --trees and --k-best.")
        for_sentences = {
            "no_bos": sentences.no_bos,
            "no_eos": sentences.no_eos,
            "slr": sentences.slr,
            "format": sentences.format != "text",
            "parser": scoring.parser is not None,
            "pruning": scoring.pruning != "none",
            "floor": scoring.floor is not None,
            "max_words": length != LengthOptions(),
            **search.given,
        }
        wrong = [option(name) for name, given in for_sentences.items() if given]
        if wrong:
            are = "is" if len(wrong) == 1 else "are"
            raise UsageError(f"{' and '.join(wrong)} {are} for sentences, not for trees.")
        _write_tree_scores(
            open_model(model, Task.SCORE, text, common).model,
            instead,
            output,
            scoring.k,
            text,
            flush=flush,
        )
        return
    opened = open_model(model, Task.SCORE, text, common)
    text = opened.text
    loaded = length.apply(search.apply(scoring.apply(opened.model)))
    if instead.explain:
        from treelm.cli.explain_option import write_explanations

        if sentences != SentenceScores():
            raise UsageError(
                "--explain takes whole sentences: it cannot be combined with --no-eos, --no-bos, "
                "--slr or --format."
            )
        write_explanations(loaded, files, output, text=text, common=common)
        return
    if loaded.info.exactness != "exact":
        common.note(f"these scores are not exact: {_NOT_EXACT[loaded.info.exactness]}.")
    elif not loaded.info.normalized:
        common.note(
            "these scores are not probabilities that sum to 1; compare them only with others of "
            "this model."
        )
    sources = files or ["-"]
    if sentences.is_whole_file:
        if (
            sentences.no_eos
            or sentences.no_bos
            or line_buffered
            or text.limit is not None
            or len(sources) > 1
        ):
            raise UsageError("--format tsv and --slr are for one whole file of whole sentences.")
        table = _score_table(loaded, sources[0], sentences, text, common)
        _write_table(output, table, slr=sentences.slr, flush=flush)
        return
    from treelm.tasks.score import ScoringReport, score_batches, score_file

    report = ScoringReport()
    from treelm.tasks.text_check import TextCheck

    check = TextCheck(loaded.vocabulary, tokenized=text.is_raw)
    # Whole files of tokenized sentences are left to the kernel.
    whole = not (flush or sentences.no_bos or text.is_raw or text.limit is not None)

    def scored() -> Iterator[ScoredLines]:
        eos, threads = not sentences.no_eos, text.thread_count
        for file, lines in text.first_lines(sources):
            if whole:
                yield from score_file(
                    loaded,
                    file,
                    eos=eos,
                    threads=threads,
                    report=report,
                    check=check,
                    progress=common.progress,
                )
            else:
                yield from score_batches(
                    loaded,
                    lines,
                    eos=eos,
                    bos=not sentences.no_bos,
                    threads=threads,
                    line_buffered=flush,
                    source=file,
                    report=report,
                    check=check,
                    progress=common.progress,
                )

    with write_atomically(output) as out:
        for batch in scored():
            out.write(batch.to_text().encode())
            if flush:
                out.flush()
    note_unknown_words(check, common)
    _note_fallbacks(common, report.fallbacks, report.sentences)


def _write_tree_scores(
    model: LanguageModel,
    instead: ScoredTrees,
    output: str,
    k: int | None,
    text: TextOptions,
    *,
    flush: bool,
) -> None:
    """Write the scores of trees, of k-best lists, or the factors of trees."""
    from treelm.tasks.score_trees import score_k_best_lists, score_trees

    threads = text.thread_count
    if instead.trees is None:
        assert instead.k_best is not None  # one of the two is given
        sums = score_k_best_lists(model, instead.k_best, k=k, threads=threads)
        values = (None if score is None else score.log_prob for score in sums)
        _write(output, text.first(values), flush=flush)
    elif instead.explain:
        from treelm.tasks.explain_trees import explain_trees, factor_lines

        with write_atomically(output) as out:
            for line in factor_lines(explain_trees(model, instead.trees, threads=threads)):
                out.write(f"{line}\n".encode())
    else:
        found = score_trees(model, instead.trees, posterior=instead.posterior, threads=threads)
        _write(output, text.first(found), flush=flush)


def _write_table(output: str, table: ScoreTable, *, slr: bool, flush: bool) -> None:
    """Write the scores of a whole file: a table, or log-odds ratios."""
    from treelm.corpus.score_files import write_score_table
    from treelm.tasks.evaluate.slr import slr as log_odds_ratios

    if slr:
        _write(output, log_odds_ratios(table).tolist(), flush=flush)
    else:
        write_score_table(output, table)


def _score_table(
    model: LanguageModel,
    source: str,
    sentences: SentenceScores,
    text: TextOptions,
    common: CommonOptions,
) -> ScoreTable:
    """Return the scores of a whole file."""
    from treelm.tasks.evaluate.measured_text import read_measured_text
    from treelm.tasks.evaluate.slr import score_text

    if sentences.slr and sentences.format == "tsv":
        raise UsageError("--slr cannot be combined with --format tsv.")
    measured = read_measured_text(source, tokenizing=text.is_raw, tokenize=text.tokenizing)
    table = score_text(
        model,
        measured,
        with_unigram=sentences.slr or None,
        threads=text.thread_count,
        progress=common.progress,
    )
    if text.is_raw:
        table = replace(table, lengths=measured.lengths)
    from treelm.tasks.text_check import TextCheck

    check = TextCheck(model.vocabulary, tokenized=text.is_raw)
    check.add_sentences(measured.sentences)
    note_unknown_words(check, common)
    if table.fallback is not None:
        _note_fallbacks(common, int(table.fallback.sum()), len(table.fallback))
    return table


def _note_fallbacks(common: CommonOptions, fallbacks: int, sentences: int) -> None:
    """Say how many sentences have no tree."""
    if fallbacks:
        common.note(
            f"{fallbacks} of {sentences} sentences have no tree; a flat one is used instead."
        )


def _write(output: str, values: Iterable[float | None], *, flush: bool) -> None:
    """Write one number per line, nothing for None."""
    with write_atomically(output) as out:
        for value in values:
            out.write(b"\n" if value is None else f"{value!r}\n".encode())
            if flush:
                out.flush()
