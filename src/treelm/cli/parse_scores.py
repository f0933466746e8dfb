"""What `treelm evaluate parses` writes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from treelm.cli.terminal import write_record, write_table
from treelm.tasks.evaluate.comparison import Comparison
from treelm.tasks.evaluate.parse_accuracy import ParseAccuracy
from treelm.tasks.evaluate.parse_breakdown import LabelScore, LengthScore
from treelm.tasks.evaluate.parse_intervals import SHARES
from treelm.tasks.evaluate.resampling import Interval

_LABEL_COLUMNS = ("label", "gold", "guessed", "matched", "precision", "recall", "f1")
_LENGTH_COLUMNS = ("words", "sentences", "precision", "recall", "f1", "exact_match")


def write_parse_accuracy(
    score: ParseAccuracy,
    *,
    intervals: Mapping[str, Interval] | None,
    drawing: Mapping[str, int],
    labels: Sequence[LabelScore] | None,
    lengths: Sequence[LengthScore] | None,
    comparison: Comparison | None,
    as_json: bool,
) -> None:
    """Write scores to standard output: one JSON object, or lines and tables with space between.

    Args:
        score: The scores of the corpus.
        intervals: Intervals of the shares, or None.
        drawing: How the intervals were drawn.
        labels: Scores by label, or None.
        lengths: Scores by length, or None.
        comparison: What came out against another parser, or None.
        as_json: One JSON object instead of lines.
    """
    record: dict[str, object] = {name: getattr(score, name) for name in SHARES}
    record |= {"sentences": score.sentences, "unparsed": score.unparsed}
    if intervals is not None:
        record |= drawing
    record["signature"] = score.signature
    if as_json:
        if intervals is not None:
            record["intervals"] = {name: list(found) for name, found in intervals.items()}
        if labels is not None:
            record["by_label"] = [found.to_record() for found in labels]
        if lengths is not None:
            record["by_length"] = [found.to_record() for found in lengths]
        if comparison is not None:
            record["comparison"] = comparison.to_record()
        write_record(record, as_json=True)
        return
    for name, (low, high) in (intervals or {}).items():
        record[name] = f"{getattr(score, name):.4f} [{low:.4f}, {high:.4f}]"
    write_record(record, as_json=False)
    for columns, rows in ((_LABEL_COLUMNS, labels), (_LENGTH_COLUMNS, lengths)):
        if rows is not None:
            sys.stdout.write("\n")
            cells = [found.to_record() for found in rows]
            write_table(
                [column.replace("_", " ") for column in columns],
                [[row[column] for column in columns] for row in cells],
            )
    if comparison is not None:
        sys.stdout.write("\n")
        write_record(comparison.to_record(), as_json=False)
