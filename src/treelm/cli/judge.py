"""`treelm judge`."""

from __future__ import annotations

import sys
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
from treelm.cli.terminal import write_record, write_table
from treelm.tasks.judge.export import REPEATED, export_pairs
from treelm.tasks.judge.power import (
    POWER,
    PREFERENCE,
    approximate_pairs,
    exact_pairs,
    sign_test_power,
)
from treelm.tasks.judge.preference import import_judgements
from treelm.tasks.judge.readability import (
    CLASSES,
    Readability,
    export_readability,
    import_readability,
)

_SHEET = "Sheet to write, such as pairs.csv; its key is then pairs.key.json."

judge = command_group(
    "judge",
    "Ask people which of two texts is better, or how good each is.",
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


@judge.command(
    name="export-readability",
    help_epilogue=example_line(
        "treelm judge export-readability a.txt b.txt --references ref.txt -o sheet.csv --seed 1"
    ),
)
def export_readability_sheet(
    systems: Annotated[
        list[str], Parameter(metavar="FILE", help="Files of translations, one per line.")
    ],
    /,
    *,
    output: Annotated[OutputFile, Parameter(help=_SHEET)],
    seed: Seed,
    references: Annotated[File | None, Parameter(show_default="not shown")] = None,
    count: Annotated[Count | None, Parameter(show_default="all")] = None,
    repeated: Annotated[float, between(0, 1)] = REPEATED,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write a blinded sheet of translations for raters, and its key beside it.

    Raters write good or bad under grammar and under meaning. Equal translations of a sentence are
    shown once.

    Args:
        seed: Seed of the random choice and order.
        references: Correct translations, one per line, shown beside the others.
        count: Number of sentences to choose at random.
        repeated: Share of the rows that are shown twice.
    """
    done = export_readability(
        systems, output, seed=seed, references=references, number=count, repeated=repeated
    )
    write_record(done.to_record(), as_json=json)
    common.note(f"give raters {done.sheet.name}, never {done.key.name}.")


@judge.command(
    name="import-readability",
    help_epilogue=example_line(
        "treelm judge import-readability rated.csv --key sheet.key.json --json"
    ),
)
def import_readability_sheets(
    sheets: Annotated[list[InputFile], Parameter(negative=())],
    /,
    *,
    key: File,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Count good and bad grammar and meaning of systems, with significance and agreement.

    Args:
        sheets: Sheets that one or several raters filled in.
        key: The key that was written beside the sheet.
    """
    del common
    found = import_readability(sheets, key)
    if json:
        write_record(found.to_record(), as_json=True)
        return
    _write_readability(found)


def _write_readability(found: Readability) -> None:
    """Write the table of classes, and what follows from it."""
    rows = [
        [name, *(counts[each] for each in CLASSES), sum(counts.values())]
        for name, counts in found.counts.items()
    ]
    write_table(["system", *CLASSES, "sum"], rows)
    sys.stdout.write("\n")
    record = {
        f"{pair}: {aspect} p": p_value
        for pair, p_values in found.differences.items()
        for aspect, p_value in p_values.items()
    }
    names = ("ratings", "raters", "alpha", "fleiss", "cohen", "repeated", "self_agreement")
    write_record({**record, **{name: getattr(found, name) for name in names}}, as_json=False)
