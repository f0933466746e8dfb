"""`treelm evaluate`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from cyclopts import Parameter

from treelm.cli.apps import command_group, example_line
from treelm.cli.evaluate_designs import design
from treelm.cli.evaluate_reading import reading_times
from treelm.cli.evaluate_reranking import reranking
from treelm.cli.evaluate_suites import suites
from treelm.cli.evaluate_translation import translation
from treelm.cli.evaluate_wer import wer
from treelm.cli.model_options import (
    LengthOptions,
    ModelPath,
    OptionalModelPath,
    ScoringOptions,
    SearchOptions,
    load_for_tokens,
    note_unknown_words,
)
from treelm.cli.options import (
    SHOWN_PROBLEMS,
    AsJson,
    CommonOptions,
    File,
    InputFile,
    InputFiles,
    MeasureOptions,
    OptionalOutputFile,
    TextFiles,
    TextOptions,
    TreeOptions,
    note_problems,
)
from treelm.cli.oracle_scores import oracle
from treelm.cli.parse_scores import write_evalb, write_parse_accuracy
from treelm.cli.ranges import at_least
from treelm.cli.terminal import write_record
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.lengths import lines_of_sentences
from treelm.corpus.score_files import read_scores, write_outcomes
from treelm.errors import UsageError
from treelm.limits import LARGEST_SEED
from treelm.tasks.evaluate.classify_texts import (
    evaluate_classification,
    evaluate_scored_classification,
)
from treelm.tasks.evaluate.comparison import compare_parses
from treelm.tasks.evaluate.measured_text import (
    MeasuredText,
    check_files_not_trained_on,
    read_measured_text,
)
from treelm.tasks.evaluate.pair_accuracy import (
    PairResults,
    evaluate_pairs,
    evaluate_scored_pairs,
    write_pairs,
)
from treelm.tasks.evaluate.pair_files import (
    read_json_pairs,
    read_pair_files,
    read_pair_table,
)
from treelm.tasks.evaluate.parse_breakdown import by_label as scores_by_label
from treelm.tasks.evaluate.parse_breakdown import by_length as scores_by_length
from treelm.tasks.evaluate.parse_files import evaluate_evalb, evaluate_systems
from treelm.tasks.evaluate.parse_intervals import parse_intervals
from treelm.tasks.evaluate.resampling import ROUNDS
from treelm.tasks.evaluate.slr import Measure
from treelm.tasks.raw_text import raw_text_perplexity
from treelm.tasks.text_check import TextCheck


class _How(TypedDict):
    """How a perplexity is measured."""

    strict_docs: bool
    allow_overlap: bool
    threads: int


_PAIR_OUTCOMES = (
    "File to write: 1 for every pair that is right and 0 for the others, in order; named .tsv, a "
    "table with the scores of every pair too. `treelm compare` reads both."
)
_SENTENCE_OUTCOMES = (
    "File to write: 1 for every sentence that is classified correctly and 0 for the others, the "
    "good ones first."
)

evaluate = command_group(
    "evaluate",
    "Measure how good something is.",
    "treelm evaluate parses gold.mrg parsed.mrg --json",
)
evaluate.command(
    oracle, help_epilogue=example_line("treelm evaluate oracle gold.mrg parsed.forest --json")
)
evaluate.command(
    reading_times,
    help_epilogue=example_line(
        "treelm evaluate reading-times words.tsv -m hhmm --baseline ngram --spill-over 2"
    ),
)
evaluate.command(
    translation,
    help_epilogue=example_line(
        "treelm evaluate translation --references ref.en base.en new.en --json"
    ),
)
evaluate.command(
    reranking,
    help_epilogue=example_line(
        "treelm evaluate reranking test.nbest --references test.en -m model --seed 1"
    ),
)
evaluate.command(
    suites, help_epilogue=example_line("treelm evaluate suites -m model suite.json --json")
)
evaluate.command(
    design,
    help_epilogue=example_line(
        "treelm evaluate design items.csv -m model --factors comma verb --region 4"
    ),
)
evaluate.command(
    wer, help_epilogue=example_line("treelm evaluate wer reference.txt recognised.txt --json")
)


@evaluate.command(help_epilogue=example_line("treelm evaluate parses gold.mrg parsed.mrg --json"))
def parses(
    gold: InputFile,
    system: InputFile,
    /,
    *,
    by_label: bool = False,
    by_length: bool = False,
    intervals: bool = False,
    against: File | None = None,
    known_to: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    evalb: bool = False,
    rounds: Annotated[
        int | None,
        Parameter(help="Number of bootstrap samples.", show_default=str(ROUNDS)),
        at_least(1),
    ] = None,
    seed: Annotated[int | None, Parameter(show_default="0"), at_least(0, LARGEST_SEED)] = None,
    json: AsJson = False,
    trees: TreeOptions = TreeOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Score parses against gold trees: precision, recall, F1, exact match, tags (evalb's rules).

    A sentence without a parse (an empty line, or `(())`) counts against recall. Malformed trees are
    listed, whatever their share.

    Args:
        gold: File of the correct trees.
        system: File of the parser's trees, in the same order.
        by_label: Also write a table of the labels, the most frequent first.
        by_length: Also write a table by sentence length: 1-10, 11-20, 21-30, 31-40, and 41 or more
            words.
        intervals: Also write 95 % confidence intervals, by bootstrap over sentences.
        against: File of another parser's trees: also test the difference in F1 (paired bootstrap).
        known_to: Model folder, or the name of a ready model: also write the tagging accuracy of the
            words that it knows, and of those that it does not.
        evalb: Write the table and the summaries of the program evalb instead, crossing brackets
            included. Sentences whose words differ are counted as errors and left out, those without
            a parse as skipped.
        seed: Seed of the random numbers for --intervals and --against.
    """
    if not intervals and against is None:
        for name, value in (("--rounds", rounds), ("--seed", seed)):
            if value is not None:
                raise UsageError(f"{name} goes with --intervals or --against.")
    if evalb:
        if by_label or by_length or intervals or against is not None or known_to is not None:
            raise UsageError(
                "--evalb cannot be combined with --by-label, --by-length, --intervals, --against "
                "or --known-to."
            )
        scores = evaluate_evalb(
            gold,
            system,
            trees.read_options(),
            on_error=trees.on_error,
            threads=trees.thread_count,
        )
        errors = [row for row in scores.sentences if row.reason]
        for row in errors if common.verbose else errors[:SHOWN_PROBLEMS]:
            common.note(f"sentence {row.number} left out: {row.reason}")
        write_evalb(scores, as_json=json)
        return
    found = evaluate_systems(
        gold,
        [system] if against is None else [system, against],
        trees.read_options(),
        on_error=trees.on_error,
        threads=trees.thread_count,
        known=None if known_to is None else load_for_tokens(known_to).vocabulary,
    )
    note_problems(found[0].gold_problems, "gold tree left out", common)
    for each in found:
        note_problems(each.system_problems, "counted as no parse", common)
    score = found[0].accuracy
    drawing = {"rounds": ROUNDS if rounds is None else rounds, "seed": seed or 0}
    write_parse_accuracy(
        score,
        tells_unknown=known_to is not None,
        intervals=parse_intervals(score, **drawing) if intervals else None,
        drawing=drawing,
        labels=scores_by_label(score) if by_label else None,
        lengths=scores_by_length(score) if by_length else None,
        comparison=compare_parses(score, found[1].accuracy, **drawing)
        if against is not None
        else None,
        as_json=json,
    )


