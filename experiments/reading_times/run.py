"""Reading times, garden paths and test suites: every incremental model, and mixtures.

    python experiments/reading_times/run.py --output FOLDER --work FOLDER [--data FOLDER]

Writes a report folder; models and scores are kept in the work folder, so that an interrupted run
resumes. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe import print_report, recipe_options
from study_models import BASELINE, READY, TREEBANKS, StudyModels

from treelm.corpus.files import write_atomically
from treelm.corpus.reading_times import ZonedSentence
from treelm.models.interface.incremental import IncrementalModel
from treelm.tasks.evaluate.designs import Factor, Region, evaluate_design
from treelm.tasks.evaluate.reading_study import StudyWords, read_study_words, reading_study
from treelm.tasks.evaluate.reading_times import ZoneScores, zone_scores
from treelm.tasks.evaluate.suites import Suite, evaluate_suites, read_suite
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.tasks.surprisal.stimuli import read_stimuli
from treelm.view.bar_charts import draw_grouped_bars
from treelm.view.chart_data import Bar, Point, Series
from treelm.view.point_charts import draw_scatter

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
        self._own = [name for name in models if name not in READY]
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
        for baseline, own, what in (
            (BASELINE, self._own, ""),
            (READY[0], READY, "Ready models: "),
        ):
            for previous in (False, True):
                records: dict[str, dict[str, Any]] = {}
                for name in own:
                    if name == baseline:
                        continue
                    kept = self._kept(
                        f"power{' previous' * previous} {name}",
                        lambda name=name, previous=previous, baseline=baseline: self._gains(
                            words, name, baseline, previous=previous
                        ),
                    )
                    # The baseline alone is in the study of every model, with the same figures.
                    records |= {_key(each): each for each in kept}
                suffix = ", previous time known" if previous else ""
                self._add_gains(list(records.values()), baseline, what, suffix)

    def _gains(
        self, words: StudyWords, name: str, baseline: str, *, previous: bool
    ) -> list[dict[str, Any]]:
        """Return what a model adds to length, frequency and position, and to the baseline."""
        names = (baseline, name)
        study = reading_study(
            words,
            {each: self._models[each] for each in names},
            baseline=baseline,
            spill_over=SPILL_OVER,
            previous_time=previous,
            folds=self._folds,
            seed=self._seed,
            scores={each: self._zone_scores(each, words.sentences) for each in names},
        )
        return [
            {**each.to_record(), "perplexity": study.perplexities[each.model]}
            for each in study.results
        ]

    def _zone_scores(self, name: str, sentences: Sequence[ZonedSentence]) -> ZoneScores:
        """Return what a model says about the stories, kept in the work folder."""

        def score() -> dict[str, Any]:
            found = zone_scores(self._models[name], sentences, threads=self._threads)
            return {
                "surprisal": [[*zone, bits] for zone, bits in found.surprisal.items()],
                "unknown": sorted(map(list, found.unknown)),
                "perplexity": found.perplexity,
            }

        kept = self._kept(f"reading {name}", score)
        surprisal = {(item, zone): bits for item, zone, bits in kept["surprisal"]}
        unknown = frozenset((item, zone) for item, zone in kept["unknown"])
        return ZoneScores(surprisal, unknown, kept["perplexity"])

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what was made before, or make it and keep it."""
        path = self._work / "kept" / f"{name.replace('/', '+')}.json"
        if not path.exists():
            made = json.dumps(make())
            path.parent.mkdir(exist_ok=True)
            with write_atomically(path) as out:
                out.write(made.encode())
        return json.loads(path.read_text(encoding="utf-8"))

    def _add_gains(
        self, records: Sequence[dict[str, Any]], baseline: str, what: str, suffix: str
    ) -> None:
        titles = {
            (False, "all"): "What a model adds to length, frequency and position",
            (False, "known"): "The same without unknown words",
            (True, "all"): f"What a model adds to the {baseline}",
            (True, "known"): f"What a model adds to the {baseline}, without unknown words",
        }
        rows: dict[str, dict[tuple[bool, str], str]] = {}
        perplexities = {each["model"]: f"{each['perplexity']:.1f}" for each in records}
        for each in records:
            if each["over"] not in ([], [baseline]):
                continue
            gain = each["cross_validated"]
            low, high = gain["interval_sentences"]
            self._report.add_result(
                Result(
                    table=what + titles[bool(each["over"]), each["words"]] + suffix,
                    model=each["model"],
                    metric="delta log likelihood per word, 1000 x",
                    data="Natural Stories 1-6",
                    value=1000 * gain["per_word"],
                    n=each["n"],
                    interval=(1000 * low, 1000 * high),
                    digits=2,
                )
            )
            found = rows.setdefault(each["model"], {})
            found[bool(each["over"]), each["words"]] = _shown(gain["per_word"], (low, high), 1000)
        first = [name for name in rows if name == baseline]
        self._report.add_table(
            f"{what}1000 x gain per word{suffix}",
            ("model", "perplexity", *titles.values()),
            [
                (name, perplexities[name], *(rows[name].get(key, "-") for key in titles))
                for name in (*first, *(each for each in rows if each != baseline))
            ],
        )
        title = f"{what}All figures{suffix}"
        self._report.add_table(title, COLUMNS, [_row(each) for each in records])
        alone = [each for each in records if not each["over"] and each["words"] == "all"]
        points = [
            Series(
                each["model"],
                (
                    Point(
                        each["perplexity"],
                        each["cross_validated"]["per_word"],
                        *each["cross_validated"]["interval_sentences"],
                        each["model"],
                    ),
                ),
            )
            for each in alone
        ]
        picture = draw_scatter(
            points,
            title=f"{what}Power against perplexity{suffix}",
            x_axis="perplexity",
            y_axis="delta log likelihood per word",
            log_x=True,
        )
        self._report.add_figure(picture, f"{what}Power against perplexity{suffix}")

    def garden(self) -> None:
        """The stimuli of the SAP benchmark: surprisal where the sentence is disambiguated."""
        source = self._data / "grammaticality/sap-items/items_ClassicGP.csv"
        self._report.add_input("SAP, garden paths", source, role="test")
        rows = []
        wide = []
        groups: dict[str, list[Bar]] = {}
        for name in self._models:
            found = self._kept(f"garden {name}", lambda name=name: self._effects(source, name))
            for kind, title in KINDS.items():
                each = found[kind]
                low, high = each["interval"]
                rows.append(
                    (
                        title,
                        name,
                        each["n"],
                        f"{each['unambiguous']:.2f}",
                        f"{each['ambiguous']:.2f}",
                        f"{each['mean']:+.2f}",
                        f"{low:+.2f} to {high:+.2f}",
                        each["unknown"],
                    )
                )
                groups.setdefault(title, []).append(Bar(name, each["mean"], low, high))
            both = found["interaction"]
            shown = [found[kind] for kind in (*KINDS, "interaction")]
            wide.append((name, *(_shown(each["mean"], each["interval"]) for each in shown)))
            self._report.add_result(
                Result(
                    table="Interaction: the effect in NP/Z minus that in NP/S, in bits",
                    model=name,
                    metric="interaction",
                    data="SAP, garden paths",
                    value=both["mean"],
                    n=both["n"],
                    interval=tuple(both["interval"]),
                )
            )
        self._report.add_table(
            "Effect of ambiguity in bits", ("model", *KINDS.values(), "NP/Z - NP/S"), wide
        )
        self._report.add_table(
            "Garden paths of the SAP benchmark: surprisal of the disambiguating word, in bits",
            ("kind", "model", "items", "unambiguous", "ambiguous", "effect", "interval", "unknown"),
            sorted(rows, key=lambda row: list(KINDS.values()).index(row[0])),
        )
        picture = draw_grouped_bars(groups, title="Garden paths", axis="effect in bits")
        self._report.add_figure(picture, "Effect of ambiguity at the disambiguating word")

    def _effects(self, source: Path, name: str) -> dict[str, Any]:
        """Return the effect of ambiguity in each kind of garden path, and the interaction."""
        factor = Factor("ambiguity", ("unambiguous", "ambiguous"))
        region, model = Region(None, "critical"), self._models[name]
        found: dict[str, Any] = {}
        for kind in KINDS:
            own = read_stimuli(self._rewritten(source, (kind,)), tokenizing=True)
            result = evaluate_design(model, own, [factor], region, seed=self._seed)
            (effect,) = result.effects.values()
            found[kind] = {
                **effect.to_record(),
                **{key: each.mean for (key,), each in result.conditions.items()},
                "unknown": int(result.unknown.any(axis=1).sum()),
            }
        two = read_stimuli(self._rewritten(source, ("NPS", "NPZ")), tokenizing=True)
        both = [Factor("kind", ("NPS", "NPZ")), factor]
        result = evaluate_design(model, two, both, region, seed=self._seed)
        found["interaction"] = result.effects["interaction"].to_record()
        return found

    def _rewritten(self, source: Path, kinds: tuple[str, ...]) -> Path:
        """Write the stimuli of some kinds with a row for each sentence."""
        path = self._work / f"sap-{'-'.join(kinds)}.csv"
        with (
            source.open(encoding="utf-8-sig", newline="") as given,
            path.open("w", encoding="utf-8", newline="") as made,
        ):
            out = csv.writer(made)
            out.writerow(("item", "kind", "ambiguity", "critical", "sentence"))
            for row in csv.DictReader(given):
                kind = row["condition"].partition("_")[0]
                if kind not in kinds:
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
        wide = []
        for name in self._models:
            found = self._kept(f"suites {name}", lambda name=name: self._accuracies(given, name))
            shares = [accuracy for accuracy, _, _ in found.values()]
            mean = sum(shares) / len(shares)
            wide.append((name, *(f"{share:.2f}" for share in (*shares, mean))))
            for suite, (accuracy, n, interval) in found.items():
                self._report.add_result(
                    Result(
                        table="Test suites: share of items for which all predictions hold",
                        model=name,
                        metric=suite,
                        data="examples/suites",
                        value=accuracy,
                        n=n,
                        interval=tuple(interval),
                    )
                )

        self._report.add_table("Test suites", ("model", *found, "mean"), wide)

    def _accuracies(self, suites: Sequence[Suite], name: str) -> dict[str, Any]:
        """Return accuracy, number of items and interval of each suite."""
        found = evaluate_suites(
            self._models[name], suites, seed=self._seed, threads=self._threads
        ).suites
        return {
            suite: [each.accuracy, each.n, list(each.interval)] for suite, each in found.items()
        }


