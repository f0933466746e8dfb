"""`treelm convert`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import CommonOptions, File, InputFile, NewPath, ThreadOptions
from treelm.errors import UsageError
from treelm.estimation.quantize import CodeBits
from treelm.tasks import convert as task
from treelm.tasks.quantize import quantize_model


def convert(
    source: InputFile,
    /,
    target: Annotated[
        NewPath, Parameter(metavar="PATH", help="ARPA file, or model folder, to write.")
    ],
    *,
    bits: CodeBits | None = None,
    measure: File | None = None,
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write an n-gram model as an ARPA file, an ARPA file as a model, or a model as a smaller one.

    Args:
        source: Model folder, or ARPA file (.arpa, .arpa.gz).
        bits: Store probabilities and back-off weights as codes of 8 or 16 bits; the target is then
            a model folder. How far the stored values moved is written to standard error.
        measure: With --bits: text on which bits per word and perplexity of both models are
            measured, and reported instead.
    """
    if bits is None:
        if measure is not None:
            raise UsageError("--measure shows what --bits costs; it needs --bits.")
        task.convert(source, target, note=common.note)
        return
    quantized = quantize_model(
        source,
        target,
        bits,
        measure=measure,
        threads=threads.thread_count,
        progress=common.progress,
    )
    for line in quantized.costs():
        common.note(f"{line}.")
