"""A report of what syntax.py has measured: perplexities with intervals, and what each model cost.

    python experiments/composite/syntax_report.py --trees TREES --work FOLDER --output REPORT \
        --folder size-1 [--seeds 1 2]

Intervals are 95 % of bootstrap samples of the test documents. Further seeds of the first topics
(`syntax.py --seed`) are reported beside the first one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
from intervals import document_sums
from syntax import KNESER_NEY
from syntax_corpus import ParsedCorpus, documents_of, read_corpus

from treelm.seeds import generator
from treelm.tasks.evaluate.resampling import ROUNDS, percentile_interval, resampled_sums
from treelm.tasks.evaluate.significance import paired_bootstrap_perplexity
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

Floats = npt.NDArray[np.float64]

TABLE = "Perplexity (Table 3), columns of three orders"
COST = "Cost of training"
SEEDS = "Seeds of the first topics"


class Measured:
    """Scores of a folder that syntax.py wrote.

    Args:
        folder: The folder.
        corpus: The corpus.
        data: What the results call it.
        seed: Seed of the intervals.
    """

    def __init__(self, folder: Path, corpus: ParsedCorpus, data: str, seed: int) -> None:
        self.folder, self.data, self.seed = folder, data, seed
        self.is_new = corpus.is_new
        self.documents = documents_of(corpus.test)
        records = (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
        self.records = {record["model"]: record for record in records}

    def scores(self, model: str) -> Floats:
        """Return the log probabilities of the test words and sentence ends."""
        name = model.replace("/", "+").replace(" ", "-")
        found: Floats = np.load(self.folder / f"{name}.npz")["test"]
        return found

    def baseline(self, model: str) -> str:
        """Return the linear n-gram that a model is compared with: that of the longest order."""
        orders = [int(part.partition("-")[0]) for part in _parts(model) if "-gram" in part]
        heads = [int(part.partition("-")[0]) + 1 for part in _parts(model) if "-SLM" in part]
        return f"{max([*orders, *heads, 3])}-gram"

    def report(self, report: Report) -> None:
        """Add perplexities and costs of all models."""
        for model, record in self.records.items():
            for kind, chosen in (
                ("all sentences", np.ones(len(self.is_new), bool)),
                ("new sentences", self.is_new),
            ):
                self._perplexity(report, model, f"{self.data}, {kind}", chosen)
            for metric in ("training_seconds", "types"):
                if metric in record:
                    report.add_result(
                        Result(
                            table=COST,
                            model=model,
                            metric=metric.replace("_", " "),
                            data=self.data,
                            value=_largest(record[metric]),
                            n=record["tokens"],
                            digits=1,
                        )
                    )

    def _perplexity(
        self, report: Report, model: str, data: str, chosen: npt.NDArray[np.bool_]
    ) -> None:
        documents = np.unique(self.documents[chosen], return_inverse=True)[1]
        tokens = np.bincount(documents).astype(np.float64)
        sums = document_sums(self.scores(model)[chosen], documents)
        drawn = resampled_sums(
            np.stack([sums, tokens], axis=1), rounds=ROUNDS, generator=generator(self.seed, 0)
        )
        report.add_result(
            Result(
                table=TABLE,
                model=model,
                metric="perplexity",
                data=data,
                value=float(np.exp(-sums.sum() / tokens.sum())),
                n=int(tokens.sum()),
                interval=percentile_interval(np.exp(-drawn[:, 0] / drawn[:, 1])),
            )
        )
        baseline = self.baseline(model)
        if baseline == model or baseline not in self.records:
            return
        other = document_sums(self.scores(baseline)[chosen], documents)
        found = paired_bootstrap_perplexity(sums, other, tokens, seed=self.seed)
        low, high = sorted(100 * (np.exp(-np.array(found.interval)) - 1))
        report.add_result(
            Result(
                table=TABLE,
                model=model,
                metric="per cent against the n-gram",
                data=data,
                value=float(100 * (np.exp(-found.difference) - 1)),
                n=found.n,
                interval=(float(low), float(high)),
                p=found.p_value,
                baseline=baseline,
                digits=1,
            )
        )


def _parts(model: str) -> list[str]:
    return [
        part for each in model.split(" + ") for part in each.removesuffix(KNESER_NEY).split("/")
    ]


def _largest(value: float | list[float]) -> float:
    return float(max(value)) if isinstance(value, list) else float(value)


def report_seeds(report: Report, folders: list[tuple[int, Path]], data: str) -> None:
    """Add the perplexity of every seed, and the mean and the range over seeds."""
    found: dict[str, dict[int, float]] = {}
    for seed, folder in folders:
        for path in sorted(folder.glob("*.json")):
            record = json.loads(path.read_text())
            if "PLSA" in record["model"]:
                found.setdefault(record["model"], {})[seed] = record["test"]
    for model, by_seed in found.items():
        if len(by_seed) < 2:
            continue
        values = list(by_seed.values())
        rows = {f"perplexity, seed {seed}": value for seed, value in by_seed.items()}
        rows["mean perplexity"] = float(np.mean(values))
        rows["largest less smallest"] = max(values) - min(values)
        for metric, value in rows.items():
            report.add_result(
                Result(
                    table=SEEDS,
                    model=model,
                    metric=metric,
                    data=f"{data}, all sentences",
                    value=value,
                    n=len(values),
                )
            )


def main() -> None:
    """Read the arguments and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--trees", type=Path, required=True, help="folder written by parsed_corpus.py"
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of syntax.py")
    parser.add_argument("--output", type=Path, required=True, help="report folder to write")
    parser.add_argument("--folder", required=True, help="which folder of WORK, such as size-1")
    parser.add_argument("--data-name", default="reuters", help="what results call the text")
    parser.add_argument("--seeds", type=int, nargs="*", default=[], help="further seeds of topics")
    parser.add_argument("--seed", type=int, default=1, help="seed of the intervals")
    arguments = parser.parse_args()
    corpus = read_corpus(arguments.trees, arguments.work)
    report = Report(
        arguments.output,
        "Composite models of three orders",
        seeds={"bootstrap": arguments.seed},
        options={"folder": arguments.folder},
        recipe="composite",
    )
    report.add_input("training trees", arguments.trees / "train.mrg", role="train")
    report.add_input("held-out trees", arguments.trees / "held-out.mrg", role="tune")
    report.add_input("test text", arguments.trees / "test.txt", role="test")
    first = arguments.work / arguments.folder
    Measured(first, corpus, arguments.data_name, arguments.seed).report(report)
    folders = [(0, first)]
    folders += [(seed, first.with_name(f"{first.name}-seed{seed}")) for seed in arguments.seeds]
    report_seeds(report, folders, arguments.data_name)
    print(report.write())


if __name__ == "__main__":
    main()
