"""How long decoding takes, by the language models inside and by the length of the source."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from decoded import System
from recipe import add_published

from treelm.corpus.files import read_lines
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.translation.decoder import Translation
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


@dataclass(frozen=True)
class Timed:
    """Processor seconds of a sentence, in the mean.

    Args:
        seconds: The mean.
        number: Sentences.
        asked: Share of the questions to language models that had been answered before.
        score: Mean score of the translations: a search that finds less is not just faster.
    """

    seconds: float
    number: int
    asked: float
    score: float


def timed(system: System, table: PhraseTable, weights: Weights, sentences: list[str]) -> Timed:
    """Measure one thread, after one sentence to warm up."""
    kept = {
        name: values
        for name, values in weights.items()
        if not name.startswith("LM") or int(name[2:]) < len(system.models)
    }
    decoder = system.decoder(table).with_weights(Weights(kept))
    list(decoder.translate(sentences[:1]))
    found: list[Translation] = []
    began = time.process_time()
    for sentence in sentences[1:]:
        found += decoder.translate([sentence])
    seconds = time.process_time() - began
    reads = sum(each.counts.model_reads for each in found)
    repeats = sum(each.counts.model_repeats for each in found)
    return Timed(
        seconds / len(found),
        len(found),
        repeats / max(1, reads + repeats),
        statistics.fmean(each.score or 0.0 for each in found),
    )


def report_times(
    report: Report,
    systems: Sequence[System],
    weights: Weights,
    data: Path,
    *,
    number: int,
    stacks: Sequence[int],
) -> None:
    """Measure processor seconds by length and by the size of stacks, and memory.

    Args:
        report: Gets the tables.
        systems: What is timed; the others are compared with the first.
        weights: Of all language models; a system with fewer takes fewer.
        data: Folder of the data.
        number: Sentences of each length; a tenth of them for a slow stack search.
        stacks: Sizes of stacks, for the first system.
    """
    table = PhraseTable.read(data / "mt/multi30k/phrase-table.gz")
    means: dict[str, list[float]] = {}
    memory = []
    for system in systems:
        slow = system.config.search == "stack" and len(system.models) > 1
        most = max(1, number // 10) if slow else number
        for length in LENGTHS:
            found = timed(system, table, weights, sources(data, length, most + 1))
            means.setdefault(system.name, []).append(found.seconds)
            report.add_result(
                Result(
                    table=TABLE,
                    model=system.name,
                    metric=f"up to {length} words",
                    data="Multi30k development set, captions joined",
                    value=found.seconds,
                    n=found.number,
                    digits=4,
                )
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        again = f"{100 * found.asked:.0f} %"
        memory.append((system.name, again, f"{found.score:.3f}", f"{peak:.0f}"))
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
    report.add_table(
        f"Sources of up to {LENGTHS[-1]} words",
        ("system", "questions answered before", "mean score", "peak MiB of the process so far"),
        memory,
    )
    sentences = sources(data, 20, number + 1)
    rows = []
    for size in stacks:
        config = replace(systems[0].config, stack_size=size)
        found = timed(replace(systems[0], config=config), table, weights, sentences)
        rows.append((size, f"{1000 * found.seconds:.1f}", f"{found.score:.4f}"))
    report.add_table(
        f"Growth with the size of stacks ({systems[0].name}, sources of 11 to 20 words)",
        ("stack size", "milliseconds per sentence", "mean score"),
        rows,
    )
