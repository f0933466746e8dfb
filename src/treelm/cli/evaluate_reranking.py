"""`treelm evaluate reranking`."""

from __future__ import annotations

from typing import Annotated

from treelm.cli.evaluate_translation import ReferenceFiles
from treelm.cli.model_options import LengthOptions, ScoringOptions, SearchOptions
from treelm.cli.options import AsJson, CommonOptions, File, InputFile, NewFile, Seed, ThreadOptions
from treelm.cli.ranges import at_least
from treelm.cli.rerank import ListOptions, ModelPaths, scorers_of
from treelm.cli.terminal import shown, write_record
from treelm.cli.tune import MethodOptions, lists_in_order, read_references
from treelm.corpus.files import write_atomically
from treelm.tasks.evaluate.reranking import FOLDS, Reranking
from treelm.tasks.tune import TuneOptions
from treelm.translation.weights import FIXED, Weights


def reranking(
    lists: InputFile,
    /,
    *,
    references: ReferenceFiles,
    model: ModelPaths = None,
    weights: File | None = None,
    folds: Annotated[int, at_least(2)] = FOLDS,
    seed: Seed,
    best: NewFile | None = None,
    json: AsJson = False,
    how: ListOptions = ListOptions(),
    finding: MethodOptions = MethodOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure what models add to n-best lists, by cross-validated reranking.

    The sentences are divided into contiguous folds. The hypotheses of each fold are chosen by
    weights that are tuned on the others. Reported are the mean of the folds' BLEU or WER, and that
    of all folds as one text; the same for the first hypotheses of the lists; and the oracle, the
    best choice that was found. What a model adds is the difference from the same without it,
    because tuning alone changes the figure too.

    Args:
        lists: N-best lists, one for each line of the references; see `treelm tune`.
        weights: Weights to start from: JSON, or the lines of a moses.ini.
        folds: Number of folds.
        seed: Seed of directions, restarts, the order of sentences, and the bootstrap.
        best: File to write: what was chosen, one line for each sentence.
    """
    del common
    from treelm.tasks.evaluate.reranking import cross_validate
    from treelm.tasks.rerank import rerank

    right, names = read_references(references, how)
    scorers = scorers_of(
        model or [],
        None,
        None,
        measure="score",
        options=(scoring, search, length),
        threads=threads.thread_count,
    )
    given = lists_in_order(how, lists, references, names)
    columns = [each.columns for each in rerank(given, scorers)]
    found = cross_validate(
        columns,
        right,
        None if weights is None else Weights.read(weights),
        TuneOptions(
            seed=seed,
            metric=finding.metric,
            method=finding.method,
            restarts=finding.restarts,
            epochs=finding.epochs,
            fixed=FIXED | frozenset(finding.fix or ()),
        ),
        folds=folds,
    )
    if best is not None:
        texts = [each.texts[place] for each, place in zip(columns, found.chosen, strict=True)]
        with write_atomically(best) as out:
            out.write("".join(f"{text}\n" for text in texts).encode())
    write_record(found.to_record() if json else _lines(found), as_json=json)


def _lines(found: Reranking) -> dict[str, object]:
    """Return the figures as lines of text."""
    low, high = found.difference.interval
    record: dict[str, object] = {
        "sentences": found.sentences,
        "distinct_texts_per_list": found.distinct,
    }
    for name, scores in (("first", found.first), ("reranked", found.reranked)):
        record[f"{name}: mean of folds"] = f"{scores.mean:.2f} (deviation {scores.deviation:.2f})"
        record[f"{name}: together"] = f"{scores.together:.2f}"
    record["difference"] = (
        f"{found.difference.difference:+.2f} [{low:+.2f}, {high:+.2f}] "
        f"p {shown(found.difference.p_value)}"
    )
    record["oracle"] = f"{found.oracle:.2f}"
    names = [(name, len(values)) for name, values in found.weights[0].items()]
    for name, count in names:
        means = [
            sum(each[name][place] for each in found.weights) / len(found.weights)
            for place in range(count)
        ]
        record[f"mean weight: {name}"] = " ".join(f"{mean:.4f}" for mean in means)
    record["signature"] = found.signature
    return record
