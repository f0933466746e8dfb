"""Tables 1 and 4, the ablations and the rounds: from scores to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from recipe import ClassificationTables, add_published
from systems import LATENT, TRANSLATIONS, Scores, Systems

from published import (
    BEST_ROUNDS,
    FIXED,
    LATENT_MLE,
    LENGTH_ON_DEV,
    LINEAR,
    MLE,
    MLE_LENGTH,
    NGRAM,
    NO_MEMORY,
    ORDER,
    PARSER,
    SOURCE,
    TABLE_1,
    TABLE_2,
    TABLE_4,
    TARGETS,
    TREELET,
    TREELET_SOURCE,
)
from treelm.models.lsvm.config import GRID
from treelm.models.trigram_svm.linear_svm import choose, fit_linear
from treelm.tasks.evaluate.classification import Classification, classify, tune_threshold
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.evaluate.pair_accuracy import pair_accuracy
from treelm.tasks.evaluate.significance import holm
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.view.plots import Point, Series, draw_line_chart

Floats = npt.NDArray[np.float64]

SAMPLES = "Trigram pseudo-negatives (Table 1)"
PAIRS = "References against translations (Table 1)"
ROUNDS = "Rounds of training"
ABLATIONS = "What LSVM-MLE loses without memory, and with fixed trees"
DISCRIMINATIVE = "Trigram pseudo-negatives (Table 4 of Pauls & Klein)"
#: Systems whose threshold is tuned on dev; all others decide by the sign.
TUNED = (MLE, NGRAM, TREELET, PARSER)


def with_length(systems: Systems, scores: Scores) -> Scores:
    """Return the margins of a linear SVM over the score of MLE and the number of words."""

    def features(text: str) -> Floats:
        lengths = [float(len(words)) for words in systems.sentences(text)]
        return np.column_stack([scores[text], lengths])

    dev = np.concatenate([features("pos_dev"), features("neg_dev")])
    labels = np.concatenate(
        [np.ones(len(scores["pos_dev"]), np.int8), np.full(len(scores["neg_dev"]), -1, np.int8)]
    )
    usable = np.asarray(np.isfinite(dev).all(axis=1))
    centre, spread = dev[usable].mean(axis=0), dev[usable].std(axis=0)
    scaled = (dev[usable] - centre) / spread

    def attempt(value: float) -> tuple[tuple[Floats, float], Floats]:
        weights, offset = fit_linear(scaled, labels[usable], value, 0)
        return (weights, offset), scaled @ weights + offset

    weights, offset = choose(GRID, attempt, labels[usable]).machine
    found = {}
    for text in scores:
        values = features(text)
        finite = np.asarray(np.isfinite(values).all(axis=1))
        safe = np.where(finite[:, np.newaxis], values, 0.0)
        found[text] = np.where(finite, ((safe - centre) / spread) @ weights + offset, -np.inf)
    return found


def classified(name: str, scores: Scores, seed: int) -> Classification:
    """Return how well the test sentences are classified."""
    threshold = tune_threshold(scores["pos_dev"], scores["neg_dev"]) if name in TUNED else 0.0
    return classify(
        scores["pos_test"], scores["neg_test"], threshold, seed=seed, strict=name not in TUNED
    )


def report_samples(
    report: Report, found: Mapping[str, Classification], data: str, seed: int
) -> None:
    """Report accuracy and average precision, each accuracy tested against Trigram-Linear's."""
    rows = ClassificationTables(report, data, digits=4, baseline=LINEAR)
    for name, result in found.items():
        p = None
        if name != LINEAR and LINEAR in found:
            p = compare_answers(result.right, found[LINEAR].right, seed=seed).p_value
        tables = [SAMPLES] + ([DISCRIMINATIVE] if name in TABLE_4 else [])
        rows.add(tables, name, result, p)
    for name, (precision, accuracy, _) in TABLE_1.items():
        for metric, value in (("accuracy", accuracy), ("average precision", precision)):
            row = (SAMPLES, name, metric)
            add_published(report, *row, value=value, source=f"{SOURCE}, Table 1", digits=4)
    for name, value in TABLE_4.items():
        row = (DISCRIMINATIVE, name, "accuracy")
        add_published(report, *row, value=value, source=TREELET_SOURCE, digits=4)


def report_pairs(report: Report, scores: Mapping[str, Scores], seed: int) -> None:
    """Report how often the reference is preferred to a translation."""
    for text in TRANSLATIONS:
        for name, own in scores.items():
            if f"{text}, ref" not in own:
                continue
            found = pair_accuracy(own[f"{text}, ref"], own[f"{text}, mt"], seed=seed)
            report.add_result(
                Result(
                    table=PAIRS,
                    model=name,
                    metric="pairwise accuracy",
                    data=text,
                    value=found.accuracy,
                    n=found.n,
                    interval=found.interval,
                    p=found.p_value,
                    baseline="chance (sign test)",
                    digits=4,
                )
            )
    for name, (_, _, value) in TABLE_1.items():
        row = (PAIRS, name, "pairwise accuracy")
        add_published(report, *row, value=value, source=f"{SOURCE}, Table 1", digits=4)


