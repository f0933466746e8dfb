"""Reading times, garden paths and test suites: every incremental model, and mixtures.

    python experiments/reading_times/run.py --output FOLDER --work FOLDER [--data FOLDER]

Writes a report folder; models are kept in the work folder. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe import print_report, recipe_options
from study_models import BASELINE, TREEBANKS, StudyModels

from treelm.models.interface.incremental import IncrementalModel
from treelm.tasks.evaluate.designs import Factor, Region, draw_design, evaluate_design
from treelm.tasks.evaluate.reading_power import Power
from treelm.tasks.evaluate.reading_study import ReadingStudy, read_study_words, reading_study
from treelm.tasks.evaluate.suites import evaluate_suites, read_suite
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.tasks.surprisal.stimuli import read_stimuli

SUITES = Path(__file__).resolve().parents[2] / "examples/suites"
#: Number of words after a word that its predictors may slow down.
SPILL_OVER = 2
KINDS = {"NPS": "NP/S", "NPZ": "NP/Z", "MVRR": "MV/RR"}


class Study:
    """The parts of the study, each of which adds tables to one report.

    Args:
        report: Gets the tables.
        models: By name.
        arguments: Options of the command line.
    """

    def __init__(
        self, report: Report, models: Mapping[str, IncrementalModel], arguments: argparse.Namespace
    ) -> None:
        self._report, self._models = report, models
        self._data: Path = arguments.data
        self._work: Path = arguments.work
        self._seed: int = arguments.seed
        self._threads: int = arguments.threads
        self._folds: int = arguments.folds

    def reading(self) -> None:
        """What each model adds to the prediction of the times of Natural Stories."""
        folder = self._data / "reading/naturalstories"
        self._report.add_input("Natural Stories, times", folder / "words.tsv", role="test")
        words = read_study_words(
            folder / "words.tsv", folder / "trees.mrg", drop_different_words=True
        )
        for previous in (False, True):
            study = reading_study(
                words,
                self._models,
                baseline=BASELINE,
                spill_over=SPILL_OVER,
                previous_time=previous,
                folds=self._folds,
                seed=self._seed,
                threads=self._threads,
            )
            self._add_gains(study, ", previous time known" if previous else "")
            if not previous:
                self._report.add_figure(study.picture(), "Power against perplexity")

    def _add_gains(self, study: ReadingStudy, suffix: str) -> None:
        titles = {
            (False, "all"): "What a model adds to length, frequency and position",
            (False, "known"): "The same without unknown words",
            (True, "all"): f"What a model adds to the {BASELINE}",
            (True, "known"): f"What a model adds to the {BASELINE}, without unknown words",
        }
        for each in study.results:
            if each.over not in ((), (BASELINE,)):
                continue
            table = titles[bool(each.over), each.words] + suffix
            self._report.add_result(
                Result(
                    table=table,
                    model=each.model,
                    metric="delta log likelihood per word, 1000 x",
                    data="Natural Stories 1-6",
                    value=1000 * each.held_out.per_word,
                    n=each.ratio.n,
                    interval=_thousandfold(each),
                    digits=2,
                )
            )
        self._report.add_table(
            f"All figures{suffix}",
            (
                "added",
                "over",
                "words",
                "n",
                "perplexity",
                "1000 x gain per word",
                "over sentences",
                "over stories",
                "t",
                "robust t",
                "autocorrelation",
                "fitted gain",
                "p",
            ),
            [_row(each, study.perplexities[each.model]) for each in study.results],
        )

    def garden(self) -> None:
        """The stimuli of the SAP benchmark: surprisal where the sentence is disambiguated."""
        source = self._data / "grammaticality/sap-items/items_ClassicGP.csv"
        self._report.add_input("SAP, garden paths", source, role="test")
        table = read_stimuli(self._rewritten(source), tokenizing=True)
        factors = [Factor("ambiguity", ("unambiguous", "ambiguous"))]
        rows, pictures = [], {}
        for kind, title in KINDS.items():
            own = read_stimuli(self._rewritten(source, kind), tokenizing=True)
            for name, model in self._models.items():
                found = evaluate_design(
                    model, own, factors, Region(None, "critical"), seed=self._seed
                )
                (effect,) = found.effects.values()
                plain, garden = (each.mean for each in found.conditions.values())
                low, high = effect.interval
                rows.append(
                    (
                        title,
                        name,
                        effect.n,
                        f"{plain:.2f}",
                        f"{garden:.2f}",
                        f"{effect.mean:+.2f}",
                        f"{low:+.2f} to {high:+.2f}",
                        int(found.unknown.any(axis=1).sum()),
                    )
                )
        self._report.add_table(
            "Garden paths of the SAP benchmark: surprisal of the disambiguating word, in bits",
            ("kind", "model", "items", "unambiguous", "ambiguous", "effect", "interval", "unknown"),
            rows,
        )
        for name, model in self._models.items():
            both = [Factor("kind", ("NPS", "NPZ")), *factors]
            found = evaluate_design(model, table, both, Region(None, "critical"), seed=self._seed)
            effect = found.effects["interaction"]
            pictures[name] = found
            self._report.add_result(
                Result(
                    table="Interaction: the effect in NP/Z minus that in NP/S, in bits",
                    model=name,
                    metric="interaction",
                    data="SAP, garden paths",
                    value=effect.mean,
                    n=effect.n,
                    interval=effect.interval,
                )
            )
        first = {name: pictures[name] for name in list(pictures)[:3]}
        self._report.add_figure(draw_design(first, "Garden paths"), "NP/S and NP/Z")

    def _rewritten(self, source: Path, only: str | None = None) -> Path:
        """Write the stimuli with a row for each sentence, of one kind or of all."""
        path = self._work / f"sap-{only or 'all'}.csv"
        with (
            source.open(encoding="utf-8-sig", newline="") as given,
            path.open("w", encoding="utf-8", newline="") as made,
        ):
            out = csv.writer(made)
            out.writerow(("item", "kind", "ambiguity", "critical", "sentence"))
            for row in csv.DictReader(given):
                kind = row["condition"].partition("_")[0]
                if only not in (None, kind):
                    continue
                for level, place in (
                    ("unambiguous", row["disambPositionUnamb"]),
                    ("ambiguous", row["disambPositionAmb"]),
                ):
                    out.writerow((row["item"], kind, level, place, row[level]))
        return path

    def suites(self) -> None:
        """Our six suites in SyntaxGym's format."""
        given = [read_suite(path, tokenizing=True) for path in sorted(SUITES.glob("*.json"))]
        for name, model in self._models.items():
            found = evaluate_suites(model, given, seed=self._seed, threads=self._threads)
            for suite, each in found.suites.items():
                self._report.add_result(
                    Result(
                        table="Test suites: share of items for which all predictions hold",
                        model=name,
                        metric=suite,
                        data="examples/suites",
                        value=each.accuracy,
                        n=each.n,
                        interval=each.interval,
                    )
                )


