"""`treelm evaluate`."""

from __future__ import annotations

from typing import Literal

from cyclopts import App, Parameter

from treelm.cli.model_options import ModelPath, TextOptions
from treelm.cli.options import CommonOptions, InputFile, InputFiles, TreeOptions, note_problems
from treelm.cli.terminal import write_record
from treelm.corpus.corpus import TextCorpus
from treelm.models.registry import load
from treelm.tasks.evaluate.parse_files import evaluate_parse_files
from treelm.tasks.evaluate.perplexity import evaluate_perplexity

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


@evaluate.command(help_epilogue="Example: `treelm evaluate perplexity -m model test.txt --json`")
def perplexity(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    oov_mode: Literal["include", "skip"] = "include",
    json: bool = False,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Measure how surprised a model is by a text, per word.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder.
        oov_mode: Count unknown words as what stands for them, or leave them out.
        json: One JSON object instead of lines.
        text: Text.
        common: Common.
    """
    del common
    text = text or TextOptions()
    corpus = TextCorpus(tuple(files or ["-"]))
    found = evaluate_perplexity(
        load(model),
        corpus if text.limit is None else text.first(corpus),
        oov_mode=oov_mode,
        threads=text.thread_count,
    )
    write_record(found.to_record(), as_json=json)
