"""What `treelm evaluate parses` writes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from treelm.cli.terminal import write_record, write_table
from treelm.tasks.evaluate.comparison import Comparison
from treelm.tasks.evaluate.evalb import CUTOFF, EvalbSentence, EvalbSummary, percent
from treelm.tasks.evaluate.parse_accuracy import ParseAccuracy
from treelm.tasks.evaluate.parse_breakdown import LabelScore, LengthScore
from treelm.tasks.evaluate.parse_files import EvalbFileScores
from treelm.tasks.evaluate.parse_intervals import SHARES
from treelm.tasks.evaluate.resampling import Interval

_LABEL_COLUMNS = ("label", "gold", "guessed", "matched", "precision", "recall", "f1")
_LENGTH_COLUMNS = ("words", "sentences", "precision", "recall", "f1", "exact_match")
_EVALB_HEAD = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
"""
_EVALB_RULE = "=" * 76 + "\n"


def write_evalb(scores: EvalbFileScores, *, as_json: bool) -> None:
    """Write evalb's table and summaries, character by character as evalb does; or JSON."""
    if as_json:
        record = {
            "all": scores.all.to_record(),
            f"at_most_{CUTOFF}": scores.short.to_record(),
            "per_sentence": [row.to_record() for row in scores.sentences],
            "signature": scores.signature,
        }
        write_record(record, as_json=True)
        return
    write = sys.stdout.write
    write(_EVALB_HEAD + _EVALB_RULE)
    for row in scores.sentences:
        write(_evalb_row(row))
    write(_EVALB_RULE + _evalb_total(scores) + "=== Summary ===\n")
    write(_evalb_summary("All", scores.all) + _evalb_summary(f"len<={CUTOFF}", scores.short))


def _evalb_row(row: EvalbSentence) -> str:
    return (
        f"{row.number:4d}  {row.length:3d}    {row.status:d}  "
        f"{percent(row.matched, row.gold):6.2f} {percent(row.matched, row.guessed):6.2f}   "
        f"{row.matched:3d}    {row.gold:3d}  {row.guessed:3d}    {row.crossing:3d}   "
        f"{row.words:4d}  {row.correct_tags:4d}   {percent(row.correct_tags, row.words):6.2f}\n"
    )


def _evalb_total(scores: EvalbFileScores) -> str:
    rows = scores.sentences
    matched, gold, guessed, crossing, words, tags = (
        sum(getattr(row, name) for row in rows)
        for name in ("matched", "gold", "guessed", "crossing", "words", "correct_tags")
    )
    brackets = (
        f"{'':16}{scores.all.recall:6.2f} {scores.all.precision:6.2f} "
        f"{matched:6d} {gold:5d} {guessed:5d}  {crossing:5d}"
        if gold and guessed
        else ""
    )
    return f"{brackets}  {words:5d} {tags:5d}   {scores.all.tagging_accuracy:6.2f}\n"


def _evalb_summary(name: str, found: EvalbSummary) -> str:
    return (
        f"\n-- {name} --\n"
        f"Number of sentence        = {found.sentences:6d}\n"
        f"Number of Error sentence  = {found.errors:6d}\n"
        f"Number of Skip  sentence  = {found.skipped:6d}\n"
        f"Number of Valid sentence  = {found.valid:6d}\n"
        f"Bracketing Recall         = {found.recall:6.2f}\n"
        f"Bracketing Precision      = {found.precision:6.2f}\n"
        f"Bracketing FMeasure       = {found.f1:6.2f}\n"
        f"Complete match            = {found.complete_match:6.2f}\n"
        f"Average crossing          = {found.average_crossing:6.2f}\n"
        f"No crossing               = {found.no_crossing:6.2f}\n"
        f"2 or less crossing        = {found.two_or_less_crossing:6.2f}\n"
        f"Tagging accuracy          = {found.tagging_accuracy:6.2f}\n"
    )


def write_parse_accuracy(
    score: ParseAccuracy,
    *,
    tells_unknown: bool = False,
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
        tells_unknown: Whether tags of known and of unknown words are told apart.
        intervals: Intervals of the shares, or None.
        drawing: How the intervals were drawn.
        labels: Scores by label, or None.
        lengths: Scores by length, or None.
        comparison: What came out against another parser, or None.
        as_json: One JSON object instead of lines.
    """
    record: dict[str, object] = {name: getattr(score, name) for name in SHARES}
    if tells_unknown:
        names = ("known_tagging_accuracy", "unknown_tagging_accuracy")
        found = {name: getattr(score, name) for name in names}
        record |= {name: None if math.isnan(value) else value for name, value in found.items()}
        record["unknown_words"] = score.unknown_words
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
