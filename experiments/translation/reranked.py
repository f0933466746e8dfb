"""1000-best lists reranked by every model: ten folds, weights from the other nine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from treelm.corpus.files import read_lines
from treelm.corpus.nbest import NBestColumns, read_moses_columns
from treelm.models.interface.model import LanguageModel
from treelm.tasks.evaluate.reranking import Reranking, cross_validate
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.tasks.rerank import Scorer, rerank
from treelm.tasks.tune import TuneOptions
from treelm.translation.weights import Weights

TABLE = "Reranked 1000-best lists, ten folds"


def scored_lists(
    file: Path, models: Mapping[str, LanguageModel], threads: int
) -> list[NBestColumns]:
    """Return lists with a feature for each model."""
    scorers = [Scorer(name=name, model=model, threads=threads) for name, model in models.items()]
    return [each.columns for each in rerank(read_moses_columns(file), scorers)]


def report_reranking(
    report: Report,
    data: Path,
    groups: Mapping[str, Mapping[str, LanguageModel]],
    *,
    part: str,
    seeds: Sequence[int],
    threads: int,
) -> None:
    """Report BLEU of the lists as they are, and reranked with the features of each group."""
    folder = data / "mt/multi30k"
    references = [list(read_lines(folder / f"{part}.en"))]
    start = Weights.read(folder / "weights.ini")
    first: Reranking | None = None

    def add(model: str, value: float, n: int, metric: str = "mean BLEU of folds") -> None:
        data_name = f"Multi30k {part}"
        report.add_result(
            Result(table=TABLE, model=model, metric=metric, data=data_name, value=value, n=n)
        )

    for name, models in groups.items():
        lists = scored_lists(folder / f"{part}.nbest.xz", models, threads)
        given = start.replaced(dict.fromkeys(models, (0.0,)))
        for seed in seeds:
            found = cross_validate(lists, references, given, TuneOptions(seed=seed))
            if first is None:
                first = found
                add("first of the lists", found.first.mean, found.sentences)
                add("oracle", found.oracle, found.sentences)
            add(f"{name}, seed {seed}", found.reranked.mean, found.sentences)
            together = found.reranked.together
            add(f"{name}, seed {seed}", together, found.sentences, "BLEU of all")
    if first is not None:
        report.add_table("Lists", ("different texts per list",), [(f"{first.distinct:.0f}",)])
