"""How models judge minimal pairs, as results, tables and pictures of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from treelm.corpus.score_files import ScoreTable
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.evaluate.pair_accuracy import PairAccuracy, pair_accuracy
from treelm.tasks.evaluate.significance import holm
from treelm.tasks.evaluate.slr import Measure, measured_scores
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published, Result
from treelm.view.plots import Bar, Reference, draw_bar_chart, draw_grouped_bars

MIXTURE = "mixture"
MEASURES: Mapping[Measure, str] = {"log_prob": "log probability", "slr": "SLR"}
CONVENTIONS = {"ties wrong": False, "ties half": True}

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Overall accuracies of Warstadt et al. (2020): value, what it was trained on, checked.
ANCHORS = {
    "5-gram (Warstadt et al.)": (0.612, "3 billion words of Gigaword", True),
    "LSTM (Warstadt et al.)": (0.698, "83 million words of Wikipedia", True),
    "people": (0.89, "single annotators", False),
}
#: Accuracy of their 5-gram model by phenomenon. They count s-selection (two paradigms with animate
#: subjects) as argument structure; both numbers are means over the paradigms named in the data.
PUBLISHED_5_GRAM = {
    "anaphor_agreement": 0.479,
    "argument_structure": 0.694,
    "binding": 0.644,
    "control_raising": 0.685,
    "determiner_noun_agreement": 0.701,
    "ellipsis": 0.369,
    "filler_gap_dependency": 0.602,
    "irregular_forms": 0.795,
    "island_effects": 0.572,
    "npi_licensing": 0.455,
    "quantifiers": 0.535,
    "s-selection": 0.805,
    "subject_verb_agreement": 0.603,
}
SOURCE = "Warstadt et al. 2020, summary of results by the authors"


class PairScores:
    """The scores of one model for the pairs.

    Args:
        good: Scores of the good sentences.
        bad: Scores of the bad ones.
    """

    def __init__(self, good: ScoreTable, bad: ScoreTable) -> None:
        self.tables = (good, bad)
        self._measured = {
            measure: (measured_scores(good, measure), measured_scores(bad, measure))
            for measure in MEASURES
        }

    def of(self, measure: Measure, chosen: Flags) -> tuple[Numbers, Numbers]:
        """Return the scores of the chosen pairs by one measure."""
        good, bad = self._measured[measure]
        return good[chosen], bad[chosen]

    def right(self, measure: Measure) -> Flags:
        """Return which pairs are correct; ties are wrong."""
        good, bad = self._measured[measure]
        return good > bad


def report_overall(
    report: Report, scores: Mapping[str, PairScores], subsets: Mapping[str, Flags], seed: int
) -> None:
    """Report the accuracy on all pairs and on those without unknown words."""
    singles = [name for name in scores if name != MIXTURE]
    keys = [(data, measure) for data in subsets for measure in MEASURES]
    best: dict[tuple[str, Measure], tuple[str, float]] = {}
    for data, measure in keys:
        chosen = subsets[data]
        right = {name: scores[name].right(measure)[chosen] for name in scores}
        strongest = max(singles, key=lambda name: int(right[name].sum()))
        found = compare_answers(right[MIXTURE], right[strongest], seed=seed, items="pairs")
        best[data, measure] = (f"{strongest} ({found.test}, Holm)", found.p_value)
    corrected = dict(zip(keys, holm([p for _, p in best.values()]), strict=True))
    rows = []
    for data, measure in keys:
        for name, one in scores.items():
            for convention, half in CONVENTIONS.items():
                found_here = pair_accuracy(
                    *one.of(measure, subsets[data]), seed=seed, half_ties=half
                )
                tested = name == MIXTURE and not half
                report.add_result(
                    Result(
                        table=f"Accuracy, {data}",
                        model=name,
                        metric=f"{MEASURES[measure]}, {convention}",
                        data="BLiMP",
                        value=found_here.accuracy,
                        n=found_here.n,
                        interval=found_here.interval,
                        p=corrected[data, measure] if tested else None,
                        baseline=best[data, measure][0] if tested else None,
                        digits=3,
                    )
                )
            rows.append((data, MEASURES[measure], name, found_here.n, found_here.ties))
    report.add_table("Ties", ("pairs", "measure", "model", "n", "ties"), rows)
    add_anchors(report, "Accuracy, all pairs")
    draw_overall(report, scores, seed)


def report_accuracy(
    report: Report, model: str, data: str, differences: Numbers, seed: int
) -> PairAccuracy:
    """Add how often a model prefers the good sentence, and return it.

    Args:
        report: Gets the row.
        model: Name of the model.
        data: Name of the pairs.
        differences: For each pair the score of the good sentence minus that of the bad one.
        seed: Seed of the interval.
    """
    found = pair_accuracy(differences, np.zeros(len(differences)), seed=seed)
    report.add_result(
        Result(
            table="Accuracy",
            model=model,
            metric="log probability, ties wrong",
            data=data,
            value=found.accuracy,
            n=found.n,
            interval=found.interval,
            digits=3,
        )
    )
    return found


def preferences(good: Numbers, bad: Numbers) -> Numbers:
    """Return by how much good sentences are preferred; two that are impossible are alike."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(good - bad, nan=0.0, posinf=np.inf, neginf=-np.inf)


