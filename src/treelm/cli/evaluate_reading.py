"""`treelm evaluate reading-times`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.characters import visible
from treelm.cli.model_options import (
    LengthOptions,
    ModelPath,
    SearchOptions,
    load_for_tokens,
    note_unknown_words,
)
from treelm.cli.options import AsJson, CommonOptions, File, InputFile, NewFile, ThreadOptions
from treelm.cli.ranges import between
from treelm.cli.terminal import write_record
from treelm.corpus.files import write_atomically
from treelm.corpus.reading_times import read_times, read_zoned_trees
from treelm.models.interface.incremental import as_incremental
from treelm.tasks.evaluate.reading_times import (
    ReadingTable,
    added_value,
    alignment_likelihood,
    reading_table,
    unigram_surprisal,
    zone_surprisal,
)
from treelm.tasks.text_check import TextCheck


def reading_times(
    times: InputFile,
    /,
    *,
    trees: File,
    model: ModelPath,
    baseline: Annotated[str, Parameter(metavar="MODEL")],
    column: str = "mean_rt",
    shift: Annotated[int, between(-1000, 1000)] = 0,
    table: NewFile | None = None,
    json: AsJson = False,
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure whether a model's surprisal predicts reading times beyond a baseline model's.

    Log reading times are regressed on length, position, frequency and the baseline's surprisal, of
    each word and the one before it; then the model's surprisal is added. Reported are its
    coefficient, the gain in log likelihood, and a likelihood-ratio test; and the same with the two
    models exchanged.

    Args:
        times: Table with the columns item, zone, word and times, tab-separated.
        trees: Trees of the same texts whose words end in /item.zone.
        baseline: Model folder of the baseline, usually an n-gram model; its word counts are the
            frequencies.
        column: The column of reading times.
        shift: Give each word the time found this many words later; the alignment is right where
            alignment_log_likelihood is largest.
        table: File to write: the words, their log times and all predictors, tab-separated.
    """
    count = threads.thread_count
    own = as_incremental(length.apply(search.apply(load_for_tokens(model))))
    other = as_incremental(length.apply(load_for_tokens(baseline)))
    sentences = list(read_zoned_trees(trees))
    for name, each in ((model, own), (baseline, other)):
        check = TextCheck(each.vocabulary, tokenized=True, model=visible(name))
        check.add_sentences(sentence.words for sentence in sentences)
        note_unknown_words(check, common)
    columns = {
        "frequency": unigram_surprisal(other, sentences),
        "baseline": zone_surprisal(other, sentences, threads=count),
        "model": zone_surprisal(own, sentences, threads=count),
    }
    made = reading_table(read_times(times, column), sentences, columns, shift=shift)
    if table is not None:
        _write_table(made, table)
    found = added_value(made, "model", ["baseline"], shift=shift)
    reverse = added_value(made, "baseline", ["model"], shift=shift)
    record = {
        **found.to_record(),
        "left_out": made.left_out,
        "alignment_log_likelihood": alignment_likelihood(made),
    }
    record |= {
        f"reverse_{name}": value for name, value in reverse.to_record().items() if name in _REVERSE
    }
    write_record(record, as_json=json)


_REVERSE = ("coefficient", "t", "delta_log_likelihood", "p_value")


def _write_table(made: ReadingTable, path: str) -> None:
    header = "\t".join(["word", "log_time", *made.predictors])
    rows = zip(made.words, made.log_times.tolist(), *made.predictors.values(), strict=True)
    with write_atomically(path) as out:
        out.write(f"{header}\n".encode())
        out.writelines(("\t".join(map(str, row)) + "\n").encode() for row in rows)
