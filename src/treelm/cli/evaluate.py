"""`treelm evaluate`."""

from __future__ import annotations

from cyclopts import App, Parameter

from treelm.cli.options import CommonOptions, InputFile, TreeOptions, note_problems
from treelm.cli.terminal import write_record
from treelm.tasks.evaluate.parse_files import evaluate_parse_files

evaluate = App(
    name="evaluate",
    help="Measure how good something is.",
    help_epilogue="Example: `treelm evaluate parses gold.mrg parsed.mrg --json`",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    version_flags=[],
)


@evaluate.command
def parses(
    gold: InputFile,
    system: InputFile,
    /,
    *,
    json: bool = False,
    trees: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Score parses against gold trees: precision, recall, F1, exact match, tags (evalb's rules).

    A sentence without a parse (an empty line, or `(())`) counts against recall.

    Args:
        gold: File of the right trees.
        system: File of the parser's trees, in the same order.
        json: One JSON object instead of lines.
        trees: Reading.
        common: Common.
    """
    trees, common = trees or TreeOptions(), common or CommonOptions()
    found = evaluate_parse_files(
        gold, system, trees.read_options(), on_error=trees.on_error, threads=trees.thread_count
    )
    note_problems(found.gold_problems, "gold tree left out", common)
    note_problems(found.system_problems, "counted as no parse", common)
    score = found.accuracy
    write_record(
        {
            "labelled_precision": score.labelled_precision,
            "labelled_recall": score.labelled_recall,
            "labelled_f1": score.labelled_f1,
            "unlabelled_precision": score.unlabelled_precision,
            "unlabelled_recall": score.unlabelled_recall,
            "unlabelled_f1": score.unlabelled_f1,
            "exact_match": score.exact_match,
            "tagging_accuracy": score.tagging_accuracy,
            "sentences": score.sentences,
            "unparsed": score.unparsed,
            "signature": score.signature,
        },
        as_json=json,
    )
