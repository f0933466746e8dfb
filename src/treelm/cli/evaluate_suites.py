"""`treelm evaluate suites`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treelm.cli.model_options import LengthOptions, ModelPath, SearchOptions, note_unknown_words
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    InputFiles,
    OptionalOutputFile,
    Seed,
    ThreadOptions,
)
from treelm.cli.terminal import write_record
from treelm.corpus.files import write_atomically
from treelm.tasks.text_check import TextCheck

if TYPE_CHECKING:
    from treelm.tasks.evaluate.suites import SuiteResults

_OUTCOMES = (
    "File to write: a table with a row for each item and prediction, and whether it holds (1) or "
    "not (0)."
)


def suites(
    files: InputFiles = None,
    /,
    *,
    model: Annotated[ModelPath, Parameter(help="Model folder of an incremental model.")],
    tokenize: Annotated[bool, Parameter(negative=("--tokenized", "--no-tokenize"))] = True,
    output: Annotated[OptionalOutputFile, Parameter(help=_OUTCOMES)] = None,
    seed: Seed = 0,
    json: AsJson = False,
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure for how many items of test suites the surprisals are as predicted (SyntaxGym).

    An item is right if all predictions of its suite hold. The accuracy over several suites is the
    mean of theirs.

    Args:
        files: Suites in SyntaxGym's JSON format: items in several conditions, whose regions are
            compared by formulae such as `(2;%match%) < (2;%mismatch%)`.
        tokenize: Regions are raw text, as SyntaxGym's are. Otherwise words are separated by white
            space.
        seed: Seed of the intervals, which are bootstraps over items.
    """
    from treelm.models.interface.raw_text import shared_tokenizing
    from treelm.models.registry import load
    from treelm.tasks.evaluate.suites import evaluate_suites, read_suite

    loaded = length.apply(search.apply(load(model)))
    apart = shared_tokenizing([loaded])
    given = [read_suite(file, tokenizing=tokenize, tokenize=apart) for file in files or ["-"]]
    check = TextCheck(loaded.vocabulary, tokenized=tokenize)
    for suite in given:
        check.add_sentences(list(suite.sentences()))
    note_unknown_words(check, common)
    found = evaluate_suites(loaded, given, seed=seed, threads=threads.thread_count)
    if output is not None:
        with write_atomically(output) as out:
            out.write(_table(found).encode())
    write_record(found.to_record() if json else _lines(found), as_json=json)


def _table(found: SuiteResults) -> str:
    """Return a row for every item and prediction."""
    rows = ["suite\titem\tprediction\tholds\n"]
    for name, suite in found.suites.items():
        for item, holds in zip(suite.items, suite.holds.tolist(), strict=True):
            rows += [
                f"{name}\t{item}\t{number}\t{int(each)}\n" for number, each in enumerate(holds, 1)
            ]
    return "".join(rows)


def _lines(found: SuiteResults) -> dict[str, object]:
    """Return the results with a line for each suite, and for each prediction of several."""
    record: dict[str, object] = {"accuracy": found.accuracy}
    for name, suite in found.suites.items():
        low, high = suite.interval
        unknown = suite.items_with_unknown_words
        record[f"suite: {name}"] = f"{suite.accuracy:.4f} [{low:.4f}, {high:.4f}] n {suite.n}" + (
            f", {unknown} with unknown words" if unknown else ""
        )
        if len(suite.predictions) > 1:
            for number, share in enumerate(suite.predictions.values(), 1):
                record[f"suite: {name}, prediction {number}"] = share
    record["signature"] = found.signature
    return record