COLUMNS = (
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
)


def _shown(mean: float, interval: Sequence[float], factor: float = 1) -> str:
    low, high = (factor * each for each in interval)
    return f"{factor * mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def _key(record: dict[str, Any]) -> str:
    return f"{record['model']}|{record['over']}|{record['words']}"


def _row(record: dict[str, Any]) -> tuple[object, ...]:
    gain = record["cross_validated"]
    spans = [
        "-" if each is None else f"{1000 * each[0]:+.2f} to {1000 * each[1]:+.2f}"
        for each in (gain["interval_sentences"], gain["interval_items"])
    ]
    return (
        record["model"],
        ", ".join(record["over"]) or "-",
        record["words"],
        record["n"],
        f"{record['perplexity']:.1f}",
        f"{1000 * gain['per_word']:+.2f}",
        *spans,
        f"{record['t']:.2f}",
        f"{record['robust_t']:.2f}",
        f"{record['autocorrelation']:.2f}",
        f"{record['delta_log_likelihood']:.2f}",
        f"{record['p_value']:.2g}",
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
            "beam_width": arguments.beam_width,
        },
        recipe="reading_times",
    )
    trained = StudyModels(
        arguments.data, arguments.work, beam_width=arguments.beam_width, threads=arguments.threads
    )
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
    parser.add_argument("--beam-width", type=int, default=2000, help="of the HHMM")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    print_report(run, parser.parse_args())


if __name__ == "__main__":
    main()
