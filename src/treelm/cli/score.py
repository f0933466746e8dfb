"""`treelm score`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Literal

from treelm.cli.model_options import ModelPath, ScoringOptions, SearchOptions, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.files import read_lines, write_atomically
from treelm.corpus.score_files import write_score_table
from treelm.errors import UsageError
from treelm.models.registry import load
from treelm.models.treelet.explain import Factor
from treelm.tasks.evaluate.measured_text import read_measured_text
from treelm.tasks.evaluate.slr import score_text
from treelm.tasks.evaluate.slr import slr as log_odds_ratios
from treelm.tasks.explain_trees import explain_trees
from treelm.tasks.score import ScoringReport, score_lines
from treelm.tasks.score_trees import score_tree_lists, score_trees


def score(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    trees: str | None = None,
    kbest: str | None = None,
    posterior: bool = False,
    explain: bool = False,
    no_eos: bool = False,
    slr: bool = False,
    format: Literal["text", "tsv"] = "text",  # noqa: A002 (the name of the option)
    output: OutputFile = "-",
    line_buffered: bool = False,
    scoring: ScoringOptions | None = None,
    search: SearchOptions | None = None,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write the natural log probability of each sentence, one a line; or of each tree.

    A blank line gives a blank line. The table of --format tsv has one row a sentence, for
    `treelm compare` and `treelm evaluate`. Instead of sentences, --trees takes trees, and --kbest
    lists of trees, as `treelm parse -k` and other parsers write them, which are summed.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
        trees: File of trees: write the log probability of each together with its words.
        kbest: File of lists of trees: write the log of the sum over the different trees of each.
        posterior: With --trees: write the log probability of each tree given its words.
        explain: With --trees and a treelet model: write a table of the factors of each tree, with
            the part of the context that decided.
        no_eos: Leave the end of the sentence out.
        slr: Write the syntactic log-odds ratio instead: the log probability of each sentence over
            that of its words alone, by its length.
        format: One number a line, or a table with lengths and log probabilities of words alone.
        output: File to write; standard output by default.
        line_buffered: Write every score at once, for use in pipes.
        scoring: Scoring.
        search: Search.
        text: Text.
        common: Common.
    """
    text, common = text or TextOptions(), common or CommonOptions()
    scoring, search = scoring or ScoringOptions(), search or SearchOptions()
    flush = at_once(output, line_buffered=line_buffered)
    if trees is not None or kbest is not None:
        unfit = no_eos or slr or format != "text"
        if files or (trees is not None and kbest is not None) or unfit:
            raise UsageError("give one of files of text, --trees and --kbest; trees have ends.")
        if scoring != ScoringOptions(k=scoring.k) or search.given:
            raise UsageError(
                "--parser, --pruning, --floor, --beam-width and --beam-ratio are for sentences, "
                "not for trees."
            )
    if posterior and trees is None:
        raise UsageError("--posterior is that of trees: give them with --trees.")
    if explain and (trees is None or posterior):
        raise UsageError("--explain takes trees apart: give them with --trees, not --posterior.")
    if trees is not None and explain:
        _write_factors(output, explain_trees(load(model), trees, threads=text.thread_count))
        return
    if trees is not None:
        found = score_trees(load(model), trees, posterior=posterior, threads=text.thread_count)
        _write(output, text.first(found), flush=flush)
        return
    if kbest is not None:
        sums = score_tree_lists(load(model), kbest, k=scoring.k, threads=text.thread_count)
        values = (None if score is None else score.log_prob for score in sums)
        _write(output, text.first(values), flush=flush)
        return
    loaded = search.apply(scoring.model(model))
    if loaded.info.exactness != "exact":
        common.note(f"these scores are not exact: {loaded.info.exactness.replace('_', ' ')}.")
    if slr or format == "tsv":
        limited = no_eos or line_buffered or text.limit is not None or len(files or ["-"]) > 1
        if limited or (slr and format == "tsv"):
            raise UsageError(
                "--format tsv and --slr are for one whole file, with sentence ends; give one of "
                "the two."
            )
        counts = loaded.unigram_counts
        table = score_text(
            loaded,
            read_measured_text((files or ["-"])[0]),
            with_unigram=slr or (counts is not None and bool(counts.any())),
            threads=text.thread_count,
            progress=common.progress,
        )
        if table.fallback is not None:
            _note_fallbacks(common, int(table.fallback.sum()), len(table.fallback))
        if slr:
            _write(output, log_odds_ratios(table).tolist(), flush=flush)
            return
        write_score_table(output, table)
        return
    report = ScoringReport()
    scores = chain.from_iterable(
        score_lines(
            loaded,
            read_lines(file),
            eos=not no_eos,
            threads=text.thread_count,
            line_buffered=flush,
            source=file,
            report=report,
            progress=common.progress,
        )
        for file in files or ["-"]
    )
    _write(output, text.first(scores), flush=flush)
    _note_fallbacks(common, report.fallbacks, report.sentences)


def _note_fallbacks(common: CommonOptions, fallbacks: int, sentences: int) -> None:
    """Say how many sentences have no tree."""
    if fallbacks:
        common.note(
            f"{fallbacks} of {sentences} sentences have no tree; a flat one stands in for it."
        )


def _write_factors(output: str, factors: Iterable[tuple[int, Factor]]) -> None:
    """Write a table with a row for each factor."""
    with write_atomically(output) as out:
        out.write(b"tree\tkind\tlabel\toutcome\tlog_prob\tword_log_prob\tgiven\n")
        for number, factor in factors:
            alone = "" if factor.word_log_prob is None else f"{factor.word_log_prob:.6f}"
            given = ", ".join(f"{name}={value}" for name, value in factor.given)
            columns = (str(number), factor.kind, factor.label, factor.outcome)
            line = "\t".join((*columns, f"{factor.log_prob:.6f}", alone, given))
            out.write(f"{line}\n".encode())


def _write(output: str, values: Iterable[float | None], *, flush: bool) -> None:
    """Write one number a line, nothing for None."""
    with write_atomically(output) as out:
        for value in values:
            out.write(b"\n" if value is None else f"{value!r}\n".encode())
            if flush:
                out.flush()
