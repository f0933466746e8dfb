"""`treelm compare`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import LengthOptions
from treelm.cli.options import AsJson, CommonOptions, InputFile, InputFiles, MeasureOptions, Rounds
from treelm.cli.ranges import FINITE
from treelm.cli.terminal import write_record
from treelm.errors import UsageError
from treelm.tasks.compare import CompareOptions
from treelm.tasks.compare import compare as compare_systems
from treelm.tasks.evaluate.resampling import ROUNDS


def compare(
    a: InputFile,
    b: InputFile,
    files: Annotated[InputFiles, Parameter(show_default="none")] = None,
    /,
    *,
    slr: bool = False,
    thresholds: Annotated[list[float] | None, FINITE] = None,
    rounds: Rounds = ROUNDS,
    json: AsJson = False,
    length: LengthOptions = LengthOptions(),
    measuring: MeasureOptions = MeasureOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Compare two models, or two files of scores or answers, and test the difference.

    Text and pairs are raw text if both models have a tokenizer.

    Args:
        a: Model folder, or file of scores or answers.
        b: The same for the other system.
        files: A text; pairs, as two files or one, a table (.tsv, .csv, .parquet) or JSON lines
            (.jsonl); or the correct labels.
        slr: Pairs: compare syntactic log-odds ratios instead of log probabilities.
        thresholds: Scores with labels: from which score on a sentence is good, for A and for B.
    """
    del common
    if thresholds is not None and len(thresholds) != 2:
        raise UsageError("--thresholds takes two numbers, one for A and one for B.")
    found = compare_systems(
        a,
        b,
        files or [],
        CompareOptions(
            seed=measuring.seed,
            rounds=rounds,
            measure="slr" if slr else "log_prob",
            thresholds=None if thresholds is None else (thresholds[0], thresholds[1]),
            allow_overlap=measuring.allow_overlap,
            threads=measuring.thread_count,
            max_words=length.max_words,
        ),
    )
    write_record(found.to_record(), as_json=json)