def _thousandfold(found: Power) -> tuple[float, float]:
    low, high = found.held_out.over_sentences
    return 1000 * low, 1000 * high


def _row(found: Power, perplexity: float) -> tuple[object, ...]:
    gain = found.held_out
    spans = [
        "-" if each is None else f"{1000 * each.low:+.2f} to {1000 * each.high:+.2f}"
        for each in (gain.over_sentences, gain.over_items)
    ]
    return (
        found.model,
        ", ".join(found.over) or "-",
        found.words,
        found.ratio.n,
        f"{perplexity:.1f}",
        f"{1000 * gain.per_word:+.2f}",
        *spans,
        f"{found.t:.2f}",
        f"{found.robust_t:.2f}",
        f"{found.autocorrelation:.2f}",
        f"{found.ratio.delta_log_likelihood:.2f}",
        f"{found.ratio.p_value:.2g}",
    )


PARTS = ("reading", "garden", "suites")


def run(arguments: argparse.Namespace) -> Path:
    """Run the study and return its report."""
    report = Report(
        arguments.output,
        "Reading times, garden paths and test suites",
        seeds={"folds and bootstrap": arguments.seed},
        options={
            "vocabulary": "min-count 2",
            "spill_over": SPILL_OVER,
            "folds": arguments.folds,
        },
        recipe="reading_times",
    )
    trained = StudyModels(arguments.data, arguments.work, arguments.threads)
    report.add_input(f"{' and '.join(TREEBANKS)} train", trained.trees("train"), role="train")
    report.add_input(f"{' and '.join(TREEBANKS)} dev", trained.trees("dev"), role="tune")
    models = trained.all()
    for name, model in models.items():
        report.add_model(name, system=model.system, vocabulary=model.vocabulary.fingerprint)
    study = Study(report, models, arguments)
    for part in arguments.parts:
        getattr(study, part)()
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(__doc__, threads=1, seed="seed of the folds and of the intervals")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the models")
    parser.add_argument("--folds", type=int, default=10, help="parts of the cross-validation")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    print_report(run, parser.parse_args())


if __name__ == "__main__":
    main()
