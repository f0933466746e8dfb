"""`treelm classify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json import dumps
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import (
    LengthOptions,
    UsualModelPath,
    at_once,
    note_unknown_words,
    open_model,
)
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    LineBuffered,
    NewFile,
    OutputFile,
    TextFiles,
    TextOptions,
)
from treelm.corpus.files import write_atomically
from treelm.corpus.words import split_words
from treelm.models.interface.classifier import Classifier
from treelm.models.interface.model import Task
from treelm.models.interface.scores import Decision
from treelm.tasks.classify import as_classifier, classify_lines, draw_decisions
from treelm.tasks.explain_scores import explain_scores, explained_lines
from treelm.tasks.text_check import TextCheck

#: Decisions that are drawn.
_DRAWN = 50


def classify(
    files: TextFiles = None,
    /,
    *,
    model: UsualModelPath = None,
    output: OutputFile = "-",
    line_buffered: LineBuffered = False,
    parser: Annotated[
        str | None, Parameter(metavar="PARSER", show_default="the model's own")
    ] = None,
    explain: NewFile | None = None,
    json: Annotated[AsJson, Parameter(help="Write one JSON object per line.")] = False,
    length: LengthOptions = LengthOptions(),
    text: TextOptions = TextOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Tell good sentences from bad ones: label, margin and probability of good, tab-separated.

    The label is good for a margin above 0, where the probability is above 0.5. A blank line gives a
    blank line. A sentence that the model cannot analyse is bad, with the margin -inf.

    Args:
        parser: Classifiers by features of trees: a model folder that parses, or a file of parses.
        explain: File to write: how the margins of the first 50 sentences are worked out, step by
            step, as text; or, if it is named .svg, the trees behind them, each part with its weight
            in colour, for latent SVMs and classifiers by rules or parts of trees.
    """
    opened = open_model(model, Task.CLASSIFY, text, common)
    text = opened.text
    loaded = length.apply(as_classifier(opened.model, parser))
    if isinstance(loaded, Classifier) and not loaded.calibration.is_calibrated:
        common.note(
            f"{opened.folder.name}: the model could not be calibrated; its probabilities are all "
            "0.5. Only labels and margins say something."
        )
    check = TextCheck(loaded.vocabulary, tokenized=text.is_raw)
    shown: list[tuple[str, ...]] = []
    flush = at_once(output, line_buffered=line_buffered)
    with write_atomically(output) as out:
        for file, lines in text.first_lines(files or ["-"]):
            watched = check.watch(lines)
            kept = _keeping(watched, shown) if explain is not None else watched
            decisions = classify_lines(
                loaded,
                kept,
                batch=1 if flush else 1024,
                threads=text.thread_count,
                source=file,
            )
            for decision in decisions:
                out.write(_line(decision, as_json=json).encode())
                if flush:
                    out.flush()
    note_unknown_words(check, common)
    if explain is not None:
        with write_atomically(explain) as picture:
            if explain.lower().endswith(".svg"):
                picture.write(draw_decisions(loaded, shown).encode())
            else:
                blocks = explained_lines(explain_scores(loaded, shown))
                picture.write("".join(blocks).encode())


def _keeping(lines: Iterable[str], shown: list[tuple[str, ...]]) -> Iterator[str]:
    for line in lines:
        words = split_words(line)
        if words and len(shown) < _DRAWN:
            shown.append(words)
        yield line


def _line(decision: Decision | None, *, as_json: bool) -> str:
    if decision is None:
        return "null\n" if as_json else "\n"
    label, margin, probability = decision
    if as_json:
        shown = margin if margin > float("-inf") else None
        return dumps({"label": label, "margin": shown, "probability": probability}) + "\n"
    return f"{label}\t{margin!r}\t{probability!r}\n"
