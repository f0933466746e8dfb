"""How well 5-gram models judge sentences, beside published numbers."""

from __future__ import annotations

from collections.abc import Mapping

from treelm.tasks.evaluate.classification import Classification
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published, Result

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
    rows = []
    for name, result in found.items():
        p = None
        if name != SMALL:
            p = compare_answers(result.right, found[SMALL].right, seed=seed).p_value
        report.add_result(
            Result(
                table=TABLE,
                model=name,
                metric="accuracy",
                data=text,
                value=result.accuracy,
                n=result.n,
                interval=result.interval,
                p=p,
                baseline=None if p is None else f"{SMALL} (exact McNemar)",
                digits=3,
            )
        )
        report.add_result(
            Result(
                table=TABLE,
                model=name,
                metric="average precision",
                data=text,
                value=result.average_precision,
                n=result.n,
                interval=result.average_precision_interval,
                digits=3,
            )
        )
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
            report.add_published(
                Published(
                    table=TABLE,
                    model=ours if name == "5-gram" else f"{name} on {where}",
                    metric="accuracy",
                    data=f"{STANDS_FOR}; trained on {where}",
                    value=value,
                    source=SOURCE,
                    digits=3,
                )
            )
