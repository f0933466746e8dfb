"""`treelm convert`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import CommonOptions, File, InputFile, NewPath, ThreadOptions
from treelm.cli.ranges import Range, within
from treelm.corpus.files import is_forest, source_name
from treelm.errors import UsageError
from treelm.estimation.layout import Layout
from treelm.estimation.quantize import CodeBits
from treelm.tasks import convert as task
from treelm.tasks.quantize import quantize_model


def convert(
    source: InputFile,
    /,
    target: Annotated[
        NewPath,
        Parameter(
            metavar="PATH", help="ARPA file, model folder, or file of trees (.mrg), to write."
        ),
    ],
    *,
    bits: CodeBits | None = None,
    layout: Layout | None = None,
    oov_log_prob: Annotated[float | None, within(Range(below=0))] = None,
    measure: File | None = None,
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write an n-gram model as an ARPA file, an ARPA file as a model, or a model as a smaller one.

    A file of parses (.forest) is written as trees, the best of each sentence, one per line.

    Args:
        source: Model folder, ARPA file (.arpa, .arpa.gz), or file of parses (.forest).
        bits: Store probabilities and back-off weights as codes of 8 or 16 bits, or of 4 to 8 or 16
            with --layout compact; the target is then a model folder. How far the stored values
            moved is written to standard error.
        layout: With compact the tables are smaller, scoring is slower, and the numbers are the
            same; the target is then a model folder. Default: hashed.
        oov_log_prob: Natural log probability of unknown words, before back-off weights, if an ARPA
            file has no <unk>. Default: -230.259, which is KenLM's -100 in base 10.
        measure: With --bits: text on which bits per word and perplexity of both models are
            measured, and reported instead.
    """
    if bits is None and layout is None:
        if measure is not None:
            raise UsageError("--measure shows what --bits costs; it needs --bits.")
        if is_forest(source):
            sentences = task.write_best_trees(source, target)
            common.note(f"{source_name(target)}: the best trees of {sentences} sentences.")
            return
        task.convert(source, target, oov_log_prob=oov_log_prob, note=common.note)
        return
    if oov_log_prob is not None:
        raise UsageError(
            "--oov-log-prob cannot be combined with --bits or --layout: convert twice."
        )
    if measure is not None and bits is None:
        raise UsageError("--measure shows what --bits costs; --layout alone costs nothing.")
    quantized = quantize_model(
        source,
        target,
        bits,
        layout=layout or "hashed",
        measure=measure,
        threads=threads.thread_count,
        progress=common.progress,
    )
    for line in quantized.costs():
        common.note(f"{line}.")
