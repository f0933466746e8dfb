"""`treelm judge`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.apps import command_group, example_line
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    Count,
    File,
    InputFile,
    OutputFile,
    Seed,
)
from treelm.cli.ranges import between
from treelm.cli.terminal import write_record
from treelm.tasks.judge.export import REPEATED, export_pairs
from treelm.tasks.judge.power import (
    POWER,
    PREFERENCE,
    approximate_pairs,
    exact_pairs,
    sign_test_power,
)
from treelm.tasks.judge.preference import import_judgements

_SHEET = "Sheet to write, such as pairs.csv; its key is then pairs.key.json."

judge = command_group(
    "judge",
    "Ask people which of two texts is better.",
    "treelm judge export a.txt b.txt -o pairs.csv --seed 1",
)


@judge.command(help_epilogue=example_line("treelm judge export a.txt b.txt -o pairs.csv --seed 1"))
def export(
    first: InputFile,
    second: InputFile,
    /,
    *,
    output: Annotated[OutputFile, Parameter(help=_SHEET)],
    seed: Seed,
    source: Annotated[File | None, Parameter(show_default="not shown")] = None,
    count: Annotated[Count | None, Parameter(show_default="all that differ")] = None,
    repeated: Annotated[float, between(0, 1)] = REPEATED,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write a blinded sheet of pairs for raters, and its key beside it.

    Args:
        first: Texts of system A, one per line.
        second: Texts of system B for the same lines.
        seed: Seed of the random choice, order and sides.
        source: What both texts were made from, one per line.
        count: Number of pairs to choose at random.
        repeated: Share of the pairs that are shown twice.
    """
    done = export_pairs(
        first, second, output, seed=seed, source=source, number=count, repeated=repeated
    )
    needed, exactly = approximate_pairs(), exact_pairs()
    write_record(
        {
            "sheet": str(done.sheet),
            "key": str(done.key),
            "pairs": done.pairs,
            "repeated": done.repeated,
            "identical": done.identical,
            "required": needed,
            "power_at_required": sign_test_power(needed),
            "required_by_exact_test": exactly,
        },
        as_json=json,
    )
    common.note(
        f"to find a preference of {PREFERENCE:.0%} with a power of {POWER:.0%} (two-sided, 5 %), "
        f"{needed} decided pairs are needed by the normal approximation, {exactly} by the exact "
        f"sign test. Give raters {done.sheet.name}, never {done.key.name}."
    )


@judge.command(
    name="import",
    help_epilogue=example_line("treelm judge import rated.csv --key pairs.key.json --json"),
)
def import_(
    sheets: Annotated[list[InputFile], Parameter(negative=())],
    /,
    *,
    key: File,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Count what raters preferred, with confidence interval, significance and agreement.

    Args:
        sheets: Sheets that one or several raters filled in.
        key: The key that was written beside the sheet.
    """
    found = import_judgements(sheets, key)
    write_record(found.to_record(), as_json=json)
    if found.decided < found.required:
        common.note(
            f"{found.decided} pairs were decided; {found.required} are needed to find a preference "
            f"of {PREFERENCE:.0%} with a power of {POWER:.0%}."
        )
