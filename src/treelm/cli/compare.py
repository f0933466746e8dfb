"""`treelm compare`."""

from __future__ import annotations

from treelm.cli.model_options import MeasureOptions
from treelm.cli.options import CommonOptions, InputFile, InputFiles
from treelm.cli.terminal import write_record
from treelm.errors import UsageError
from treelm.tasks.compare import CompareOptions
from treelm.tasks.compare import compare as compare_systems
from treelm.tasks.evaluate.resampling import ROUNDS


def compare(
    a: InputFile,
    b: InputFile,
    files: InputFiles = None,
    /,
    *,
    slr: bool = False,
    thresholds: list[float] | None = None,
    rounds: int = ROUNDS,
    json: bool = False,
    measuring: MeasureOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Compare two models, or two files of scores or answers, and test the difference.

    Args:
        a: Model folder, or file of scores or answers.
        b: The same of the other system.
        files: A text; pairs, as two files or one of JSON lines; or the right labels.
        slr: Pairs: compare syntactic log-odds ratios instead of log probabilities.
        thresholds: Scores with labels: where good begins, for A and for B.
        rounds: How often items are drawn.
        json: One JSON object instead of lines.
        measuring: Measuring.
        common: Common.
    """
    del common
    measuring = measuring or MeasureOptions()
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
        ),
    )
    write_record(found.to_record(), as_json=json)
