"""`treelm evaluate reading-times`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treelm.characters import visible
from treelm.cli.model_options import (
    LengthOptions,
    SearchOptions,
    note_unknown_words,
)
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    File,
    InputFile,
    NewFile,
    NewPicture,
    Seed,
    ThreadOptions,
)
from treelm.cli.ranges import at_least, between
from treelm.cli.terminal import write_record
from treelm.corpus.files import write_atomically
from treelm.tasks.text_check import TextCheck

if TYPE_CHECKING:
    from treelm.corpus.reading_times import ZonedSentence
    from treelm.models.interface.incremental import IncrementalModel
    from treelm.models.interface.model import LanguageModel
    from treelm.tasks.evaluate.reading_study import ReadingStudy


def reading_times(
    times: InputFile,
    /,
    *,
    model: Annotated[
        list[str],
        Parameter(
            name=["--model", "-m"],
            metavar="MODEL",
            consume_multiple=False,
            help="Model folder, or the name of a ready model; once for each of several models.",
        ),
    ],
    baseline: Annotated[
        str | None, Parameter(metavar="MODEL", show_default="length, frequency, position")
    ] = None,
    trees: Annotated[File | None, Parameter(show_default="the words of the table")] = None,
    column: str = "mean_rt",
    reader: Annotated[
        str | None, Parameter(metavar="COLUMN", show_default="reader, subject, participant")
    ] = None,
    item: Annotated[list[str] | None, Parameter(metavar="COLUMN...", show_default="item")] = None,
    spill_over: Annotated[int, between(0, 10)] = 1,
    previous_time: bool = False,
    cross_validate: Annotated[
        int | None, at_least(2), Parameter(show_default="10, or the number of sentences")
    ] = None,
    mixed: bool = False,
    drop_different_words: bool = False,
    shift: Annotated[int, between(-1000, 1000)] = 0,
    table: NewFile | None = None,
    r_script: NewFile | None = None,
    plot: NewPicture | None = None,
    seed: Seed = 0,
    json: AsJson = False,
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure how well the surprisal of models predicts reading times.

    Log reading times are regressed on length, position, frequency and the baseline's surprisal, of
    each word and those before it; then the surprisal of each model is added. Reported are its
    coefficients, the gain in log likelihood with a likelihood-ratio test, and the gain per word on
    sentences that were left out (cross-validation) with intervals; for all words, and for those
    that all models know.

    Args:
        times: Table with the columns item, zone, word and times, tab-separated, .csv or .parquet;
            one row per word, or one per word and reader. The sentences are those of a column
            sentence, or as punctuation tells.
        baseline: Model folder of a baseline, usually an n-gram model, whose surprisal is in the
            regression before that of a model is added. Its word counts are the frequencies.
        trees: Trees of the same texts whose words end in /item.zone; their words must be those of
            the table.
        column: The column of reading times.
        reader: The column of readers, in a table of single readers.
        item: Columns whose values tell texts apart; of an experiment item and condition.
        spill_over: Number of preceding words whose length, frequency and surprisal count too.
        previous_time: The log time of the word before is a predictor too.
        cross_validate: Number of parts into which sentences are divided; each is predicted by a
            regression fitted to the others.
        mixed: Fit mixed models too, with random effects of readers, or of texts where times are
            means (pip install "treelm[mixed]").
        drop_different_words: Leave out words that differ between the table and the trees, if they
            are at most 2 %, instead of refusing the table.
        shift: Give each word the time found this many words later; the alignment is right where
            alignment_log_likelihood is largest.
        table: File to write: the words with all keys, their log times and all predictors,
            tab-separated.
        r_script: File to write: a script for R that fits the same models by lm, lme4 and brms. The
            table is written beside it, with .tsv instead of .R.
        plot: Picture to write, .svg or .html: what each model adds, against its perplexity.
        seed: Seed of the division into parts and of the intervals.
    """
    from treelm.models.interface.raw_text import shared_tokenizing
    from treelm.models.registry import load
    from treelm.tasks.evaluate.reading_script import column_name, joined_table
    from treelm.tasks.evaluate.reading_script import r_script as script_of
    from treelm.tasks.evaluate.reading_study import read_study_words, reading_study
    from treelm.tasks.surprisal.stimuli import model_names

    paths = list(dict.fromkeys([*([] if baseline is None else [baseline]), *model]))
    loaded = {path: load(path) for path in paths}
    words = read_study_words(
        times,
        trees,
        column,
        reader=reader,
        item=item or ["item"],
        drop_different_words=drop_different_words,
        tokenize=shared_tokenizing(loaded.values()),
    )
    if words.dropped:
        common.note(f"{words.dropped} words differ between the table and the trees: left out.")
    names = dict(zip(paths, model_names(paths), strict=True))
    plain = search.apply_to_several([each.with_tokenizer(None) for each in loaded.values()])
    models = {
        names[path]: _ready(
            length.apply(each),
            TextCheck(each.vocabulary, tokenized=True, model=visible(path)),
            words.sentences,
            common,
        )
        for path, each in zip(paths, plain, strict=True)
    }
    study = reading_study(
        words,
        models,
        added=[names[path] for path in model],
        baseline=None if baseline is None else names[baseline],
        spill_over=spill_over,
        previous_time=previous_time,
        folds=cross_validate,
        shift=shift,
        mixed=mixed,
        seed=seed,
        threads=threads.thread_count,
    )
    if table is not None:
        _write(table, joined_table(study.table))
    if r_script is not None:
        beside = Path(r_script).with_suffix(".tsv")
        _write(str(beside), joined_table(study.table))
        columns = [column_name(name) for name in study.models]
        over = [] if study.baseline is None else [column_name(study.baseline)]
        _write(r_script, script_of(study.table, columns, over, beside.name))
    if plot is not None:
        from treelm.view.picture_files import picture_content

        with write_atomically(plot) as out:
            out.write(picture_content(plot, study.picture(), "reading times"))
    write_record(study.to_record() if json else _lines(study), as_json=json)


