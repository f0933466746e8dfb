"""How well 5-gram models judge sentences, beside published numbers."""

from __future__ import annotations

from collections.abc import Mapping

from recipe import ClassificationTables, add_published

from treelm.tasks.evaluate.classification import Classification
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.report.report import Report

STANDS_FOR = "BLLIP, split of Post (2011)"
TABLE = "Trigram pseudo-negatives"

#: The models of the tables, by their names in results.
SMALL = "5-gram on POS_TRAIN"
LARGE = "5-gram on POS_TRAIN + GEN_TEXT"
CONTROL = "5-gram on POS_TRAIN + other text"

#: Table 4 of Pauls & Klein (2012): models not run here, with 50K sentences and a billion words.
PUBLISHED = {
    "5-gram": (0.679, 0.875),
    "PCFG": (0.815, 0.818),
    "TREELET-RULE": (0.898, 0.941),
    "TREELET": (0.889, 0.933),
}
SOURCE = "Pauls & Klein 2012, Table 4"


def report_classification(
    report: Report, found: Mapping[str, Classification], text: str, seed: int
) -> None:
    """Report the models of the tables, each compared with the smallest one."""
    tables = ClassificationTables(report, text, digits=3, baseline=SMALL)
    rows = []
    for name, result in found.items():
        p = None
        if name != SMALL:
            p = compare_answers(result.right, found[SMALL].right, seed=seed).p_value
        tables.add([TABLE], name, result, p)
        calls = (
            f"{result.right[: result.good].mean():.3f}",
            f"{result.right[result.good :].mean():.3f}",
        )
        rows.append((name, f"{result.threshold:.4f}", f"{result.tuning_accuracy:.3f}", *calls))
    report.add_table(
        "Thresholds",
        ("model", "threshold", "accuracy on dev", "positives right", "negatives right"),
        rows,
    )
    for name, values in PUBLISHED.items():
        for value, where in zip(values, ("BLLIP, 50K sentences", "1B words"), strict=True):
            ours = SMALL if where.startswith("BLLIP") else LARGE
            add_published(
                report,
                TABLE,
                ours if name == "5-gram" else f"{name} on {where}",
                "accuracy",
                value=value,
                source=SOURCE,
                digits=3,
                data=f"{STANDS_FOR}; trained on {where}",
            )
