"""`treelm judge`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from treelm.cli.options import CommonOptions, InputFile, OutputFile
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

judge = App(
    name="judge",
    help="Ask people which of two texts is better.",
    help_epilogue="Example: `treelm judge export a.txt b.txt -o pairs.csv --seed 1`",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    version_flags=[],
)


@judge.command
def export(
    first: InputFile,
    second: InputFile,
    /,
    *,
    output: OutputFile,
    seed: int,
    source: str | None = None,
    count: Annotated[int | None, Parameter(name=["--count", "-n"])] = None,
    repeated: float = REPEATED,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Write a blinded sheet of pairs for raters, and its key beside it.

    Args:
        first: Texts of system A, one a line.
        second: Texts of system B for the same lines.
        output: Sheet to write, such as pairs.csv; its key is then pairs.key.json.
        seed: Seed of choice, order and sides.
        source: What both texts were made from, one a line; default: not shown.
        count: Pairs to choose at random; default: all that differ.
        repeated: Share of the pairs that are shown twice.
        json: One JSON object instead of lines.
        common: Common.
    """
    common = common or CommonOptions()
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
    help_epilogue="Example: `treelm judge import rated.csv --key pairs.key.json --json`",
)
def import_(
    sheets: Annotated[list[InputFile], Parameter(negative=())],
    /,
    *,
    key: str,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Count what raters preferred, with interval, significance and agreement.

    Args:
        sheets: Sheets that were filled in, by one or several raters.
        key: Key that was written beside the sheet.
        json: One JSON object instead of lines.
        common: Common.
    """
    common = common or CommonOptions()
    found = import_judgements(sheets, key)
    write_record(found.to_record(), as_json=json)
    if found.decided < found.required:
        common.note(
            f"{found.decided} pairs were decided; {found.required} are needed to find a preference "
            f"of {PREFERENCE:.0%} with a power of {POWER:.0%}."
        )
