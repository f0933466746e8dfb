"""N-best lists reranked by every model: ten folds, weights from the other nine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from files import write_lines
from lists import Numbers, ScoredLists
from recipe import add_published

from treelm.errors import MissingExtra
from treelm.models.interface.model import LanguageModel
from treelm.tasks.evaluate.pair_accuracy import pair_accuracy
from treelm.tasks.evaluate.reranking import compare_choices, cross_validate_pool
from treelm.tasks.evaluate.resampling import Interval, percentile_interval, resampled_sums
from treelm.tasks.evaluate.significance import Difference
from treelm.tasks.evaluate.translation import ROUNDS
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.tasks.tune import Method, TuneOptions
from treelm.translation.hypothesis_pool import HypothesisPool
from treelm.translation.mira import EPOCHS
from treelm.translation.weights import Weights

Rerankers = Mapping[str, Callable[[], LanguageModel]]

TABLE = "Reranked n-best lists, ten folds (Table 4 of the composite paper)"
PAIRS = "References against translations (Table 6 of the treelet paper)"
BASELINE = "features as they are"
OF_ALL = "BLEU of all"
#: Features that were learned from translations of the training text, and the rows that they give:
#: Table 2 of the latent-SVM paper.
CLASSIFIERS = ("trigram SVM", "latent SVM")
ALL = "all together"
#: Models of which each adds something to the others, found on the development set.
CHOSEN = ("3-gram", "5-gram of more open text", "2-SLM", "treelet")


def rows_of(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the rows of the table, each with the models that it adds."""
    both = tuple(name for name in CLASSIFIERS if name in names)
    rows = {BASELINE: (), **{f"+ {name}": (name,) for name in names}}
    if len(both) > 1:
        rows["+ both SVMs"] = both
    if {*CHOSEN} <= {*names}:
        rows[f"+ {', '.join(CHOSEN)}"] = CHOSEN
    probabilities = tuple(name for name in names if name not in CLASSIFIERS)
    rows["+ all language models"] = probabilities
    rows[ALL] = tuple(names)
    return rows


def model_scores(
    report: Report, lists: ScoredLists, rerankers: Rerankers
) -> tuple[dict[str, Numbers], Rerankers]:
    """Return what models say about all hypotheses, and the models that could be had."""
    found, had = {}, {}
    for name, model in rerankers.items():
        try:
            found[name] = lists.scores(name, model)
        except MissingExtra as error:
            report.warn(f"{name}: not run. {error}")
            continue
        had[name] = model
    return found, had


@dataclass(frozen=True)
class Folds:
    """Reranks lists with the features of each row; what was found is kept.

    Args:
        lists: The lists.
        scores: What models say about all hypotheses.
        method: How weights are tuned.
        epochs: Passes of MIRA.
    """

    lists: ScoredLists
    scores: Mapping[str, Numbers]
    method: Method
    epochs: int

    @property
    def is_tuned_on(self) -> bool:
        """Whether Moses tuned its weights on these lists: then nothing may start from them."""
        return self.lists.part == "val"

    def found(self, row: str, names: Sequence[str], seed: int) -> dict[str, Any]:
        """Return what ten folds gave, now or before."""
        name = f"{self.lists.part}.{self.lists.size}.{self.method}{self.epochs}.{feature_name(row)}"
        path = self.lists.folder / "folds" / f"{name}.seed{seed}.json"
        if not path.exists():
            given = None
            if not self.is_tuned_on:
                given = Weights.read(self.lists.data / "mt/multi30k/weights.ini")
            pool = self.pool(names)
            options = TuneOptions(seed=seed, method=self.method, epochs=self.epochs)
            found = cross_validate_pool(pool, given, options, distinct=self.lists.distinct)
            path.parent.mkdir(parents=True, exist_ok=True)
            record = found.to_record() | {"models": list(names), "chosen": list(found.chosen)}
            write_lines(path, [json.dumps(record)])
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kept["models"] != list(names):
            raise SystemExit(f"{path}: other models were there; remove the folder")
        return kept

    def pool(self, names: Sequence[str]) -> HypothesisPool:
        """Return the hypotheses with the scores of some models as features."""
        return self.lists.with_features({feature_name(name): self.scores[name] for name in names})

    def places(self, found: dict[str, Any]) -> npt.NDArray[np.int64]:
        """Return the places of the hypotheses that ten folds chose."""
        chosen: npt.NDArray[np.int64] = np.array(found["chosen"]) + self.lists.pool.starts[:-1]
        return chosen

    def difference(self, one: dict[str, Any], other: dict[str, Any], seed: int) -> Difference:
        """Return what one choice has more than another, by a paired bootstrap over sentences."""
        return compare_choices(self.lists.pool, self.places(one), self.places(other), seed=seed)

    def interval(self, places: npt.NDArray[np.int64], seed: int) -> Interval:
        """Return the interval of BLEU of a choice, over sentences."""
        pool = self.lists.pool
        sums = resampled_sums(
            pool.statistics[places].astype(np.float64),
            rounds=ROUNDS,
            generator=np.random.Generator(np.random.PCG64(seed)),
        )
        return percentile_interval(pool.metric.value(sums))


