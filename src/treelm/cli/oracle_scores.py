"""`treelm evaluate oracle`."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import CommonOptions, InputFile, TreeOptions, settle_reading
from treelm.cli.terminal import write_record, write_table
from treelm.corpus.brackets import ReadReport, read_trees
from treelm.errors import UsageError
from treelm.tasks.evaluate.oracle import LENGTHS, evaluate_oracle, read_lists


def oracle(
    gold: InputFile,
    lists: InputFile,
    /,
    *,
    trees: Annotated[list[int] | None, Parameter(name=["--trees", "-k"])] = None,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Score the best tree of each list against gold trees: what a perfect choice would reach.

    The best is the one of the highest labelled F1 (evalb's rules). Lists are those of a file of
    parses (`treelm parse -k 1000 -o FILE.forest`), or as treelm, Berkeley and BLLIP print them.

    Args:
        gold: File of the right trees.
        lists: File of the parser's lists, in the same order.
        trees: How many trees of each list are looked at; several numbers may be given.
        json: One JSON object instead of a table.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    lengths = sorted(set(trees or LENGTHS))
    if lengths[0] < 1:
        raise UsageError("-k must be 1 or more.")
    report = ReadReport()
    options = reading.read_options()
    right = read_trees(gold, options, on_error="raise", report=report, threads=reading.thread_count)
    scores = evaluate_oracle(right, read_lists(lists), lengths, reading.profile)
    settle_reading(report, common, gold)
    record = {
        "sentences": scores.sentences,
        "unparsed": scores.unparsed,
        "signature": scores.signature,
    }
    rows = [point.to_record() for point in scores.points]
    if json:
        write_record({**record, "points": rows}, as_json=True)
        return
    write_table([name.replace("_", " ") for name in rows[0]], [list(row.values()) for row in rows])
    sys.stdout.write("\n")
    write_record(record, as_json=False)
