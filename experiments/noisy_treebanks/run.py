"""Sentences with one error each from the English treebanks: counts by type, and speed.

    python experiments/noisy_treebanks/run.py --data FOLDER --output FOLDER [--seed 1]

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from recipe import print_report, recipe_options

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import write_atomically
from treelm.tasks.corrupt.error_types import ErrorName
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.noisy import (
    PUBLISHED_WEIGHTS,
    NoiseCounts,
    NoiseGenerator,
    NoisySentence,
    make_noisy,
)
from treelm.tasks.corrupt.tagged_sentences import TaggedSentence, tagged_batches
from treelm.tasks.evaluate.significance import bootstrap_mean_interval
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.view.plots import Bar, draw_grouped_bars

TREEBANKS = ("craft", "gum", "masc", "wsj-sample")
PARTS = ("train", "dev", "test")
EXAMPLES = 10
LONGEST_EXAMPLE = 20  # words; a reader should see the error at a glance
TREEBANK_NAMES = " + ".join(TREEBANKS)


def read_treebanks(report: Report, folder: Path, threads: int) -> list[TaggedSentence]:
    """Return the words and tags of all trees; malformed trees are skipped and reported."""
    sentences: list[TaggedSentence] = []
    rows = []
    for name in TREEBANKS:
        files = tuple(folder / name / f"{part}.mrg" for part in PARTS)
        corpus = TreeCorpus(files, on_error="skip", threads=threads)
        found = ReadReport()
        before = len(sentences)
        sentences += tagged_batches(corpus.batches(found))
        here = sentences[before:]
        rows.append((name, len(here), sum(len(one.words) for one in here), found.failed))
        report.add_input(name, corpus, stands_for="WSJ 0 and 23")
    report.add_table("Treebanks", ("treebank", "sentences", "words", "malformed trees"), rows)
    return sentences


def expected_shares(
    generator: NoiseGenerator, sentences: Sequence[TaggedSentence], count: int
) -> dict[ErrorName, tuple[float, float]]:
    """Return the mean of the number of errors of each type, and its standard deviation.

    A type is sampled by weight among those that apply to a sentence, so its mean is the sum of its
    probabilities over the sentences used.
    """
    chances: list[dict[ErrorName, float]] = []
    for sentence in sentences:
        applicable = [kind.name for kind in generator.types if kind.candidates(sentence)]
        if len(sentence.words) < 2 or not applicable:
            continue
        total = sum(PUBLISHED_WEIGHTS[name] for name in applicable)
        chances.append({name: PUBLISHED_WEIGHTS[name] / total for name in applicable})
    mean = dict.fromkeys(PUBLISHED_WEIGHTS, 0.0)
    variance = dict.fromkeys(PUBLISHED_WEIGHTS, 0.0)
    for chance in islice(cycle(chances), count):
        for name, p in chance.items():
            mean[name] += p
            variance[name] += p * (1 - p)
    return {name: (mean[name], math.sqrt(variance[name])) for name in mean}


def report_types(
    report: Report,
    made: Mapping[ErrorName, int],
    expected: Mapping[ErrorName, tuple[float, float]],
    seed: int,
) -> None:
    """Report how often each type was made, beside its expected count."""
    total = sum(made.values())
    weights = sum(PUBLISHED_WEIGHTS.values())
    rows = []
    groups: dict[str, list[Bar]] = {}
    for name, number in made.items():
        weight = PUBLISHED_WEIGHTS[name]
        flags = np.zeros(total)
        flags[:number] = 1.0
        interval = bootstrap_mean_interval(flags, seed=seed)
        report.add_result(
            Result(
                table="Share of each type",
                model=name,
                metric="share",
                data=TREEBANK_NAMES,
                value=number / total,
                n=total,
                interval=interval,
                digits=4,
            )
        )
        mean, deviation = expected[name]
        rows.append(
            (
                name,
                weight,
                f"{weight / weights:.4f}",
                f"{mean / total:.4f}",
                f"{number / total:.4f}",
                number,
                f"{(number - mean) / deviation:+.2f}" if deviation else "-",
            )
        )
        groups[name] = [
            Bar("weight of the type", weight / weights),
            Bar("expected where it applies", mean / total),
            Bar("made", number / total, *interval),
        ]
    report.add_table(
        "Types made against the weights",
        (
            "type",
            "weight",
            "share if all applied",
            "share expected",
            "share made",
            "made",
            "standard deviations from expected",
        ),
        rows,
    )
    report.add_figure(
        draw_grouped_bars(
            groups, title="Errors by type", axis="share of the noisy sentences", digits=3
        ),
        "A type is sampled among those that apply to a sentence; lines are 95 % intervals.",
    )


def report_counts(report: Report, counts: NoiseCounts) -> None:
    """Report the kinds of error within each type, and what was left out."""
    report.add_table(
        "Ways",
        ("type", "way", "made"),
        [(name, way, n) for name, ways in counts.made.items() for way, n in ways.items()],
    )
    report.add_table(
        "What else happened",
        ("what", "sentences"),
        [
            ("left out: fewer than two words", counts.too_short),
            ("left out: no type applies", counts.nothing_applies),
            ("equal to an earlier noisy sentence", counts.duplicates),
            ("also in the treebanks themselves", counts.in_corpus),
        ],
    )


def report_examples(report: Report, examples: Mapping[ErrorName, list[NoisySentence]]) -> None:
    """Report some sentences of each type."""
    for name, sentences in examples.items():
        report.add_table(
            f"Examples: {name}",
            ("noisy sentence", "way", "position", "original"),
            [
                (" ".join(one.words), one.way, one.position, " ".join(one.original))
                for one in sentences
            ],
        )


def gather_examples(noisy: Sequence[NoisySentence]) -> dict[ErrorName, list[NoisySentence]]:
    """Return short sentences of each type, from all over the treebanks."""
    short: dict[ErrorName, list[NoisySentence]] = {name: [] for name in PUBLISHED_WEIGHTS}
    for one in noisy:
        if len(one.original) <= LONGEST_EXAMPLE:
            short[one.error].append(one)
    return {
        name: found[:: max(len(found) // EXAMPLES, 1)][:EXAMPLES] for name, found in short.items()
    }


def run(arguments: argparse.Namespace) -> Path:
    """Read, make errors and count them; return the folder of the report."""
    seed = arguments.seed
    report = Report(
        arguments.output,
        "One error in each sentence of the English treebanks",
        seeds={"noise and bootstrap": seed},
        options={"count": arguments.count, "weights": "published"},
        recipe="noisy treebanks",
    )
    sentences = read_treebanks(report, arguments.data / "treebanks", arguments.threads)
    start = time.perf_counter()
    lexicon = Lexicon(sentences)
    generator = NoiseGenerator(lexicon)
    ready = time.perf_counter()
    counts = NoiseCounts()
    noisy = list(
        make_noisy(
            lambda: sentences, generator, lexicon, seed=seed, count=arguments.count, counts=counts
        )
    )
    seconds = time.perf_counter() - ready
    report.add_model(
        "noise generator",
        seconds_of_lexicon=round(ready - start, 1),
        seconds_of_noise=round(seconds, 1),
        sentences_a_second=round(len(noisy) / seconds),
    )
    made = {name: sum(ways.values()) for name, ways in counts.made.items()}
    report_types(report, made, expected_shares(generator, sentences, len(noisy)), seed)
    report_counts(report, counts)
    report_examples(report, gather_examples(noisy))
    if arguments.keep is not None:
        with write_atomically(arguments.keep) as out:
            for one in noisy:
                row = (" ".join(one.words), one.error, str(one.position), " ".join(one.original))
                out.write(("\t".join(row) + "\n").encode())
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="noisy sentences to make")
    parser.add_argument("--keep", type=Path, help="file for the noisy sentences, as TSV")
    print_report(run, parser.parse_args())


if __name__ == "__main__":
    main()
