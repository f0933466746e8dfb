"""The polynomial kernel: exact, and approximated with fewer and fewer landmarks."""

from __future__ import annotations

from collections.abc import Sequence

from systems import Systems

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.train import train_trigram_svm
from treelm.tasks.evaluate.classification import Classification, classify
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

TABLE = "Polynomial kernel over n-grams, by landmarks of Nystroem's approximation"
EXACT = "exact: a landmark for every training sentence"


def report_kernels(report: Report, systems: Systems, landmarks: Sequence[int]) -> None:
    """Train machines with so many landmarks, and with all, and test each against the exact one.

    With a landmark for every training sentence nothing is approximated: the machine is that of
    the kernel itself.
    """
    train, dev, test = (
        LabelledSentences(
            TextCorpus((systems.file("pos", part),)), TextCorpus((systems.file("neg", part),))
        )
        for part in ("train", "dev", "test")
    )
    size = sum(1 for _ in train.good) + sum(1 for _ in train.bad)
    found: dict[str, Classification] = {}
    for count in (*sorted(number for number in landmarks if number < size), size):
        config = TrigramSvmConfig(kernel="poly", components=count, seed=systems.seed)
        model = train_trigram_svm(train, config, tuning=dev)
        scores = [model.sentence_log_probs(list(side)) for side in (test.good, test.bad)]
        name = EXACT if count == size else f"{count:,} landmarks"
        found[name] = classify(*scores, 0.0, seed=systems.seed, strict=True)
    for name, own in found.items():
        p = compare_answers(own.right, found[EXACT].right, seed=systems.seed).p_value
        for metric, value, interval in (
            ("accuracy", own.accuracy, own.interval),
            ("average precision", own.average_precision, own.average_precision_interval),
        ):
            tested = metric == "accuracy" and name != EXACT
            report.add_result(
                Result(
                    table=TABLE,
                    model=name,
                    metric=metric,
                    data=f"{size:,} training sentences",
                    value=value,
                    n=own.n,
                    interval=interval,
                    p=p if tested else None,
                    baseline="the exact kernel (exact McNemar)" if tested else None,
                    digits=4,
                )
            )