def report_reranking(
    report: Report,
    lists: ScoredLists,
    rerankers: Rerankers,
    *,
    seeds: Sequence[int],
    method: Method,
    epochs: int = EPOCHS,
) -> None:
    """Report BLEU of the lists as they are, and reranked with the features of each row."""
    scores, had = model_scores(report, lists, rerankers)
    folds = Folds(lists, scores, method, epochs)
    data = f"Multi30k {lists.part}, {lists.size} best"
    n = len(lists.references)

    def add(
        model: str,
        value: float,
        metric: str = OF_ALL,
        interval: Interval | None = None,
        p: float | None = None,
    ) -> None:
        report.add_result(
            Result(
                table=TABLE,
                model=model,
                metric=metric,
                data=data,
                value=value,
                n=n,
                interval=interval,
                p=p,
                baseline=None if p is None else BASELINE,
            )
        )

    baselines = {seed: folds.found(BASELINE, (), seed) for seed in seeds}
    base = baselines[seeds[0]]
    first = "first of the lists" + (", tuned on these" if folds.is_tuned_on else "")
    add(
        first,
        base["first"]["together"],
        interval=folds.interval(lists.pool.starts[:-1], seeds[0]),
    )
    add(first, base["first"]["mean_of_folds"], "mean BLEU of folds")
    add("oracle", base["oracle"])
    weights, means = [], []
    for row, names in rows_of(list(scores)).items():
        gains, bleu = [], []
        for seed in seeds[:1] if len(names) == 1 else seeds:  # models alone change little
            found, base = folds.found(row, names, seed), baselines[seed]
            name = f"{row}, seed {seed}"
            interval = folds.interval(folds.places(found), seed)
            add(name, found["reranked"]["together"], interval=interval)
            add(name, found["reranked"]["mean_of_folds"], "mean BLEU of folds")
            if names:
                gain = folds.difference(found, base, seed)
                add(name, gain.difference, "gain", gain.interval, gain.p_value)
            bleu.append(found["reranked"]["together"])
            gains.append(bleu[-1] - base["reranked"]["together"])
            for feature in ("LM0", *map(feature_name, names)):
                mean = np.mean([each[feature][0] for each in found["weights"]])
                weights.append((name, feature, f"{mean:.4f}"))
        means.append((row, len(bleu), f"{np.mean(bleu):.2f}", f"{np.mean(gains):+.2f}"))
    report.add_table("Reranking, mean of the seeds", ("row", "seeds", "BLEU of all", "gain"), means)
    report.add_table("Mean weights over the folds", ("row", "feature", "weight"), weights)
    report.add_table("Lists", ("different texts per list",), [(f"{lists.distinct:.0f}",)])
    for name, value in {"5-gram": 32.53, "5-gram/2-SLM, 2-gram/4-SLM, 5-gram/PLSA": 33.32}.items():
        add_published(
            report,
            TABLE,
            name,
            "mean BLEU of folds",
            value=value,
            source="Tan et al. 2011, Table 4 (quoted from memory)",
            digits=2,
        )
    report_pairs(report, lists, had, seed=seeds[0])


def report_pairs(report: Report, lists: ScoredLists, models: Rerankers, *, seed: int) -> None:
    """Report how often each model prefers the reference to the translator's choice."""
    first = [each.texts[0].split() for each in lists.lists]
    differ = [one != other.split() for one, other in zip(first, lists.references, strict=True)]
    for name, model in models.items():
        good, bad = (side[differ] for side in lists.pair_scores(name, model))
        found = pair_accuracy(good, bad, seed=seed)
        report.add_result(
            Result(
                table=PAIRS,
                model=name,
                metric="pairwise accuracy",
                data=f"Multi30k {lists.part}, pairs that differ",
                value=found.accuracy,
                n=found.n,
                interval=found.interval,
                digits=3,
            )
        )
    report.add_table(
        "Pairs of references and translations",
        ("that differ", "identical, left out"),
        [(sum(differ), len(differ) - sum(differ))],
    )


def feature_name(name: str) -> str:
    """Return a name that a feature of an n-best list can have."""
    return "".join(each if each.isalnum() else "_" for each in name) + "0"