def report_order(report: Report, found: Mapping[str, Classification], seed: int) -> None:
    """Test the order of the paper, each system against the next, and check the targets."""
    names = [name for name in ORDER if name in found]
    pairs = list(pairwise(names))
    tests = [compare_answers(found[a].right, found[b].right, seed=seed) for a, b in pairs]
    corrected = holm([test.p_value for test in tests])
    report.add_table(
        "Order of the paper (exact McNemar, p by Holm over these tests)",
        ("better in the paper", "worse in the paper", "difference here", "p", "holds"),
        [
            (
                a,
                b,
                f"{found[a].accuracy - found[b].accuracy:+.4f}",
                f"{p:.3g}",
                _holds(found[a].accuracy - found[b].accuracy, p),
            )
            for (a, b), p in zip(pairs, corrected, strict=True)
        ],
    )
    report.add_table(
        "Targets",
        ("system", "accuracy on test", "target", "reached"),
        [
            (name, f"{found[name].accuracy:.4f}", f"{least:.2f}", _yes(found[name].accuracy, least))
            for name, least in TARGETS.items()
            if name in found
        ],
    )


def report_ablations(
    report: Report, found: Mapping[str, Classification], data: str, seed: int
) -> None:
    """Report what memory of bad trees and latent trees are worth, each difference tested."""
    if LATENT_MLE not in found:
        return
    for name in (NO_MEMORY, FIXED):
        if name not in found:
            continue
        compared = compare_answers(found[LATENT_MLE].right, found[name].right, seed=seed)
        report.add_result(
            Result(
                table=ABLATIONS,
                model=f"{LATENT_MLE} - {name}",
                metric="difference of accuracies",
                data=data,
                value=compared.difference,
                n=compared.n,
                interval=compared.interval,
                p=compared.p_value,
                baseline=f"{name} (exact McNemar)",
                digits=4,
            )
        )


def _holds(difference: float, p: float) -> str:
    if difference > 0:
        return "yes" if p < 0.05 else "yes, not significant"
    return "no" if p < 0.05 else "no, not significant"


def _yes(value: float, least: float) -> str:
    return "yes" if value >= least else "no"


def report_rounds(report: Report, systems: Systems, names: Sequence[str]) -> None:
    """Report the accuracy on dev round by round, and the cost of each training."""
    rows, series = [], []
    for name in names:
        if name not in LATENT or name == MLE:
            continue
        model = systems.latent_model(name)
        curve = model.accuracies
        if not curve:
            continue
        best = int(np.argmax(curve)) + 1
        facts = [fact for fact in systems.facts(name) if "number" in fact]
        published = BEST_ROUNDS.get(name)
        rows.append(
            (
                name,
                f"{max(curve):.4f}",
                str(best),
                "-" if published is None else str(published),
                str(len(curve)),
                f"{model.config.regularization:g}",
                str(facts[-1]["points"]) if facts else "-",
                str(len(model.features)),
                str(facts[-1]["second"]) if facts else "-",
                str(facts[-1]["dropped"]) if facts else "-",
            )
        )
        points = tuple(Point(number, value) for number, value in enumerate(curve, 1))
        series.append(Series(name, points))
        for metric, value, digits in (
            ("best round on dev", best, 0),
            ("rounds run", len(curve), 0),
            ("best accuracy on dev", max(curve), 4),
        ):
            report.add_result(
                Result(
                    table=ROUNDS,
                    model=name,
                    metric=metric,
                    data=f"dev, {systems.latent['parts']} fits per round",
                    value=value,
                    n=len(curve),
                    digits=digits,
                )
            )
        report.add_table(
            f"Accuracy on dev by round: {name}",
            ("round", "accuracy", "objective", "trees", "productions"),
            [
                (
                    str(fact["number"]),
                    f"{fact['accuracy']:.4f}",
                    f"{fact['objective']:.6g}",
                    str(fact["points"]),
                    str(fact["features"]),
                )
                for fact in facts
            ],
        )
    report.add_table(
        ROUNDS,
        (
            "system",
            "best accuracy on dev",
            "in round",
            "published round",
            "rounds",
            "regularization",
            "trees",
            "productions",
            "by the second lexicon",
            "without a tree",
        ),
        rows,
    )
    if series:
        report.add_figure(
            draw_line_chart(
                series, title="Accuracy on dev by round", x_axis="round", y_axis="accuracy"
            ),
            "Each round parses all sentences with the weights of the round before.",
        )


def report_not_run(
    report: Report, found: Mapping[str, Classification], lists: Sequence[str]
) -> None:
    """Report which published rows are not run here, and why."""
    rows = [
        (f"Table 1: {name}", "not run: left out of --systems")
        for name in TABLE_1
        if name not in found
    ]
    rows += [
        (f"Table 2: {name}, published BLEU {value}", "not run: " + _why(name))
        for name, value in TABLE_2.items()
        if name not in lists
    ]
    report.add_table("Not run", ("row", "why"), rows)
    dev = found.get(MLE_LENGTH)
    if dev is not None:
        report.add_table(
            "MLE with the length",
            ("", "accuracy"),
            [("test", f"{dev.accuracy:.4f}"), ("published, on dev", f"{LENGTH_ON_DEV:.2f}")],
        )


def _why(row: str) -> str:
    if "SMT" in row:
        return "no translations of sentences that the translator was not trained on"
    return "no lists, no sacrebleu, or left out of --systems"
