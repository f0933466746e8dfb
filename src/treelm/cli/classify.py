"""`treelm classify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json import dumps

from treelm.cli.model_options import ModelPath, TextOptions, at_once
from treelm.cli.options import CommonOptions, InputFiles, OutputFile
from treelm.corpus.corpus import split_words
from treelm.corpus.files import write_atomically
from treelm.models.interface.scores import Decision
from treelm.models.registry import load
from treelm.tasks.classify import as_classifier, classify_lines, draw_decisions

#: Decisions that are drawn.
_DRAWN = 50


def classify(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    output: OutputFile = "-",
    line_buffered: bool = False,
    parser: str | None = None,
    explain: str | None = None,
    json: bool = False,
    text: TextOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Say of each sentence whether it is good: label, margin and probability, a line each.

    A blank line gives a blank line. A sentence that the model cannot analyse is bad, with the
    margin -inf.

    Args:
        files: Files of tokenized text, one sentence a line; standard input if none is given.
        model: Model folder of a classifier.
        output: File to write; standard output by default.
        line_buffered: Write every line at once, for use in pipes.
        parser: Parser of a classifier by features of trees, instead of its own.
        explain: SVG file to write: the trees behind the first 50 decisions, each production with
            its weight in colour. For latent machines and classifiers by rules.
        json: A JSON object a line.
        text: Text.
        common: Common.
    """
    text, _ = text or TextOptions(), common
    loaded = as_classifier(load(model), parser)
    shown: list[tuple[str, ...]] = []
    flush = at_once(output, line_buffered=line_buffered)
    with write_atomically(output) as out:
        for _, lines in text.first_lines(files or ["-"]):
            kept = _keeping(lines, shown) if explain is not None else lines
            decisions = classify_lines(
                loaded, kept, batch=1 if flush else 1024, threads=text.thread_count
            )
            for decision in decisions:
                out.write(_line(decision, as_json=json).encode())
                if flush:
                    out.flush()
    if explain is not None:
        with write_atomically(explain) as picture:
            picture.write(draw_decisions(loaded, shown).encode())


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
