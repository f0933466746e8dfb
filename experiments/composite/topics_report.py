"""A report of Table 2 from what topics.py has measured: perplexity, hours and types by topics kept.

    python experiments/composite/topics_report.py --work FOLDER --output REPORT [--size 16]

Models are those before EM of the predictor. Hours are processor hours of one core: PLSA, counting,
and the weights of the held-out documents. Intervals are 95 % of bootstrap samples of the test
documents.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
from intervals import DATA, document_sums
from syntax_corpus import documents_of
from topic_corpus import read_corpus
from topics import ORDER

from treelm.seeds import generator
from treelm.tasks.evaluate.resampling import ROUNDS, percentile_interval, resampled_sums
from treelm.tasks.evaluate.significance import paired_bootstrap_perplexity
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

TABLE = "Topics kept, with hours (Table 2)"
PARTS_OF_TIME = ("plsa", "count", "weights")


def order_of(kind: str) -> int:
    """Return the order that the first part of a model's name stands for.

    Examples:
        >>> order_of("composite"), order_of("composite5")
        (3, 5)
    """
    return int(kind[-1]) if kind[-1].isdigit() else ORDER


class Table:
    """Rows of the table, one for each model of a part of the text.

    Args:
        report: Gets the rows.
        work: Folder of topics.py.
        data: What results call the text.
        documents: Document of each test word and sentence end.
        seed: Seed of the intervals.
    """

    def __init__(
        self, report: Report, work: Path, data: str, documents: npt.NDArray[np.int64], seed: int
    ) -> None:
        self._report, self._work, self._data, self._seed = report, work, data, seed
        self._documents = np.unique(documents, return_inverse=True)[1]
        self._tokens = np.bincount(self._documents).astype(np.float64)

    def add(self, path: Path) -> None:
        """Add what is known of a model before EM."""
        name = path.stem.removeprefix("start-")
        kind, kept, size = name.split("-")
        record = json.loads(path.read_text())
        model = f"{order_of(kind)}-gram/PLSA, {kept} topics kept"
        seconds = sum(record[f"{part}_processor_seconds"] for part in PARTS_OF_TIME)
        self._result(model, "processor hours", seconds / 3600, digits=3)
        self._result(model, "types", max(record["types"]), digits=0)
        self._result(model, "share of the document", record["kept_mass"], digits=3)
        if "test_perplexity" not in record:
            return
        sums = self._sums(name)
        drawn = resampled_sums(
            np.stack([sums, self._tokens], axis=1),
            rounds=ROUNDS,
            generator=generator(self._seed, 0),
        )
        interval = percentile_interval(np.exp(-drawn[:, 0] / drawn[:, 1]))
        self._result(model, "perplexity", record["test_perplexity"], interval=interval)
        baseline = f"ngram{'' if order_of(kind) == ORDER else order_of(kind)}-{size}"
        if not (self._work / f"scores-{baseline}.npz").is_file():
            return
        found = paired_bootstrap_perplexity(
            sums, self._sums(baseline), self._tokens, seed=self._seed
        )
        low, high = sorted(100 * (np.exp(-np.array(found.interval)) - 1))
        self._result(
            model,
            "per cent against the n-gram",
            float(100 * (np.exp(-found.difference) - 1)),
            interval=(float(low), float(high)),
            digits=1,
        )

    def _sums(self, name: str) -> npt.NDArray[np.float64]:
        scores = np.load(self._work / f"scores-{name}.npz")["test"]
        return document_sums(scores, self._documents)

    def _result(
        self,
        model: str,
        metric: str,
        value: float,
        *,
        interval: tuple[float, float] | None = None,
        digits: int = 2,
    ) -> None:
        self._report.add_result(
            Result(
                table=TABLE,
                model=model,
                metric=metric,
                data=self._data,
                value=value,
                n=int(self._tokens.sum()),
                interval=interval,
                digits=digits,
            )
        )


def main() -> None:
    """Read the arguments and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of topics.py")
    parser.add_argument("--output", type=Path, required=True, help="report folder to write")
    parser.add_argument("--data", type=Path, default=DATA, help="data folder")
    parser.add_argument("--size", type=int, default=16, help="part of the training documents")
    parser.add_argument("--seed", type=int, default=1, help="seed of the intervals")
    arguments = parser.parse_args()
    corpus = read_corpus(arguments.data, arguments.work)
    report = Report(
        arguments.output,
        "Topics kept",
        seeds={"bootstrap": arguments.seed, "topics": 1},
        options={"size": arguments.size},
        recipe="composite",
    )
    train = corpus.part(arguments.size)
    words = len(train.ids) + len(train)
    data = f"three texts, {words / 1e6:.3g}M words"
    table = Table(report, arguments.work, data, documents_of(corpus.test), arguments.seed)
    for path in sorted(arguments.work.glob(f"start-composite*-{arguments.size}.json")):
        table.add(path)
    print(report.write())


if __name__ == "__main__":
    main()
