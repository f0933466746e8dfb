"""`treelm evaluate reading-times`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import ModelPath, SearchOptions
from treelm.cli.options import CommonOptions, InputFile, OutputFile, thread_count
from treelm.cli.terminal import write_record
from treelm.corpus.files import write_atomically
from treelm.corpus.reading_times import read_times, read_zoned_trees
from treelm.models.interface.incremental import as_incremental
from treelm.models.registry import load
from treelm.tasks.evaluate.reading_times import (
    ReadingTable,
    added_value,
    alignment_likelihood,
    reading_table,
    unigram_surprisal,
    zone_surprisal,
)


def reading_times(
    times: InputFile,
    /,
    *,
    trees: str,
    model: ModelPath,
    baseline: str,
    column: str = "mean_rt",
    shift: int = 0,
    table: Annotated[OutputFile | None, Parameter(name="--table")] = None,
    threads: int | None = None,
    json: bool = False,
    search: SearchOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Measure whether a model's surprisal predicts reading times beyond a baseline model's.

    Logarithms of times are regressed on length, position, frequency and the surprisal of the
    baseline, of each word and the one before it; then the model's surprisal is added. Reported are
    its coefficient, the gain in log likelihood, and a likelihood-ratio test; and the same with the
    two models exchanged.

    Args:
        times: Table with the columns item, zone, word and times, tab-separated.
        trees: Trees of the same texts whose words carry /item.zone.
        model: Model folder.
        baseline: Model folder of the baseline, mostly an n-gram model; its word counts are the
            frequencies.
        column: The column of times.
        shift: Give each word the time that stands so many words later; the alignment is right where
            alignment_log_likelihood is largest.
        table: File to write: the words, their log times and all predictors, tab-separated.
        threads: Threads; default: the cores available. Results do not depend on it.
        json: One JSON object instead of lines.
        search: Search.
        common: Common.
    """
    del common
    count = thread_count(threads)
    own = as_incremental((search or SearchOptions()).apply(load(model)))
    other = as_incremental(load(baseline))
    sentences = list(read_zoned_trees(trees))
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