@evaluate.command(help_epilogue=example_line("treelm evaluate perplexity -m model test.txt --json"))
def perplexity(
    files: TextFiles = None,
    /,
    *,
    model: ModelPath,
    oov_mode: Literal["include", "skip"] = "include",
    strict_docs: bool = False,
    allow_overlap: bool = False,
    json: AsJson = False,
    search: SearchOptions = SearchOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    length: LengthOptions = LengthOptions(),
    text: TextOptions = TextOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure how surprised a model is by a text, per word.

    With T words, S sentences and natural log probabilities, the perplexity is
    `exp(-sum / (T + S))`, the ends of sentences included; `perplexity without eos` is
    `exp(-sum over words / T)`. It is infinite (`null` in JSON) if the model gives a word no
    probability. `exactness` says what kind of probabilities they are, `without parse` how many
    sentences the grammar cannot derive. Models whose scores are not probabilities are refused.

    A model that spells unknown words (`treelm train --unknown spelling`) has the perplexity of an
    open vocabulary, and beside it `closed perplexity`, with their symbols alone, and `bits per
    character`: all bits, for each character of the words and one after each word.

    Args:
        oov_mode: Unknown words: include them with the probability of the unknown word, or skip
            them.
        strict_docs: Refuse a text without blank lines if the model remembers documents.
        allow_overlap: Continue even if the model was trained on a file it is measured on.
    """
    if text.is_raw and oov_mode == "skip":
        raise UsageError(
            "--tokenize cannot be combined with --oov-mode skip: of a word of several tokens some "
            "may be known."
        )
    corpus = TextCorpus(tuple(files or ["-"]))
    loaded = length.apply(search.apply(scoring.model(model)))
    if not allow_overlap:
        check_files_not_trained_on(loaded, corpus.paths)
    check = TextCheck(loaded.vocabulary, tokenized=text.is_raw)
    how: _How = {
        "strict_docs": strict_docs,
        "allow_overlap": allow_overlap,
        "threads": text.thread_count,
    }
    with lines_of_sentences(corpus):
        if text.is_raw:
            found = raw_text_perplexity(
                loaded,
                corpus.paths,
                limit=text.limit,
                check=check,
                tokenize=text.tokenizing,
                **how,
            )
        else:
            sentences = corpus if text.limit is None else text.first(corpus)
            found = loaded.perplexity(sentences, oov_mode=oov_mode, **how)
            check.add(found.tokens, found.oov)
            check.look_at_files(corpus.paths)
    note_unknown_words(check, common)
    if found.without_parse:
        advice = "" if scoring.floor else " Use --floor 0.001 to give them a probability."
        common.note(f"{found.without_parse} sentences have no parse.{advice}")
    write_record(found.to_record(), as_json=json)


@evaluate.command(
    help_epilogue=example_line("treelm evaluate pairs -m model good.txt bad.txt --json")
)
def pairs(
    files: Annotated[InputFiles, Parameter(show_default="none")] = None,
    /,
    *,
    model: OptionalModelPath = None,
    blimp: File | None = None,
    slr: bool = False,
    tokenize: Annotated[
        bool | None,
        Parameter(
            negative=("--tokenized", "--no-tokenize"),
            show_default="--tokenize with --blimp, or if the model has a tokenizer",
        ),
    ] = None,
    half_ties: bool = False,
    drop_identical: bool = False,
    output: Annotated[OptionalOutputFile, Parameter(help=_PAIR_OUTCOMES)] = None,
    json: AsJson = False,
    scoring: ScoringOptions = ScoringOptions(),
    length: LengthOptions = LengthOptions(),
    measuring: MeasureOptions = MeasureOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure how often a model prefers the good sentence of a pair.

    Without a model the two files are score files. Ties count as wrong in accuracy, interval and
    p value.

    Args:
        files: File of the good sentences, and file of the bad ones in the same order; or one table
            with the columns good and bad, and perhaps id and condition.
        blimp: File of JSON lines with the keys of BLiMP, instead of these.
        slr: Compare syntactic log-odds ratios instead of log probabilities.
        tokenize: Take raw text and tokenize it first, or tokenized text as it is.
        half_ties: Count a tie as half right, in accuracy, interval and p value.
        drop_identical: Leave out pairs whose sentences are the same.
    """
    measure: Measure = "slr" if slr else "log_prob"
    if (blimp is None) == (files is None) or len(files or ["", ""]) > 2:
        raise UsageError(
            "name two files, of good and of bad sentences, or one table with the columns good and "
            "bad, or one file with --blimp."
        )
    if model is None:
        if files is not None and len(files) == 1:
            raise UsageError("a table of pairs needs a model: -m MODEL.")
        if blimp is not None or drop_identical or tokenize is not None:
            raise UsageError("--blimp, --tokenize and --drop-identical need a model: -m MODEL.")
        _check_no_scoring(scoring, measuring)
        good, bad = (read_scores(file) for file in files or ())
        found = evaluate_scored_pairs(
            good, bad, seed=measuring.seed, measure=measure, half_ties=half_ties
        )
    else:
        from treelm.models.interface.raw_text import shared_tokenizing
        from treelm.models.registry import load

        whole = load(model)
        loaded = length.apply(scoring.apply(whole.with_tokenizer(None)))
        wants_raw = blimp is not None or whole.tokenizer is not None
        is_raw = wants_raw if tokenize is None else tokenize
        how: Any = {"tokenizing": is_raw, "tokenize": shared_tokenizing([whole])}
        if blimp is not None:
            pairs = read_json_pairs(blimp, **how)
        else:
            read = read_pair_table if len(files or ()) == 1 else read_pair_files
            pairs = read(*(files or ()), **how)
        check = TextCheck(loaded.vocabulary, tokenized=is_raw)
        for side in (pairs.good, pairs.bad):
            check.add_sentences(side.sentences)
        note_unknown_words(check, common)
        found = evaluate_pairs(
            loaded,
            pairs,
            seed=measuring.seed,
            measure=measure,
            half_ties=half_ties,
            drop_identical=drop_identical,
            allow_overlap=measuring.allow_overlap,
            threads=measuring.thread_count,
        )
    if output is not None:
        write_pairs(output, found)
    write_record(found.to_record() if json else _pair_lines(found), as_json=json)


def _check_no_scoring(scoring: ScoringOptions, measuring: MeasureOptions) -> None:
    """Refuse options of a model where scores are read from files."""
    if scoring != ScoringOptions() or measuring.allow_overlap:
        raise UsageError(
            "--parser, -k, --pruning, --floor and --allow-overlap need a model: -m MODEL."
        )


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
    help_epilogue=example_line(
        "treelm evaluate classification -m model --tune-good dev.good --tune-bad dev.bad "
        "--good test.good --bad test.bad"
    )
)
def classification(
    *,
    model: OptionalModelPath = None,
    good: InputFile,
    bad: InputFile,
    tune_good: File | None = None,
    tune_bad: File | None = None,
    score: Literal["auto", "slr", "log-prob"] = "auto",
    paired: bool = False,
    output: Annotated[OptionalOutputFile, Parameter(help=_SENTENCE_OUTCOMES)] = None,
    json: AsJson = False,
    scoring: ScoringOptions = ScoringOptions(),
    length: LengthOptions = LengthOptions(),
    measuring: MeasureOptions = MeasureOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure how well a model tells good sentences from bad ones by a threshold.

    Without a model all files are score files.

    Args:
        good: File of good sentences, one per line.
        bad: File of bad sentences, one per line.
        tune_good: Tuning set of the threshold: other good sentences.
        tune_bad: Tuning set of the threshold: other bad sentences.
        score: What is compared with the threshold; auto is slr, and for classifiers their own
            score.
        paired: Line n of --good and line n of --bad are a pair.
    """
    if (tune_good is None) != (tune_bad is None):
        raise UsageError("--tune-good and --tune-bad go together.")
    tuning = None if tune_good is None or tune_bad is None else (tune_good, tune_bad)
    choice: Literal["auto", "slr", "log_prob"] = "log_prob" if score == "log-prob" else score
    if model is None:
        _check_no_scoring(scoring, measuring)
        found = evaluate_scored_classification(
            good, bad, tuning=tuning, score=choice, paired=paired, seed=measuring.seed
        )
    else:
        loaded = length.apply(scoring.model(model))
        texts = _texts(good, bad, paired=paired)
        check = TextCheck(loaded.vocabulary, has_option=False)
        for text in texts:
            check.add_sentences(text.sentences)
        note_unknown_words(check, common)
        found = evaluate_classification(
            loaded,
            *texts,
            seed=measuring.seed,
            tuning=None if tuning is None else _texts(*tuning, paired=False),
            score=choice,
            paired=paired,
            allow_overlap=measuring.allow_overlap,
            threads=measuring.thread_count,
        )
    if output is not None:
        write_outcomes(output, found.right.tolist())
    write_record(found.to_record(), as_json=json)


def _texts(good: str, bad: str, *, paired: bool) -> tuple[MeasuredText, MeasuredText]:
    """Return good and bad sentences; pairs must have as many of the one as of the other."""
    if paired:
        pairs = read_pair_files(good, bad)
        return pairs.good, pairs.bad
    return read_measured_text(good), read_measured_text(bad)
