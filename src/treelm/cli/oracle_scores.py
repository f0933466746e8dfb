"""`treelm evaluate oracle`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.apps import shown_default
from treelm.cli.options import AsJson, CommonOptions, InputFile, TreeOptions, settle_reading
from treelm.cli.ranges import at_least
from treelm.cli.terminal import write_record, write_table
from treelm.corpus.brackets import ReadReport, read_trees
from treelm.tasks.evaluate.oracle import LENGTHS, evaluate_oracle, read_k_best


def oracle(
    gold: InputFile,
    k_best: InputFile,
    /,
    *,
    k: Annotated[
        list[int] | None,
        Parameter(name=["--k", "-k"], show_default=shown_default(LENGTHS)),
        at_least(1),
    ] = None,
    json: AsJson = False,
    reading: TreeOptions = TreeOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Score the best tree of each k-best list against gold trees: the most a choice could reach.

    The best tree is the one with the highest labelled F1 (evalb's rules). The k-best lists are
    those of a file of parses (`treelm parse -k 1000 -o FILE.forest`), or as treelm, Berkeley and
    BLLIP print them. Also shown: how many trees there were to choose from, and the mean rank of the
    chosen ones.

    Args:
        gold: File of the correct trees.
        k_best: File of the parser's k-best lists, in the same order.
        k: How many trees of each list are considered; several numbers may be given.
    """
    lengths = sorted(set(k or LENGTHS))
    report = ReadReport()
    options = replace(reading.read_options(), simplify=False, respell=False)
    right = read_trees(gold, options, on_error="raise", report=report, threads=reading.thread_count)
    scores = evaluate_oracle(right, read_k_best(k_best, options), lengths, reading.profile)
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
