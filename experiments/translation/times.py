"""How long decoding takes, by the language models inside and by the length of the source."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from decoded import System
from recipe import add_published

from treelm.corpus.files import read_lines
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

LENGTHS = (10, 20, 30, 40)
TABLE = "Seconds per sentence, by the words of the source"
#: Seconds of the paper's decoder by length: n-gram only, with the HHMM at beams of 50 and 2000.
PUBLISHED = {
    "n-gram": (0.21, 0.53, 0.85, 1.13),
    "n-gram, HHMM beam 50": (533.0, 1193.0, 1746.0, 2095.0),
    "n-gram, HHMM beam 2000": (1143.0, 2562.0, 3749.0, 4588.0),
}


def sources(data: Path, length: int, number: int) -> list[str]:
    """Return sentences of up to so many words, and more than ten fewer.

    Captions are short: longer sources are made of several captions.
    """
    found: list[str] = []
    joined: list[str] = []
    for line in read_lines(data / "mt/multi30k/val.de"):
        words = line.split()
        if len(joined) + len(words) > length:
            if len(joined) > length - 10:
                found.append(" ".join(joined))
            joined = []
        joined += words
        if len(found) == number:
            break
    return found


def report_times(
    report: Report, systems: Sequence[System], weights: Weights, data: Path, number: int
) -> None:
    """Measure processor seconds on one thread, after one sentence to warm up."""
    table = PhraseTable.read(data / "mt/multi30k/phrase-table.gz")
    means: dict[str, list[float]] = {}
    for system in systems:
        kept = {
            name: values
            for name, values in weights.items()
            if not name.startswith("LM") or int(name[2:]) < len(system.models)
        }
        decoder = system.decoder(table).with_weights(Weights(kept))
        for length in LENGTHS:
            sentences = sources(data, length, number + 1)
            list(decoder.translate(sentences[:1]))
            seconds = []
            for sentence in sentences[1:]:
                began = time.process_time()
                list(decoder.translate([sentence]))
                seconds.append(time.process_time() - began)
            means.setdefault(system.name, []).append(statistics.fmean(seconds))
            report.add_result(
                Result(
                    table=TABLE,
                    model=system.name,
                    metric=f"up to {length} words",
                    data="Multi30k development set, captions joined",
                    value=means[system.name][-1],
                    n=len(seconds),
                    digits=3,
                )
            )
    for name, values in PUBLISHED.items():
        for length, value in zip(LENGTHS, values, strict=True):
            add_published(
                report,
                TABLE,
                name,
                f"up to {length} words",
                value=value,
                source="Schwartz et al. 2011, Figure 8 (quoted from memory)",
                digits=2,
            )
    first = means[systems[0].name]
    rows = []
    for name, values in means.items():
        slope, constant = np.polyfit(LENGTHS, values, 1)
        correlation = np.corrcoef(LENGTHS, values)[0, 1]
        ratios = ", ".join(f"{a / b:.1f}" for a, b in zip(values, first, strict=True))
        rows.append((name, ratios, f"{constant:.3f} + {slope:.4f} n", f"{correlation**2:.3f}"))
    report.add_table("Growth with length", ("system", "times the first", "line", "r squared"), rows)
