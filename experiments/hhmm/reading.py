"""Reading times: does the HHMM's surprisal add to that of an n-gram model?"""

from __future__ import annotations

from pathlib import Path

from treelm.corpus.reading_times import read_times, read_zoned_trees
from treelm.models.hhmm.model import HhmmModel
from treelm.models.ngram.model import NgramModel
from treelm.tasks.evaluate.reading_times import (
    ReadingResult,
    added_value,
    alignment_likelihood,
    reading_table,
    unigram_surprisal,
    zone_surprisal,
)
from treelm.tasks.report.report import Report

#: Number of words by which times are shifted against the text: none, and one to each side.
SHIFTS = (0, -1, 1)


def report_reading_times(
    report: Report, hhmm: HhmmModel, ngram: NgramModel, folder: Path, threads: int
) -> None:
    """Report the gain of one model over the other, at each alignment and for both means."""
    report.add_input("Natural Stories, times", folder / "words.tsv", role="test")
    report.add_input("Natural Stories, trees", folder / "trees.mrg", role="test")
    sentences = list(read_zoned_trees(folder / "trees.mrg"))
    columns = {
        "frequency": unigram_surprisal(ngram, sentences),
        "5-gram": zone_surprisal(ngram, sentences, threads=threads),
        "HHMM": zone_surprisal(hhmm, sentences, threads=threads),
    }
    rows, alignment = [], []
    for column in ("mean_rt", "gmean_rt"):
        times = read_times(folder / "words.tsv", column)
        for shift in SHIFTS:
            table = reading_table(times, sentences, columns, shift=shift)
            found = [
                added_value(table, "5-gram", [], shift=shift),
                added_value(table, "HHMM", [], shift=shift),
                added_value(table, "HHMM", ["5-gram"], shift=shift),
                added_value(table, "5-gram", ["HHMM"], shift=shift),
            ]
            rows += [_row(column, each) for each in found]
            likelihood = alignment_likelihood(table)
            alignment.append((column, shift, found[0].ratio.n, f"{likelihood:.1f}"))
    report.add_table(
        "Alignment: log likelihood of times given length and frequency of the word alone",
        ("times", "shift", "words", "log likelihood"),
        alignment,
    )
    report.add_table(
        "What a model's surprisal adds",
        (
            "times",
            "shift",
            "added",
            "over",
            "words",
            "coefficient",
            "t",
            "word before",
            "delta log likelihood",
            "p",
        ),
        rows,
    )


def _row(column: str, found: ReadingResult) -> tuple[object, ...]:
    over = ", ".join(["length, frequency, position", *found.over])
    return (
        column,
        found.shift,
        found.model,
        over,
        found.ratio.n,
        f"{found.coefficient:+.5f}",
        f"{found.t:+.2f}",
        f"{found.before:+.5f}",
        f"{found.ratio.delta_log_likelihood:.2f}",
        f"{found.ratio.p_value:.3g}",
    )