def add_anchors(report: Report, table: str) -> None:
    """Put the published accuracies on BLiMP into a table."""
    for model, (value, data, checked) in ANCHORS.items():
        report.add_published(
            Published(
                table=table,
                model=model,
                metric="log probability, ties wrong",
                data=f"BLiMP; {data}",
                value=value,
                source=SOURCE if checked else "Warstadt et al. 2020",
                checked=checked,
                digits=3,
            )
        )


def draw_overall(report: Report, scores: Mapping[str, PairScores], seed: int) -> None:
    """Draw the accuracies on all pairs; published ones are named as such."""
    bars = []
    for name, one in scores.items():
        everything = np.ones(len(one.tables[0]), dtype=np.bool_)
        found = pair_accuracy(*one.of("log_prob", everything), seed=seed)
        bars.append(Bar(name, found.accuracy, *found.interval))
    bars += [
        Bar(f"published: {name.split(' (')[0]}", value) for name, (value, _, _) in ANCHORS.items()
    ]
    report.add_figure(
        draw_bar_chart(
            bars,
            title="BLiMP, all pairs, log probability, ties wrong",
            axis="accuracy",
            digits=3,
            reference=Reference(0.5, "chance"),
        ),
        "Bars are accuracies, lines 95 % intervals. Published numbers were measured by others, "
        "with models trained on other text.",
    )


def report_groups(
    report: Report, scores: Mapping[str, PairScores], groups: Sequence[str], kind: str, seed: int
) -> dict[str, list[Bar]]:
    """Report the accuracy for each group of pairs, and return bars of log probabilities."""
    labels = np.array(groups)
    names = sorted(set(groups))
    bars: dict[str, list[Bar]] = {name: [] for name in names}
    ties: dict[tuple[str, Measure], list[int]] = {}
    for measure, convention in ((m, c) for m in MEASURES for c in CONVENTIONS):
        for model, one in scores.items():
            for group in names:
                found = pair_accuracy(
                    *one.of(measure, labels == group), seed=seed, half_ties=CONVENTIONS[convention]
                )
                report.add_result(
                    Result(
                        table=f"By {kind}, {MEASURES[measure]}, {convention}",
                        model=model,
                        metric=group,
                        data="BLiMP",
                        value=found.accuracy,
                        n=found.n,
                        interval=found.interval,
                        digits=3,
                    )
                )
                if convention == "ties wrong":
                    ties.setdefault((group, measure), []).append(found.ties)
                    if measure == "log_prob":
                        bars[group].append(Bar(model, found.accuracy, *found.interval))
    report.add_table(
        f"At a glance: accuracy by {kind}, log probability, ties wrong",
        (kind, "n", *scores),
        [(g, groups.count(g), *(f"{bar.value:.3f}" for bar in bars[g])) for g in names],
    )
    report.add_table(
        f"Ties by {kind}",
        (kind, "measure", *scores),
        [(group, MEASURES[measure], *counts) for (group, measure), counts in ties.items()],
    )
    return bars


def report_phenomena(
    report: Report, scores: Mapping[str, PairScores], phenomena: Sequence[str], seed: int
) -> None:
    """Report and draw the accuracy for each phenomenon, beside that of the published 5-gram."""
    bars = report_groups(report, scores, phenomena, "phenomenon", seed)
    model = next(iter(ANCHORS))
    for phenomenon, value in PUBLISHED_5_GRAM.items():
        report.add_published(
            Published(
                table="By phenomenon, log probability, ties wrong",
                model=model,
                metric=phenomenon,
                data=f"BLiMP; {ANCHORS[model][1]}",
                value=value,
                source=SOURCE,
                digits=3,
            )
        )
    report.add_figure(
        draw_grouped_bars(
            {name.replace("_", " "): group for name, group in bars.items()},
            title="BLiMP by phenomenon, log probability, ties wrong",
            axis="accuracy",
            reference=Reference(0.5, "chance"),
        ),
        "Bars are accuracies, lines 95 % intervals.",
    )
