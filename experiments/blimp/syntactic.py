"""Minimal pairs of BLiMP and Zorro, judged by any models, and by several together.

    python experiments/blimp/syntactic.py --output FOLDER [--data FOLDER] NAME=MODEL...

MODEL is a model folder or the name of a ready model. Scores are kept in FOLDER.work, so that models
can be added later. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from combining import combined_scores, first_half
from pair_results import Flags, Numbers, add_anchors, preferences, report_accuracy
from recipe import print_report, recipe_options

from treelm.corpus.files import read_lines
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.words import split_words
from treelm.models.registry import load
from treelm.tasks.evaluate.pair_files import read_json_pairs
from treelm.tasks.evaluate.slr import score_sentences
from treelm.tasks.report.report import Report

Sentences = tuple[tuple[str, ...], ...]
#: What the models together are called: weights from half of each paradigm, or from the other
#: phenomena only.
HALVES, OTHERS = "together, weights from half", "together, weights from the other phenomena"


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of one collection.

    Args:
        name: What tables call it.
        good: The good sentences.
        bad: The bad ones, in the same order.
        paradigms: The paradigm of each pair.
        phenomena: Its phenomenon.
    """

    name: str
    good: Sentences
    bad: Sentences
    paradigms: tuple[str, ...]
    phenomena: tuple[str, ...]

    @cached_property
    def first(self) -> Flags:
        """The half of each paradigm on which things are chosen."""
        return first_half(self.paradigms)

    def of_phenomenon(self, phenomenon: str) -> Flags:
        """Return which pairs are of a phenomenon."""
        return np.array([each == phenomenon for each in self.phenomena])


def read_blimp(data: Path) -> Pairs:
    """Return the pairs of BLiMP, tokenized."""
    found = read_json_pairs(data / "grammaticality/blimp.jsonl.xz", tokenize=tokenize_words)
    return Pairs(
        "BLiMP",
        tuple(found.good.sentences),
        tuple(found.bad.sentences),
        found.groups["UID"],
        found.groups["linguistics_term"],
    )


def read_zorro(data: Path) -> Pairs:
    """Return the pairs of Zorro: odd lines are bad, even lines good."""
    good: list[tuple[str, ...]] = []
    bad: list[tuple[str, ...]] = []
    paradigms: list[str] = []
    for path in sorted((data / "grammaticality/zorro").glob("*-*.txt")):
        sentences = [split_words(line) for line in read_lines(path) if line.strip()]
        bad += sentences[::2]
        good += sentences[1::2]
        paradigms += [path.stem] * (len(sentences) // 2)
    phenomena = tuple(name.rpartition("-")[0] for name in paradigms)
    return Pairs("Zorro", tuple(good), tuple(bad), tuple(paradigms), phenomena)


def differences(pairs: Pairs, name: str, model: str, work: Path, threads: int) -> Numbers:
    """Return the log probabilities of good sentences minus those of bad ones, found or kept."""
    path = work / f"{pairs.name}.{name.replace(' ', '-').replace('/', '-')}.npy"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        found = load(model).with_tokenizer(None)
        good, bad = (
            score_sentences(found, sentences, threads=threads).scores
            for sentences in (pairs.good, pairs.bad)
        )
        difference = preferences(good, bad)
        with path.with_suffix(".part").open("wb") as file:
            np.save(file, difference)
        path.with_suffix(".part").replace(path)
    kept: Numbers = np.load(path)
    return kept


def judged_together(pairs: Pairs, singles: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return the scores of all models together, which only second halves may be judged by."""
    columns = np.column_stack(list(singles.values()))
    others = np.zeros(len(columns))
    for phenomenon in dict.fromkeys(pairs.phenomena):
        own = pairs.of_phenomenon(phenomenon)
        others[own] = combined_scores(columns, pairs.first & ~own)[0][own]
    return {HALVES: combined_scores(columns, pairs.first)[0], OTHERS: others}


def report_collection(report: Report, pairs: Pairs, singles: Mapping[str, Numbers]) -> None:
    """Report every model on all pairs, and the models together on the second halves."""
    seed = 1
    everything = np.ones(len(pairs.good), dtype=np.bool_)
    parts = {pairs.name: everything, f"{pairs.name}, second halves": ~pairs.first}
    together = judged_together(pairs, singles) if len(singles) > 1 else {}
    everybody = {**singles, **together}
    for data, chosen in parts.items():
        for name, values in everybody.items():
            if name in together and chosen is everything:
                continue
            report_accuracy(report, name, data, values[chosen], seed)
    rows = []
    for phenomenon in sorted(set(pairs.phenomena)):
        own = pairs.of_phenomenon(phenomenon) & ~pairs.first
        shares = [(scores[own] > 0).mean() for scores in everybody.values()]
        rows.append((phenomenon, int(own.sum()), *(f"{share:.3f}" for share in shares)))
    report.add_table(
        f"{pairs.name} by phenomenon, second halves", ("phenomenon", "n", *everybody), rows
    )
    if together:
        columns = np.column_stack(list(singles.values()))
        weights = combined_scores(columns, pairs.first)[1]
        report.add_table(
            f"{pairs.name}: weights of differences with a deviation of 1",
            ("model", "weight"),
            [(name, f"{weight:.3f}") for name, weight in zip(singles, weights, strict=True)],
        )


def run(arguments: argparse.Namespace) -> Path:
    """Score all pairs by all models and write the report."""
    models = dict(each.split("=", 1) for each in arguments.models)
    report = Report(
        arguments.output,
        "Minimal pairs judged by syntactic models",
        seeds={"intervals": 1},
        options={"models": [f"{name}={model}" for name, model in models.items()]},
        recipe=__doc__,
    )
    work = arguments.output.with_name(f"{arguments.output.name}.work")
    for read in (read_blimp, read_zorro):
        pairs = read(arguments.data)
        singles = {
            name: differences(pairs, name, model, work, arguments.threads)
            for name, model in models.items()
        }
        report_collection(report, pairs, singles)
    add_anchors(report, "Accuracy")
    return report.write()


def options() -> argparse.ArgumentParser:
    """Return the options of this recipe."""
    parser = recipe_options(__doc__)
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL")
    return parser


if __name__ == "__main__":
    print_report(run, options().parse_args())
