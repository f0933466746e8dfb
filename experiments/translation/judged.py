"""Sheets for people who judge grammar and meaning (Table 5 of the composite paper)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from decoded import Sentences
from files import write_lines

from treelm.corpus.files import read_lines
from treelm.tasks.judge.readability import export_readability
from treelm.tasks.report.report import Report

#: Sentences on a sheet.
SENTENCES = 100


def report_sheet(
    report: Report, systems: Sequence[Path], data: Path, folder: Path, seed: int
) -> None:
    """Write a blinded sheet of translations, of Moses and of all systems, and its key.

    Nobody has judged it yet: there is no automatic way, so the report has no figures.

    Args:
        report: Says what was written.
        systems: Translations of the test set's short sentences.
        data: Folder of the data.
        folder: Where sheet and key go.
        seed: Seed of choice and order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    test = Sentences.read(data, "test_2016_flickr")
    moses, references = folder / "Moses.txt", folder / "references.txt"
    write_lines(moses, test.kept(list(read_lines(data / "mt/multi30k/test_2016_flickr.moses.en"))))
    write_lines(references, test.reference)
    made = export_readability(
        [moses, *systems],
        folder / "readability.csv",
        seed=seed,
        references=references,
        number=min(SENTENCES, len(test.source)),
    )
    report.add_table(
        "Readability (Table 5 of the composite paper): not judged, sheet written",
        ("systems", "sentences", "different translations", "shown twice"),
        [(1 + len(systems), made.sentences, made.rows, made.repeated)],
    )
