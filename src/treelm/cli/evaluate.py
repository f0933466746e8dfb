"""`treelm evaluate`."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from treelm.cli.evaluate_reading import reading_times
from treelm.cli.model_options import (
    MeasureOptions,
    ModelPath,
    ScoringOptions,
    SearchOptions,
    TextOptions,
)
from treelm.cli.options import (
    CommonOptions,
    InputFile,
    InputFiles,
    OptionalOutputFile,
    TreeOptions,
    note_problems,
)
from treelm.cli.oracle_scores import oracle
from treelm.cli.parse_scores import write_parse_accuracy
from treelm.cli.terminal import write_record
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.score_files import read_scores, write_outcomes
from treelm.errors import UsageError
from treelm.tasks.evaluate.classify_texts import (
    evaluate_classification,
    evaluate_scored_classification,
)
from treelm.tasks.evaluate.comparison import compare_parses
from treelm.tasks.evaluate.measured_text import MeasuredText, read_measured_text
from treelm.tasks.evaluate.pair_accuracy import (
    PairResults,
    evaluate_pairs,
    evaluate_scored_pairs,
)
from treelm.tasks.evaluate.pair_files import Tokenizing, read_json_pairs, read_pair_files
from treelm.tasks.evaluate.parse_breakdown import by_label as scores_by_label
from treelm.tasks.evaluate.parse_breakdown import by_length as scores_by_length
from treelm.tasks.evaluate.parse_files import evaluate_systems
from treelm.tasks.evaluate.parse_intervals import parse_intervals
from treelm.tasks.evaluate.resampling import ROUNDS, check_rounds
from treelm.tasks.evaluate.slr import Measure

#: A model folder, where score files may stand in for one.
_Model = Annotated[str | None, Parameter(name=["--model", "-m"])]

evaluate = App(
    name="evaluate",
    help="Measure how good something is.",
    help_epilogue="Example: `treelm evaluate parses gold.mrg parsed.mrg --json`",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    version_flags=[],
)

evaluate.command(
    oracle, help_epilogue="Example: `treelm evaluate oracle gold.mrg parsed.forest --json`"
)


evaluate.command(
    reading_times,
    help_epilogue="Example: `treelm evaluate reading-times words.tsv --trees trees.mrg -m hhmm "
    "--baseline ngram`",
)


@evaluate.command
def parses(
    gold: InputFile,
    system: InputFile,
    /,
    *,
    by_label: bool = False,
    by_length: bool = False,
    intervals: bool = False,
    against: str | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
    json: bool = False,
    trees: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Score parses against gold trees: precision, recall, F1, exact match, tags (evalb's rules).

    A sentence without a parse (an empty line, or `(())`) counts against recall.

    Args:
        gold: File of the right trees.
        system: File of the parser's trees, in the same order.
        by_label: Also a table of the labels, the most frequent first.
        by_length: Also a table of sentences of 1-10, 11-20, 21-30, 31-40 and 41 or more words.
        intervals: Also 95 % intervals, by drawing sentences again.
        against: File of another parser's trees; also test the difference in F1 (paired bootstrap).
        rounds: How often sentences are drawn for intervals and comparisons.
        seed: Seed of the random numbers for --intervals and --against.
        json: One JSON object instead of lines.
        trees: Reading.
        common: Common.
    """
    trees, common = trees or TreeOptions(), common or CommonOptions()
    if intervals or against is not None:
        check_rounds(rounds)
    found = evaluate_systems(
        gold,
        [system] if against is None else [system, against],
        trees.read_options(),
        on_error=trees.on_error,
        threads=trees.thread_count,
    )
    note_problems(found[0].gold_problems, "gold tree left out", common)
    for each in found:
        note_problems(each.system_problems, "counted as no parse", common)
    score = found[0].accuracy
    write_parse_accuracy(
        score,
        intervals=parse_intervals(score, seed=seed, rounds=rounds) if intervals else None,
        drawing={"rounds": rounds, "seed": seed},
        labels=scores_by_label(score) if by_label else None,
        lengths=scores_by_length(score) if by_length else None,
        comparison=compare_parses(score, found[1].accuracy, seed=seed, rounds=rounds)
        if against is not None
        else None,
        as_json=json,
    )


