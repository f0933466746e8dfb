"""N-best lists reranked by every model: ten folds, weights from the other nine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from lists import Numbers, ScoredLists
from recipe import add_published

from treelm.errors import MissingExtra
from treelm.models.interface.model import LanguageModel
from treelm.tasks.evaluate.pair_accuracy import pair_accuracy
from treelm.tasks.evaluate.reranking import Reranking, compare_choices, cross_validate_pool
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.tasks.tune import Method, TuneOptions
from treelm.translation.mira import EPOCHS
from treelm.translation.weights import Weights

Rerankers = Mapping[str, Callable[[], LanguageModel]]

TABLE = "Reranked n-best lists, ten folds (Table 4 of the composite paper)"
PAIRS = "References against translations (Table 6 of the treelet paper)"
BASELINE = "features as they are"
#: Features that were learned from translations of the training text, and the rows that they give:
#: Table 2 of the latent-SVM paper.
CLASSIFIERS = ("trigram SVM", "latent SVM")
ALL = "all together"


def rows_of(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the rows of the table, each with the models that it adds."""
    both = tuple(name for name in CLASSIFIERS if name in names)
    rows = {BASELINE: (), **{f"+ {name}": (name,) for name in names}}
    if len(both) > 1:
        rows["+ both SVMs"] = both
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
    # Moses tuned its weights on the development set: there nothing may start from them.
    is_tuned_on = lists.part == "val"
    given = None if is_tuned_on else Weights.read(lists.data / "mt/multi30k/weights.ini")
    scores, had = model_scores(report, lists, rerankers)
    data = f"Multi30k {lists.part}, {lists.size} best"
    n = len(lists.references)

    def add(model: str, value: float, metric: str = "BLEU of all", p: float | None = None) -> None:
        report.add_result(
            Result(
                table=TABLE,
                model=model,
                metric=metric,
                data=data,
                value=value,
                n=n,
                p=p,
                baseline=None if p is None else BASELINE,
            )
        )

    baselines: dict[int, Reranking] = {}
    weights = []
    for row, names in rows_of(list(scores)).items():
        features = {feature_name(name): scores[name] for name in names}
        pool = lists.with_features(features)
        for seed in seeds:
            options = TuneOptions(seed=seed, method=method, epochs=epochs)
            found = cross_validate_pool(pool, given, options, distinct=lists.distinct)
            if not baselines:
                first = "first of the lists" + (", tuned on these" if is_tuned_on else "")
                add(first, found.first.together)
                add(first, found.first.mean, "mean BLEU of folds")
                add("oracle", found.oracle)
            base = baselines.setdefault(seed, found)
            chosen, other = (np.array(each.chosen) + pool.starts[:-1] for each in (found, base))
            p = None if found is base else compare_choices(pool, chosen, other, seed=seed).p_value
            add(f"{row}, seed {seed}", found.reranked.together, p=p)
            add(f"{row}, seed {seed}", found.reranked.mean, "mean BLEU of folds")
            weights += [
                (f"{row}, seed {seed}", name, f"{np.mean([x[name][0] for x in found.weights]):.4f}")
                for name in ("LM0", *features)
            ]
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