def _ready(
    model: LanguageModel,
    check: TextCheck,
    sentences: Sequence[ZonedSentence],
    common: CommonOptions,
) -> IncrementalModel:
    """Return a model, and say how many words it does not know."""
    from treelm.models.interface.incremental import as_incremental

    found = as_incremental(model)
    check.add_sentences(sentence.words for sentence in sentences)
    note_unknown_words(check, common)
    return found


def _write(path: str, text: str) -> None:
    with write_atomically(path) as out:
        out.write(text.encode())


def _lines(study: ReadingStudy) -> dict[str, object]:
    """Return the results with a line for each, the cross-validated gain first."""
    record = study.to_record()
    perplexity = record.pop("perplexity")
    del record["results"]
    mixed = record.pop("mixed", None)
    signature = record.pop("signature")
    assert isinstance(perplexity, dict)
    for name, value in perplexity.items():
        record[f"perplexity: {name}"] = value
    for each in study.results:
        over = " over " + ", ".join(each.over) if each.over else ""
        low, high = each.held_out.over_sentences
        record[f"gain per word: {each.model}{over}, {each.words} words"] = (
            f"{each.held_out.per_word:+.5f} [{low:+.5f}, {high:+.5f}] t {each.t:.2f} robust "
            f"{each.robust_t:.2f} autocorrelation {each.autocorrelation:.2f} n {each.ratio.n}"
        )
    if isinstance(mixed, dict):
        for name, found in mixed.items():
            record[f"mixed model: {name}"] = (
                f"coefficient {found['coefficient']:+.5f} t {found['t']:.2f} delta log likelihood "
                f"{found['delta_log_likelihood']:.2f} p {found['p_value']:.3g}"
                + ("" if found["converged"] else ", not converged")
            )
    return record | {"signature": signature}