@evaluate.command(help_epilogue="Example: `treelm evaluate perplexity -m model test.txt --json`")
def perplexity(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    oov_mode: Literal["include", "skip"] = "include",
    strict_docs: bool = False,
    json: bool = False,
    search: SearchOptions | None = None,
    scoring: ScoringOptions | None = None,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Measure how surprised a model is by a text, per word.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
        oov_mode: Count unknown words as what stands for them, or leave them out.
        strict_docs: Refuse a text without blank lines if the model remembers documents.
        json: One JSON object instead of lines.
        search: Search.
        scoring: Scoring.
        text: Text.
        common: Common.
    """
    text, common = text or TextOptions(), common or CommonOptions()
    scoring = scoring or ScoringOptions()
    corpus = TextCorpus(tuple(files or ["-"]))
    found = (
        (search or SearchOptions())
        .apply(scoring.model(model))
        .perplexity(
            corpus if text.limit is None else text.first(corpus),
            oov_mode=oov_mode,
            strict_docs=strict_docs,
            threads=text.thread_count,
        )
    )
    if found.without_parse:
        advice = "" if scoring.floor else " --floor 0.001 gives them a probability."
        common.note(f"{found.without_parse} sentences have no parse.{advice}")
    write_record(found.to_record(), as_json=json)


@evaluate.command(help_epilogue="Example: `treelm evaluate pairs -m model good.txt bad.txt --json`")
def pairs(
    files: InputFiles = None,
    /,
    *,
    model: _Model = None,
    blimp: str | None = None,
    slr: bool = False,
    tokenize: Tokenizing = "auto",
    half_ties: bool = False,
    drop_identical: bool = False,
    output: OptionalOutputFile = None,
    json: bool = False,
    scoring: ScoringOptions | None = None,
    measuring: MeasureOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Measure how often a model prefers the good sentence of a pair.

    Without a model the two files are score files. Ties count as wrong.

    Args:
        files: File of the good sentences, and file of the bad ones in the same order.
        model: Model folder.
        blimp: File of JSON lines with the keys of BLiMP, instead of two files.
        slr: Compare syntactic log-odds ratios instead of log probabilities.
        tokenize: Whether sentences are raw text; by default those of --blimp are.
        half_ties: Count a tie as half right.
        drop_identical: Leave out pairs whose sentences are the same.
        output: File to write: 1 for every pair that is right and 0 for the others, in order.
        json: One JSON object instead of lines.
        scoring: Scoring.
        measuring: Measuring.
        common: Common.
    """
    del common
    measuring, scoring = measuring or MeasureOptions(), scoring or ScoringOptions()
    measure: Measure = "slr" if slr else "log_prob"
    if (blimp is None) == (files is None) or len(files or ["", ""]) != 2:
        raise UsageError("name two files, of good and of bad sentences, or one with --blimp.")
    if model is None:
        if blimp is not None or drop_identical or tokenize != "auto":
            raise UsageError("--blimp, --tokenize and --drop-identical need a model: -m MODEL.")
        good, bad = (read_scores(file) for file in files or ())
        found = evaluate_scored_pairs(
            good, bad, seed=measuring.seed, measure=measure, half_ties=half_ties
        )
    else:
        loaded = scoring.model(model)
        minimal = (
            read_json_pairs(blimp, tokenizing=tokenize)
            if blimp is not None
            else read_pair_files(*(files or ()), tokenizing=tokenize)
        )
        found = evaluate_pairs(
            loaded,
            minimal,
            seed=measuring.seed,
            measure=measure,
            half_ties=half_ties,
            drop_identical=drop_identical,
            allow_overlap=measuring.allow_overlap,
            threads=measuring.thread_count,
        )
    if output is not None:
        write_outcomes(output, found.right.tolist())
    write_record(found.to_record() if json else _pair_lines(found), as_json=json)


def _pair_lines(found: PairResults) -> dict[str, object]:
    """Return the results with a line for each group."""
    record = {name: value for name, value in found.to_record().items() if name[:4] != "per_"}
    for name, groups in found.groupings.items():
        for group, accuracy in groups.items():
            low, high = accuracy.interval
            record[f"{name.removeprefix('per_')}: {group}"] = (
                f"{accuracy.accuracy:.4f} [{low:.4f}, {high:.4f}] n {accuracy.n}"
            )
    return record


@evaluate.command(
    help_epilogue="Example: `treelm evaluate classification -m model --tune-good dev.good "
    "--tune-bad dev.bad --good test.good --bad test.bad`"
)
def classification(
    *,
    model: _Model = None,
    good: InputFile,
    bad: InputFile,
    tune_good: str | None = None,
    tune_bad: str | None = None,
    score: Literal["auto", "slr", "log-prob"] = "auto",
    paired: bool = False,
    output: OptionalOutputFile = None,
    json: bool = False,
    scoring: ScoringOptions | None = None,
    measuring: MeasureOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Measure how well a model tells good sentences from bad ones by a threshold.

    Without a model all files are score files.

    Args:
        model: Model folder.
        good: Good sentences, one a line.
        bad: Bad sentences.
        tune_good: Other good sentences, on which the threshold is tuned.
        tune_bad: Other bad sentences, on which the threshold is tuned.
        score: What the threshold is about; auto is slr, and for classifiers their own score.
        paired: Line n of --good and line n of --bad are a pair.
        output: File to write: 1 for every sentence called what it is, 0 for others; good first.
        json: One JSON object instead of lines.
        scoring: Scoring.
        measuring: Measuring.
        common: Common.
    """
    del common
    measuring, scoring = measuring or MeasureOptions(), scoring or ScoringOptions()
    if (tune_good is None) != (tune_bad is None):
        raise UsageError("--tune-good and --tune-bad go together.")
    tuning = None if tune_good is None or tune_bad is None else (tune_good, tune_bad)
    choice: Literal["auto", "slr", "log_prob"] = "log_prob" if score == "log-prob" else score
    if model is None:
        found = evaluate_scored_classification(
            good, bad, tuning=tuning, score=choice, paired=paired, seed=measuring.seed
        )
    else:
        texts: tuple[MeasuredText, MeasuredText]
        if paired:
            minimal = read_pair_files(good, bad)
            texts = minimal.good, minimal.bad
        else:
            texts = read_measured_text(good), read_measured_text(bad)
        found = evaluate_classification(
            scoring.model(model),
            *texts,
            seed=measuring.seed,
            tuning=None
            if tuning is None
            else (read_measured_text(tuning[0]), read_measured_text(tuning[1])),
            score=choice,
            paired=paired,
            allow_overlap=measuring.allow_overlap,
            threads=measuring.thread_count,
        )
    if output is not None:
        write_outcomes(output, found.right.tolist())
    write_record(found.to_record(), as_json=json)
