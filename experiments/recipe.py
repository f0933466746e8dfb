"""What the recipes share: their options, how they run, and rows that stand in several tables.

A recipe finds this module after ``sys.path.append(str(Path(__file__).resolve().parents[1]))``.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treelm.errors import TreelmWarning
from treelm.seeds import generator
from treelm.tasks.evaluate.classification import Classification
from treelm.tasks.evaluate.resampling import (
    ROUNDS,
    Interval,
    percentile_interval,
    resampled_sums,
)
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published, Result

#: Where the data lie unless an option says otherwise.
DATA = Path(__file__).resolve().parents[2] / "shared/data"


def data_options(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of options that has ``--data``.

    Args:
        description: The recipe's docstring, whose first line is shown.
    """
    parser = argparse.ArgumentParser(description=(description or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="data folder")
    return parser


def recipe_options(
    description: str | None,
    *,
    output: str = "report folder to write",
    needs_output: bool = True,
    threads: int = 2,
    seed: str | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of the options that every recipe with a report has.

    Args:
        description: The recipe's docstring, whose first line is shown.
        output: What ``--output`` names.
        needs_output: Whether it must be given.
        threads: Default of ``--threads``.
        seed: What ``--seed`` is the seed of.
    """
    parser = data_options(description)
    parser.add_argument("--output", type=Path, required=needs_output, help=output)
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--seed", type=int, default=1, help=seed)
    return parser


def check_kept_options(folder: Path, options: Mapping[str, object]) -> None:
    """Refuse a folder of kept results that were made with other options; make it if it is new.

    Raises:
        SystemExit: naming what to do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "options.json"
    if not path.exists():
        path.write_text(json.dumps(options, indent=1) + "\n", encoding="utf-8")
    elif json.loads(path.read_text(encoding="utf-8")) != options:
        raise SystemExit(
            f"{path}: what is kept there was made with different options or trees; choose another "
            "--output, or remove the folder"
        )


def print_report(run: Callable[[argparse.Namespace], Path], arguments: argparse.Namespace) -> None:
    """Run a recipe and print the folder of its report.

    Warnings are not shown: oddities in the trees are counted in the report.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        print(run(arguments))


def perplexity(
    scores: npt.NDArray[np.float64], lengths: npt.NDArray[np.integer], seed: int
) -> tuple[float, Interval]:
    """Return the perplexity of words and ends, and its bootstrap interval over sentences.

    Args:
        scores: Log probability of each sentence.
        lengths: Words of each.
        seed: Seed of the bootstrap.
    """
    items = np.stack([scores, lengths + 1.0], axis=1)
    sums = resampled_sums(items, rounds=ROUNDS, generator=generator(seed, 0))
    value = math.exp(-float(scores.sum()) / float(items[:, 1].sum()))
    return value, percentile_interval(np.exp(-sums[:, 0] / sums[:, 1]))


@dataclass(frozen=True)
class ClassificationTables:
    """Tables of accuracies and average precisions of models that tell good sentences from bad.

    Args:
        report: Gets the rows.
        data: What was classified.
        digits: Of the numbers.
        baseline: Against what accuracies are tested.
    """

    report: Report
    data: str
    digits: int
    baseline: str

    def add(
        self, tables: Sequence[str], model: str, found: Classification, p: float | None
    ) -> None:
        """Add what was found: an accuracy to all tables, an average precision to the first.

        Args:
            tables: Their names.
            model: Name of the model.
            found: How well it tells sentences apart.
            p: What McNemar's test of its accuracy against the baseline gave.
        """
        baseline = None if p is None else f"{self.baseline} (exact McNemar)"
        accuracy = ("accuracy", found.accuracy, found.interval, p, baseline)
        precision = found.average_precision, found.average_precision_interval
        rows = [(table, *accuracy) for table in tables]
        rows.append((tables[0], "average precision", *precision, None, None))
        for table, metric, value, interval, its_p, its_baseline in rows:
            self.report.add_result(
                Result(
                    table=table,
                    model=model,
                    metric=metric,
                    data=self.data,
                    value=value,
                    n=found.n,
                    interval=interval,
                    p=its_p,
                    baseline=its_baseline,
                    digits=self.digits,
                )
            )


def add_published(
    report: Report,
    table: str,
    model: str,
    metric: str,
    *,
    value: float,
    source: str,
    digits: int,
    data: str = "the publication's own data",
) -> None:
    """Add a published number, which stands beside ours and is not ours."""
    report.add_published(
        Published(
            table=table,
            model=model,
            metric=metric,
            data=data,
            value=value,
            source=source,
            digits=digits,
        )
    )
